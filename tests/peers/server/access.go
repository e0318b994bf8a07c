package main

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// The names that the node answers to; the second one encodes configurations as Talos 1.11 does.
const (
	currentNode = "10.5.0.2"
	olderNode   = "10.5.0.11"
)

func checkUnary(
	ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (any, error) {
	if err := check(ctx); err != nil {
		return nil, err
	}

	return handler(ctx, req)
}

func checkStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if err := check(stream.Context()); err != nil {
		return err
	}

	return handler(srv, stream)
}

// check insists on the metadata that every call has to carry.
func check(ctx context.Context) error {
	md, _ := metadata.FromIncomingContext(ctx)

	if runtime := md.Get("runtime"); len(runtime) != 1 || runtime[0] != "Talos" {
		return status.Errorf(codes.InvalidArgument, "runtime metadata is %q", runtime)
	}

	if len(md.Get("nodes")) != 0 {
		return status.Error(codes.InvalidArgument, "nodes metadata is deprecated")
	}

	switch node := md.Get("node"); {
	case len(node) != 1:
		return status.Error(codes.InvalidArgument, "node metadata must be single-valued")
	case node[0] != currentNode && node[0] != olderNode:
		return status.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: `+
			`dial tcp `+node[0]+`:50000: connect: no route to host"`)
	default:
		return nil
	}
}

// older tells whether a call is for the node that is as old as Talos 1.11.
func older(ctx context.Context) bool {
	md, _ := metadata.FromIncomingContext(ctx)

	return md.Get("node")[0] == olderNode
}

// adminOnly refuses callers without the role os:admin.
func adminOnly(ctx context.Context) error {
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			for _, organization := range info.State.VerifiedChains[0][0].Subject.Organization {
				if organization == "os:admin" {
					return nil
				}
			}
		}
	}

	return status.Error(codes.PermissionDenied, "not authorized")
}
