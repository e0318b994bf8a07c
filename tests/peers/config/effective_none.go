//go:build !talos1.14

package main

import "errors"

func effective(*request) (*answer, error) {
	return nil, errors.New("told of Talos 1.14 only")
}
