package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"google.golang.org/protobuf/types/known/durationpb"
)

var applyChecks = []check{
	{"apply as reader", func(ctx context.Context, p *peer) (any, error) {
		_, err := apply(ctx, p.reader, p.node, &machine.ApplyConfigurationRequest{Data: []byte("{}")})

		return nil, err
	}},
	{"dry run", func(ctx context.Context, p *peer) (any, error) {
		return change(ctx, p, "peer-dry", func(req *machine.ApplyConfigurationRequest) {
			req.DryRun = true
			req.Mode = machine.ApplyConfigurationRequest_AUTO
		})
	}},
	{"no reboot", func(ctx context.Context, p *peer) (any, error) {
		return change(ctx, p, "peer-kept", func(req *machine.ApplyConfigurationRequest) {
			req.Mode = machine.ApplyConfigurationRequest_NO_REBOOT
		})
	}},
	{"try", func(ctx context.Context, p *peer) (any, error) {
		return change(ctx, p, "peer-tried", func(req *machine.ApplyConfigurationRequest) {
			req.Mode = machine.ApplyConfigurationRequest_TRY
			req.TryModeTimeout = durationpb.New(100 * time.Millisecond)
		})
	}},
	{"after the try", rolledBack},
	{"unknown field", func(ctx context.Context, p *peer) (any, error) {
		_, err := apply(ctx, p.admin, p.node, &machine.ApplyConfigurationRequest{
			Data: []byte("machine:\n  bogus: 1\n"),
			Mode: machine.ApplyConfigurationRequest_AUTO,
		})

		return nil, err
	}},
}

// change labels the node through a new configuration and tells what came of it: the answer, and
// the versions of the active configuration before and, as a watch shows it, after.
func change(
	ctx context.Context, p *peer, label string, set func(*machine.ApplyConfigurationRequest),
) (any, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	ctx = client.WithNode(ctx, p.node)

	before, err := activeConfig(ctx, p.admin)
	if err != nil {
		return nil, err
	}

	events := make(chan safe.WrappedStateEvent[*config.MachineConfig], 8)
	if err = safe.StateWatch(ctx, p.admin.COSI, before.Metadata(), events); err != nil {
		return nil, err
	}

	text, err := before.Provider().Bytes()
	if err != nil {
		return nil, err
	}

	req := &machine.ApplyConfigurationRequest{Data: labeled(text, label)}
	set(req)

	answer, err := apply(ctx, p.admin, p.node, req)
	if err != nil {
		return nil, err
	}

	details, diff, _ := strings.Cut(answer.ModeDetails, "\n\n")

	result := map[string]any{
		"mode":     answer.Mode.String(),
		"details":  details,
		"diff":     strings.Contains(diff, "\n+        peer: "+label+"\n"),
		"warnings": answer.Warnings,
		"before":   before.Metadata().Version().String(),
	}

	if req.DryRun {
		after, err := activeConfig(ctx, p.admin)
		if err != nil {
			return nil, err
		}

		result["after"] = after.Metadata().Version().String()

		return result, nil
	}

	after, err := waitFor(ctx, events, label)
	if err != nil {
		return nil, err
	}

	result["after"] = after.Metadata().Version().String()

	return result, nil
}

// labeled gives the machine a label in front of all other fields of `machine`.
func labeled(text []byte, label string) []byte {
	const own = "    nodeLabels:\n"

	line := []byte(own + "        peer: " + label + "\n")

	if at := bytes.Index(text, []byte(own)); at >= 0 {
		rest := text[at+len(own):]

		if bytes.HasPrefix(rest, []byte("        peer: ")) {
			rest = rest[bytes.IndexByte(rest, '\n')+1:]
		}

		return bytes.Join([][]byte{text[:at], line, rest}, nil)
	}

	return bytes.Replace(text, []byte("machine:\n"), append([]byte("machine:\n"), line...), 1)
}

// waitFor returns the active configuration that has a label.
func waitFor(
	ctx context.Context, events <-chan safe.WrappedStateEvent[*config.MachineConfig], label string,
) (*config.MachineConfig, error) {
	for {
		select {
		case event := <-events:
			if event.Type() == state.Errored {
				return nil, event.Error()
			}

			mc, err := event.Resource()
			if err != nil {
				return nil, err
			}

			if mc.Config().Machine().NodeLabels()["peer"] == label {
				return mc, nil
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("no configuration with the label %s came", label)
		}
	}
}

// rolledBack waits until the tried configuration has given way to the one before it.
func rolledBack(ctx context.Context, p *peer) (any, error) {
	ctx, cancel := context.WithCancel(client.WithNode(ctx, p.node))
	defer cancel()

	active := config.NewMachineConfig(nil).Metadata()
	events := make(chan safe.WrappedStateEvent[*config.MachineConfig], 8)

	if err := safe.StateWatch(ctx, p.admin.COSI, active, events); err != nil {
		return nil, err
	}

	mc, err := waitFor(ctx, events, "peer-kept")
	if err != nil {
		return nil, err
	}

	stored, err := safe.StateGetByID[*config.MachineConfig](ctx, p.admin.COSI, config.PersistentID)
	if err != nil {
		return nil, err
	}

	text, err := stored.Provider().Bytes()
	if err != nil {
		return nil, err
	}

	if !strings.Contains(string(text), "peer-kept") {
		return nil, errors.New("the stored configuration is not the one that was kept")
	}

	return mc.Metadata().ID(), nil
}
