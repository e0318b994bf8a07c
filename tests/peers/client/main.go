// Client works against Talos nodes with the official client library and prints, as one JSON
// object, what it saw. Tests run it against a simulated cluster. With `--follow` it watches the
// services of a node instead, and prints a line for each event until its standard input ends.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/client"
	"google.golang.org/grpc/status"
)

// peer is what all checks work with.
type peer struct {
	admin  *client.Client
	reader *client.Client
	// node is a control plane, other another node.
	node, other string
}

// check sees one thing; what it returns becomes JSON.
type check struct {
	name string
	run  func(ctx context.Context, p *peer) (any, error)
}

func main() {
	admin := flag.String("talosconfig", "", "talosconfig of an administrator")
	reader := flag.String("reader", "", "talosconfig with the role os:reader")
	node := flag.String("node", "", "address of a control plane")
	other := flag.String("other", "", "address of another node")
	following := flag.Bool("follow", false, "watch the services of the node")
	flag.Parse()

	err := error(nil)
	if *following {
		err = follow(*admin, *node)
	} else {
		err = run(*admin, *reader, *node, *other)
	}

	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(admin, reader, node, other string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	p := &peer{node: node, other: other}

	var err error

	if p.admin, err = connect(ctx, admin); err != nil {
		return err
	}
	defer p.admin.Close()

	if p.reader, err = connect(ctx, reader); err != nil {
		return err
	}
	defer p.reader.Close()

	seen := map[string]any{}

	for _, checks := range [][]check{machineChecks, resourceChecks, applyChecks} {
		for _, c := range checks {
			limited, done := context.WithTimeout(ctx, 15*time.Second)
			result, err := c.run(limited, p)
			done()

			if err != nil {
				result = map[string]string{"error": text(err)}
			}

			seen[c.name] = result
		}
	}

	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")

	return out.Encode(seen)
}

func connect(ctx context.Context, file string) (*client.Client, error) {
	return client.New(ctx, client.WithConfigFromFile(file))
}

// text shows an error as its gRPC code and message.
func text(err error) string {
	if s, ok := status.FromError(err); ok {
		return fmt.Sprintf("%s: %s", s.Code(), s.Message())
	}

	return err.Error()
}
