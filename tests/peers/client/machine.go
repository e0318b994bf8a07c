package main

import (
	"context"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
)

var machineChecks = []check{
	{"version", func(ctx context.Context, p *peer) (any, error) {
		return versions(client.WithNode(ctx, p.other), p.admin)
	}},
	{"version of nodes", func(ctx context.Context, p *peer) (any, error) {
		return versions(client.WithNodes(ctx, p.node, p.other), p.admin)
	}},
	{"version of a node that is not there", func(ctx context.Context, p *peer) (any, error) {
		return versions(client.WithNode(ctx, "127.255.255.254"), p.admin)
	}},
	{"version as reader", func(ctx context.Context, p *peer) (any, error) {
		return versions(client.WithNode(ctx, p.node), p.reader)
	}},
	{"version without a node", func(ctx context.Context, p *peer) (any, error) {
		return versions(ctx, p.admin)
	}},
	{"services", func(ctx context.Context, p *peer) (any, error) {
		list, err := p.admin.ServiceList(client.WithNode(ctx, p.node))
		if err != nil {
			return nil, err
		}

		var states []string
		for _, s := range list.Messages[0].Services {
			states = append(states, s.Id+" "+s.State)
		}

		slices.Sort(states)

		return states, nil
	}},
	{"kubeconfig", func(ctx context.Context, p *peer) (any, error) {
		text, err := p.admin.Kubeconfig(client.WithNode(ctx, p.node))

		return strings.Contains(string(text), "kind: Config"), err
	}},
	{"kubeconfig as reader", func(ctx context.Context, p *peer) (any, error) {
		_, err := p.reader.Kubeconfig(client.WithNode(ctx, p.node))

		return nil, err
	}},
	{"events begin with a hello", func(ctx context.Context, p *peer) (any, error) {
		return hello(client.WithNode(ctx, p.node), p.admin)
	}},
}

// versions lists the nodes' names in the answer and their versions, sorted.
func versions(ctx context.Context, c *client.Client) (any, error) {
	answer, err := c.Version(ctx)
	if err != nil {
		return nil, err
	}

	var tags []string
	for _, m := range answer.Messages {
		tags = append(tags, strings.TrimSpace(m.Metadata.GetHostname()+" "+m.Version.Tag))
	}

	slices.Sort(tags)

	return tags, nil
}

// hello returns what the first event of a node holds.
func hello(ctx context.Context, c *client.Client) (any, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	stream, err := c.Events(ctx, client.WithActorID("peer"))
	if err != nil {
		return nil, err
	}

	first, err := stream.Recv()
	if err != nil {
		return nil, err
	}

	return map[string]any{
		"type":  first.Data.GetTypeUrl(),
		"id":    len(first.Id),
		"actor": first.ActorId,
	}, nil
}

// apply sends a configuration to the control plane.
func apply(
	ctx context.Context, c *client.Client, node string, req *machine.ApplyConfigurationRequest,
) (*machine.ApplyConfiguration, error) {
	answer, err := c.ApplyConfiguration(client.WithNode(ctx, node), req)
	if err != nil {
		return nil, err
	}

	return answer.Messages[0], nil
}
