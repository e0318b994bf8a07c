package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/resource/protobuf"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/resources/cluster"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/network"
	talosv1alpha1 "github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
	yaml "go.yaml.in/yaml/v4"

	// These register their types, so that all resources of a node can be decoded.
	_ "github.com/siderolabs/talos/pkg/machinery/resources/block"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/cri"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/files"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/hardware"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/kubeaccess"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/kubespan"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/perf"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/secrets"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/security"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/siderolink"
	_ "github.com/siderolabs/talos/pkg/machinery/resources/time"
)

var resourceChecks = []check{
	{"machine config", func(ctx context.Context, p *peer) (any, error) {
		mc, err := activeConfig(client.WithNode(ctx, p.node), p.admin)
		if err != nil {
			return nil, err
		}

		v1 := mc.Config()

		return map[string]any{
			"type":     v1.Machine().Type().String(),
			"cluster":  v1.Cluster().Name(),
			"endpoint": v1.Cluster().Endpoint().String(),
			"version":  mc.Metadata().Version().String(),
		}, nil
	}},
	{"machine config as reader", func(ctx context.Context, p *peer) (any, error) {
		_, err := activeConfig(client.WithNode(ctx, p.node), p.reader)

		return nil, err
	}},
	{"members", func(ctx context.Context, p *peer) (any, error) {
		members, err := safe.StateListAll[*cluster.Member](client.WithNode(ctx, p.other), p.reader.COSI)
		if err != nil {
			return nil, err
		}

		return safe.ToSlice(members, func(m *cluster.Member) string {
			spec := m.TypedSpec()

			return fmt.Sprintf("%s %s %s", spec.Hostname, spec.MachineType, spec.Addresses)
		}), nil
	}},
	{"nodename", func(ctx context.Context, p *peer) (any, error) {
		name, err := safe.StateGetByID[*k8s.Nodename](client.WithNode(ctx, p.other), p.reader.COSI, "nodename")
		if err != nil {
			return nil, err
		}

		return name.TypedSpec().Nodename, nil
	}},
	{"link flags", func(ctx context.Context, p *peer) (any, error) {
		link, err := safe.StateGetByID[*network.LinkStatus](client.WithNode(ctx, p.node), p.reader.COSI, "lo")
		if err != nil {
			return nil, err
		}

		return link.TypedSpec().Flags.String(), nil
	}},
	{"missing resource", func(ctx context.Context, p *peer) (any, error) {
		_, err := safe.StateGetByID[*k8s.Nodename](client.WithNode(ctx, p.node), p.reader.COSI, "nope")

		return map[string]bool{"not found": state.IsNotFoundError(err)}, nil
	}},
	{"get through nodes", func(ctx context.Context, p *peer) (any, error) {
		_, err := safe.StateGetByID[*k8s.Nodename](client.WithNodes(ctx, p.node, p.other), p.admin.COSI, "nodename")

		return nil, err
	}},
	{"write", func(ctx context.Context, p *peer) (any, error) {
		return nil, p.admin.COSI.Create(client.WithNode(ctx, p.node), k8s.NewNodename("k8s", "x"))
	}},
	{"definitions", func(ctx context.Context, p *peer) (any, error) {
		return definitions(client.WithNode(ctx, p.node), p.reader)
	}},
	{"services by watch", func(ctx context.Context, p *peer) (any, error) {
		return bootstrapped(client.WithNode(ctx, p.other), p.reader)
	}},
	{"all resources", func(ctx context.Context, p *peer) (any, error) {
		return everything(client.WithNode(ctx, p.node), p.admin)
	}},
	{"all resources of the other", func(ctx context.Context, p *peer) (any, error) {
		return everything(client.WithNode(ctx, p.other), p.admin)
	}},
}

func activeConfig(ctx context.Context, c *client.Client) (*config.MachineConfig, error) {
	return safe.StateGetByID[*config.MachineConfig](ctx, c.COSI, config.ActiveID)
}

// definitions counts the resource types and resolves some names of them.
func definitions(ctx context.Context, c *client.Client) (any, error) {
	all, err := safe.StateListAll[*meta.ResourceDefinition](ctx, c.COSI)
	if err != nil {
		return nil, err
	}

	resolved := map[string]string{}

	for _, name := range []string{"mc", "Members", "nodename", "ns", "nope"} {
		var namespace resource.Namespace

		found, err := c.ResolveResourceKind(ctx, &namespace, name)
		if err != nil {
			resolved[name] = text(err)

			continue
		}

		resolved[name] = namespace + "/" + found.TypedSpec().Type
	}

	return map[string]any{"types": all.Len(), "resolved": resolved}, nil
}

// bootstrapped lists a node's services as a watch brings them.
func bootstrapped(ctx context.Context, c *client.Client) (any, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	events := make(chan safe.WrappedStateEvent[*talosv1alpha1.Service])
	kind := talosv1alpha1.NewService("").Metadata()

	if err := safe.StateWatchKind(ctx, c.COSI, kind, events, state.WithBootstrapContents(true)); err != nil {
		return nil, err
	}

	var seen []string

	for {
		select {
		case event := <-events:
			switch event.Type() {
			case state.Bootstrapped:
				return seen, nil
			case state.Errored:
				return nil, event.Error()
			default:
				r, err := event.Resource()
				if err != nil {
					return nil, err
				}

				seen = append(seen, fmt.Sprintf("%s %s", event.Type(), r.Metadata().ID()))
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// everything decodes the protobuf form of each resource of a node with the official types, and
// compares it with the YAML form; it counts them and names the types where the two differ.
func everything(ctx context.Context, c *client.Client) (any, error) {
	all, err := safe.StateListAll[*meta.ResourceDefinition](ctx, c.COSI)
	if err != nil {
		return nil, err
	}

	raw := v1alpha1.NewStateClient(c.Conn())
	count := 0
	different := map[string]string{}

	for definition := range all.All() {
		spec := definition.TypedSpec()

		list, err := raw.List(ctx, &v1alpha1.ListRequest{Namespace: spec.DefaultNamespace, Type: spec.Type})
		if err != nil {
			return nil, err
		}

		for {
			answer, err := list.Recv()
			if errors.Is(err, io.EOF) {
				break
			}

			if err != nil {
				return nil, fmt.Errorf("%s: %w", spec.Type, err)
			}

			count++

			if difference := compare(answer.Resource); difference != "" {
				different[spec.Type] = difference
			}
		}
	}

	types := make([]string, 0, len(different))
	for t, difference := range different {
		types = append(types, t+": "+difference)
	}

	slices.Sort(types)

	return map[string]any{"count over 100": count > 100, "different": types}, nil
}

// compare decodes one resource and says how its two forms differ.
func compare(r *v1alpha1.Resource) string {
	decoded, err := protobuf.Unmarshal(r)
	if err != nil {
		return err.Error()
	}

	typed, err := protobuf.UnmarshalResource(decoded)
	if err != nil {
		return err.Error()
	}

	if _, untyped := typed.(*protobuf.Resource); untyped {
		return "no such type in the library"
	}

	written, err := yaml.Marshal(typed.Spec())
	if err != nil {
		return err.Error()
	}

	var fromProto, fromYAML any

	if err = yaml.Unmarshal(written, &fromProto); err != nil {
		return err.Error()
	}

	if err = yaml.Unmarshal([]byte(r.Spec.YamlSpec), &fromYAML); err != nil {
		return err.Error()
	}

	if reflect.DeepEqual(plain(fromProto), plain(fromYAML)) {
		return ""
	}

	if strings.Contains(r.Spec.YamlSpec, "redacted") {
		// What the recording left out cannot be right in both forms.
		return ""
	}

	fmt.Fprintf(os.Stderr, "%s: protobuf says\n%sand YAML\n%s", r.Metadata.Type, written, r.Spec.YamlSpec)

	return "the two forms differ"
}

// plain makes values comparable: numbers of one kind, and nothing that is merely absent.
func plain(value any) any {
	switch v := value.(type) {
	case int:
		return float64(v)
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = plain(v[key])

			if v[key] == nil || v[key] == false {
				delete(v, key)
			}
		}
	}

	return value
}
