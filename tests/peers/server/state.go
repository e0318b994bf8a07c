package main

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"
	"github.com/cosi-project/runtime/pkg/state/protobuf/server"
	"github.com/cosi-project/runtime/pkg/state/registry"
	talosconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/cluster"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	talosv1alpha1 "github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
	yaml "go.yaml.in/yaml/v4"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// stateServer is the State service with what a node puts before it; the state can be replaced.
type stateServer struct {
	v1alpha1.UnimplementedStateServer

	current atomic.Pointer[contents]
}

// contents is one state and the official service over it.
type contents struct {
	state  state.State
	server *server.State
}

func newStateServer(ctx context.Context, provider talosconfig.Provider) (*stateServer, error) {
	s := &stateServer{}

	return s, s.fill(ctx, provider)
}

func (s *stateServer) core() state.State {
	return s.current.Load().state
}

// fill starts over with a new state, as a boot does: old bookmarks are no longer good.
func (s *stateServer) fill(ctx context.Context, provider talosconfig.Provider) error {
	build := inmem.NewStateWithOptions(
		inmem.WithHistoryInitialCapacity(8),
		inmem.WithHistoryMaxCapacity(1024),
		inmem.WithHistoryGap(4),
	)
	core := state.WrapCore(namespaced.NewState(func(namespace resource.Namespace) state.CoreState {
		return build(namespace)
	}))

	resources := registry.NewResourceRegistry(core)
	if err := resources.RegisterDefault(ctx); err != nil {
		return err
	}

	if err := registry.NewNamespaceRegistry(core).RegisterDefault(ctx); err != nil {
		return err
	}

	for _, described := range []meta.ResourceWithRD{
		&config.MachineConfig{},
		&talosv1alpha1.Service{},
		&cluster.Member{},
		&k8s.Nodename{},
		&network.NodeAddress{},
		&network.Status{},
	} {
		if err := resources.Register(ctx, described); err != nil {
			return err
		}
	}

	if err := core.Create(ctx, config.NewMachineConfig(provider)); err != nil {
		return err
	}

	for _, id := range []string{"kubelet", "apid", "etcd"} {
		service := talosv1alpha1.NewService(id)
		service.TypedSpec().Running = true
		service.TypedSpec().Healthy = true

		if err := core.Create(ctx, service); err != nil {
			return err
		}
	}

	name := k8s.NewNodename(k8s.NamespaceName, k8s.NodenameID)
	name.TypedSpec().Nodename = "official-1"

	if err := core.Create(ctx, name); err != nil {
		return err
	}

	s.current.Store(&contents{state: core, server: server.NewState(core)})

	return nil
}

// forget replaces the state by one with the same configuration and fresh services.
func (s *stateServer) forget(ctx context.Context) error {
	active, err := s.core().Get(ctx, config.NewMachineConfig(nil).Metadata())
	if err != nil {
		return err
	}

	return s.fill(ctx, active.(*config.MachineConfig).Provider())
}

func (s *stateServer) replaceConfig(ctx context.Context, provider talosconfig.Provider) error {
	old, err := s.core().Get(ctx, config.NewMachineConfig(provider).Metadata())
	if err != nil {
		return err
	}

	applied := config.NewMachineConfig(provider)
	applied.Metadata().SetVersion(old.Metadata().Version())

	return s.core().Update(ctx, applied)
}

func (s *stateServer) Get(ctx context.Context, req *v1alpha1.GetRequest) (*v1alpha1.GetResponse, error) {
	if err := s.allow(ctx, req.Type); err != nil {
		return nil, err
	}

	answer, err := s.current.Load().server.Get(ctx, req)
	if err == nil && older(ctx) {
		age(answer.Resource)
	}

	return answer, err
}

func (s *stateServer) List(req *v1alpha1.ListRequest, stream grpc.ServerStreamingServer[v1alpha1.ListResponse]) error {
	if err := s.allow(stream.Context(), req.Type); err != nil {
		return err
	}

	if older(stream.Context()) {
		stream = agingList{stream}
	}

	return s.current.Load().server.List(req, stream)
}

func (s *stateServer) Watch(
	req *v1alpha1.WatchRequest, stream grpc.ServerStreamingServer[v1alpha1.WatchResponse],
) error {
	if err := s.allow(stream.Context(), req.Type); err != nil {
		return err
	}

	return s.current.Load().server.Watch(req, stream)
}

// allow refuses types that are not registered, and sensitive ones for all but os:admin.
func (s *stateServer) allow(ctx context.Context, kind string) error {
	id := strings.ToLower(kind)

	definition, err := safe.StateGetByID[*meta.ResourceDefinition](ctx, s.core(), id)
	if err != nil {
		return status.Errorf(codes.PermissionDenied, "resource type %q is not supported", kind)
	}

	if definition.TypedSpec().Sensitivity == meta.Sensitive {
		return adminOnly(ctx)
	}

	return nil
}

// agingList is a stream of resources in their older encoding.
type agingList struct {
	grpc.ServerStreamingServer[v1alpha1.ListResponse]
}

func (l agingList) Send(answer *v1alpha1.ListResponse) error {
	age(answer.Resource)

	return l.ServerStreamingServer.Send(answer)
}

// age gives a machine configuration the form that it had up to Talos 1.11: the documents
// themselves instead of a text that holds them, and no annotation. Readers are to make do with it,
// so the exact bytes are left out.
func age(r *v1alpha1.Resource) {
	if r.Metadata.Type != config.MachineConfigType {
		return
	}

	var text string
	if err := yaml.Unmarshal([]byte(r.Spec.YamlSpec), &text); err == nil {
		r.Spec.YamlSpec = text
	}

	r.Spec.ProtoSpec = nil
	r.Metadata.Annotations = nil
}
