// Command config answers questions about machine configurations with the official library.
//
// It reads one JSON object per line and writes one JSON object per line, in the same order. What the library refuses,
// and where it panics, is an answer with "ok": false.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// request is one question; each operation reads the fields that it needs.
type request struct {
	ID int64  `json:"id"`
	Op string `json:"op"`

	Config  string   `json:"config"`
	Patches []string `json:"patches"`

	Mode   string `json:"mode"`
	Strict bool   `json:"strict"`

	Name              string              `json:"name"`
	Endpoint          string              `json:"endpoint"`
	Secrets           string              `json:"secrets"`
	TalosVersion      string              `json:"talosVersion"`
	KubernetesVersion string              `json:"kubernetesVersion"`
	InstallDisk       string              `json:"installDisk"`
	InstallImage      string              `json:"installImage"`
	AdditionalSANs    []string            `json:"additionalSans"`
	DNSDomain         string              `json:"dnsDomain"`
	RegistryMirrors   map[string][]string `json:"registryMirrors"`
	KubeSpan          bool                `json:"kubespan"`
	Discovery         *bool               `json:"discovery"`
	Clock             string              `json:"clock"`

	What    string  `json:"what"`
	Seconds float64 `json:"seconds"`
}

// answer is what came of one question.
type answer struct {
	ID       int64    `json:"id"`
	OK       bool     `json:"ok"`
	Error    string   `json:"error,omitempty"`
	Panicked bool     `json:"panicked,omitempty"`
	Text     string   `json:"text,omitempty"`
	Errors   string   `json:"errors,omitempty"`
	Warnings []string `json:"warnings,omitempty"`

	ControlPlane string `json:"controlplane,omitempty"`
	Worker       string `json:"worker,omitempty"`
	Talosconfig  string `json:"talosconfig,omitempty"`

	Count   int64   `json:"count,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
}

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve() error {
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	output := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(output)
	encoder.SetEscapeHTML(false)

	for {
		line, readErr := input.ReadBytes('\n')
		if len(line) > 1 {
			if err := encoder.Encode(reply(line)); err != nil {
				return err
			}
			// Whoever waits for this answer has sent nothing more.
			if input.Buffered() == 0 {
				if err := output.Flush(); err != nil {
					return err
				}
			}
		}

		if readErr != nil {
			return output.Flush()
		}
	}
}

func reply(line []byte) (result *answer) {
	var asked request

	defer func() {
		if reason := recover(); reason != nil {
			result = &answer{ID: asked.ID, Error: fmt.Sprintf("panic: %v", reason), Panicked: true}
		}
	}()

	if err := json.Unmarshal(line, &asked); err != nil {
		return &answer{Error: fmt.Sprintf("not a request: %s", err)}
	}

	result, err := operate(asked.Op, &asked)
	if err != nil {
		result = &answer{Error: err.Error()}
	} else {
		result.OK = result.Errors == ""
	}

	result.ID = asked.ID

	return result
}

func operate(op string, asked *request) (*answer, error) {
	switch op {
	case "load":
		return load(asked)
	case "patch":
		return patch(asked)
	case "validate":
		return validate(asked)
	case "generate":
		return generate(asked)
	case "effective":
		return effective(asked)
	case "bench":
		return bench(asked)
	default:
		return nil, fmt.Errorf("unknown operation %q", op)
	}
}

// bench repeats another operation for some time, from text to text.
func bench(asked *request) (*answer, error) {
	if asked.What == "bench" {
		return nil, fmt.Errorf("unknown operation %q", asked.What)
	}

	limit := time.Duration(asked.Seconds * float64(time.Second))
	started := time.Now()

	for count := int64(1); ; count++ {
		if _, err := operate(asked.What, asked); err != nil {
			return nil, err
		}

		if passed := time.Since(started); passed >= limit {
			return &answer{Count: count, Seconds: passed.Seconds()}, nil
		}
	}
}
