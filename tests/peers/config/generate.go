package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"
	official "github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
)

// bundle reads the secrets and checks them; of the versions, some want to know the contract for that.
func bundle(asked *request, contract *config.VersionContract) (*secrets.Bundle, error) {
	clock := secrets.NewClock()

	if asked.Clock != "" {
		now, err := time.Parse(time.RFC3339, asked.Clock)
		if err != nil {
			return nil, err
		}

		clock = secrets.NewFixedClock(now)
	}

	if asked.Secrets == "" {
		return secrets.NewBundle(clock, contract)
	}

	loaded, err := read(asked.Secrets)
	if err != nil {
		return nil, err
	}

	loaded.Clock = clock

	switch checked := any(loaded).(type) {
	case interface{ Validate() error }:
		return loaded, checked.Validate()
	case interface {
		Validate(*config.VersionContract) error
	}:
		return loaded, checked.Validate(contract)
	default:
		return nil, errors.New("this version checks secrets in another way")
	}
}

// read hands the text to the library through a pipe, since it reads a bundle by its file's name only.
func read(text string) (*secrets.Bundle, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}

	defer reader.Close()

	go func() {
		defer writer.Close()

		_, _ = writer.WriteString(text)
	}()

	return secrets.LoadBundle(fmt.Sprintf("/dev/fd/%d", reader.Fd()))
}

func options(asked *request) ([]official.Option, error) {
	var contract *config.VersionContract

	if asked.TalosVersion != "" {
		var err error
		if contract, err = config.ParseContractFromVersion(asked.TalosVersion); err != nil {
			return nil, err
		}
	}

	loaded, err := bundle(asked, contract)
	if err != nil {
		return nil, err
	}

	discovery := asked.Discovery == nil || *asked.Discovery
	result := []official.Option{
		official.WithVersionContract(contract),
		official.WithSecretsBundle(loaded),
		official.WithInstallDisk(asked.InstallDisk),
		official.WithInstallImage(asked.InstallImage),
		official.WithAdditionalSubjectAltNames(asked.AdditionalSANs),
		official.WithDNSDomain(asked.DNSDomain),
		official.WithClusterDiscovery(discovery),
	}

	for host, urls := range asked.RegistryMirrors {
		result = append(result, official.WithRegistryMirror(host, urls...))
	}

	if asked.KubeSpan {
		result = append(result, withKubeSpan())
	}

	return result, nil
}

func generate(asked *request) (*answer, error) {
	chosen, err := options(asked)
	if err != nil {
		return nil, err
	}

	input, err := official.NewInput(asked.Name, asked.Endpoint, asked.KubernetesVersion, chosen...)
	if err != nil {
		return nil, err
	}

	var result answer

	for kind, text := range map[machine.Type]*string{
		machine.TypeControlPlane: &result.ControlPlane,
		machine.TypeWorker:       &result.Worker,
	} {
		provider, err := input.Config(kind)
		if err != nil {
			return nil, err
		}

		if *text, err = plain(provider); err != nil {
			return nil, err
		}
	}

	client, err := input.Talosconfig()
	if err != nil {
		return nil, err
	}

	text, err := client.Bytes()
	if err != nil {
		return nil, err
	}

	result.Talosconfig = string(text)

	return &result, nil
}
