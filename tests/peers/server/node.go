package main

import (
	"context"
	"errors"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/proto"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"
)

// node is one machine: its state, and the calls that its machined answers.
type node struct {
	machine.UnimplementedMachineServiceServer

	state *stateServer
}

func newNode(ctx context.Context, bundle *secrets.Bundle) (*node, error) {
	in, err := input(bundle)
	if err != nil {
		return nil, err
	}

	provider, err := in.Config(machinetype.TypeControlPlane)
	if err != nil {
		return nil, err
	}

	s, err := newStateServer(ctx, provider)
	if err != nil {
		return nil, err
	}

	return &node{state: s}, nil
}

// obey does what a line of the test says.
func (n *node) obey(ctx context.Context, listener *cutting, words []string) error {
	if len(words) == 0 {
		return errors.New("an empty line")
	}

	switch verb, arguments := words[0], words[1:]; {
	case verb == "health" && len(arguments) == 2:
		return n.setHealth(ctx, arguments[0], arguments[1] == "true")
	case verb == "add" && len(arguments) == 1:
		return n.state.core().Create(ctx, v1alpha1.NewService(arguments[0]))
	case verb == "remove" && len(arguments) == 1:
		return n.state.core().Destroy(ctx, v1alpha1.NewService(arguments[0]).Metadata())
	case verb == "cut":
		listener.cut()

		return nil
	case verb == "forget":
		return n.state.forget(ctx)
	default:
		return errors.New("no such command")
	}
}

func (n *node) setHealth(ctx context.Context, id string, healthy bool) error {
	_, err := safe.StateUpdateWithConflicts(ctx, n.state.core(), v1alpha1.NewService(id).Metadata(),
		func(s *v1alpha1.Service) error {
			s.TypedSpec().Healthy = healthy

			return nil
		})

	return err
}

func (n *node) Version(ctx context.Context, _ *emptypb.Empty) (*machine.VersionResponse, error) {
	tag := "v1.13.9"
	if older(ctx) {
		tag = "v1.11.5"
	}

	return &machine.VersionResponse{Messages: []*machine.Version{{
		Version:  &machine.VersionInfo{Tag: tag, Arch: "amd64", Os: "linux"},
		Platform: &machine.PlatformInfo{Name: "metal", Mode: "metal"},
		Features: &machine.FeaturesInfo{Rbac: true},
	}}}, nil
}

// ApplyConfiguration decodes and validates with the official library and replaces the resource.
func (n *node) ApplyConfiguration(
	ctx context.Context, req *machine.ApplyConfigurationRequest,
) (*machine.ApplyConfigurationResponse, error) {
	if err := adminOnly(ctx); err != nil {
		return nil, err
	}

	provider, err := configloader.NewFromBytes(req.Data)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}

	warnings, err := provider.Validate(metal{})
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}

	if !req.DryRun {
		if err = n.state.replaceConfig(ctx, provider); err != nil {
			return nil, err
		}
	}

	return &machine.ApplyConfigurationResponse{Messages: []*machine.ApplyConfiguration{{
		Mode:        machine.ApplyConfigurationRequest_NO_REBOOT,
		ModeDetails: "Applied configuration without a reboot",
		Warnings:    warnings,
	}}}, nil
}

// Events says hello and reports one event, as a node that is ready.
func (n *node) Events(_ *machine.EventsRequest, stream machine.MachineService_EventsServer) error {
	if err := stream.Send(&machine.Event{Id: "0ujtsYcgvSTl8PAuAdqW", Data: &anypb.Any{}}); err != nil {
		return err
	}

	value, err := proto.Marshal(&machine.MachineStatusEvent{
		Stage:  machine.MachineStatusEvent_RUNNING,
		Status: &machine.MachineStatusEvent_MachineStatus{Ready: true},
	})
	if err != nil {
		return err
	}

	return stream.Send(&machine.Event{
		Id:   "0ujtsYcgvSTl8PAuAdqX",
		Data: &anypb.Any{TypeUrl: "talos/runtime/machine.MachineStatusEvent", Value: value},
	})
}

// metal is the runtime mode of a machine with a disk.
type metal struct{}

func (metal) String() string        { return "metal" }
func (metal) RequiresInstall() bool { return true }
func (metal) InContainer() bool     { return false }
