//go:build talos1.11

package main

import (
	official "github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
)

func withKubeSpan() official.Option {
	return official.WithNetworkOptions(v1alpha1.WithKubeSpan())
}
