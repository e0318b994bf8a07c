package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
)

// follow prints a line for each event of a node's services until the standard input ends.
func follow(talosconfig, node string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	c, err := connect(ctx, talosconfig)
	if err != nil {
		return err
	}
	defer c.Close()

	events := make(chan safe.WrappedStateEvent[*v1alpha1.Service])
	kind := v1alpha1.NewService("").Metadata()

	err = safe.StateWatchKind(client.WithNode(ctx, node), c.COSI, kind, events, state.WithBootstrapContents(true))
	if err != nil {
		return err
	}

	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()

	for {
		select {
		case event := <-events:
			switch event.Type() {
			case state.Errored:
				return event.Error()
			case state.Bootstrapped:
				fmt.Println(event.Type())
			default:
				r, err := event.Resource()
				if err != nil {
					return err
				}

				fmt.Println(event.Type(), r.Metadata().ID(), r.Metadata().Version(), r.TypedSpec().Healthy)
			}
		case <-ctx.Done():
			return nil
		}
	}
}
