//go:build !talos1.11

package main

import official "github.com/siderolabs/talos/pkg/machinery/config/generate"

func withKubeSpan() official.Option { return official.WithKubeSpanEnabled(true) }
