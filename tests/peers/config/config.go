package main

import (
	"fmt"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/validation"
)

func plain(provider config.Provider) (string, error) {
	text, err := provider.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))

	return string(text), err
}

func load(asked *request) (*answer, error) {
	provider, err := configloader.NewFromBytes([]byte(asked.Config))
	if err != nil {
		return nil, err
	}

	text, err := plain(provider)
	if err != nil {
		return nil, err
	}

	return &answer{Text: text}, nil
}

func patch(asked *request) (*answer, error) {
	patches := make([]configpatcher.Patch, 0, len(asked.Patches))

	for number, text := range asked.Patches {
		loaded, err := configpatcher.LoadPatch([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("patch %d: %w", number+1, err)
		}

		patches = append(patches, loaded)
	}

	result, err := configpatcher.Apply(configpatcher.WithBytes([]byte(asked.Config)), patches)
	if err != nil {
		return nil, err
	}

	text, err := result.Bytes()
	if err != nil {
		return nil, err
	}

	return &answer{Text: string(text)}, nil
}

// mode is how the node runs.
type mode struct {
	name      string
	install   bool
	container bool
}

func (m mode) String() string        { return m.name }
func (m mode) RequiresInstall() bool { return m.install }
func (m mode) InContainer() bool     { return m.container }

// clientSide is the validation for programs outside of Talos, in the versions that tell it apart.
type clientSide interface {
	ValidateAsClient(validation.RuntimeMode, ...validation.Option) ([]string, error)
}

func validate(asked *request) (*answer, error) {
	provider, err := configloader.NewFromBytes([]byte(asked.Config))
	if err != nil {
		return nil, err
	}

	runs := mode{name: asked.Mode, install: asked.Mode == "metal", container: asked.Mode == "container"}
	options := []validation.Option{validation.WithLocal()}

	if asked.Strict {
		options = append(options, validation.WithStrict())
	}

	check := provider.Validate
	if client, ok := provider.(clientSide); ok {
		check = client.ValidateAsClient
	}

	warnings, err := check(runs, options...)
	result := &answer{Warnings: warnings}

	if err != nil {
		result.Errors = err.Error()
	}

	return result, nil
}
