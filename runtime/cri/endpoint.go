package cri

import (
	"errors"
	"fmt"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/runtime/safefs"
)

// Endpoint is where a container runtime listens, and who said so.
type Endpoint struct {
	// Address is a gRPC target, for example unix:///run/containerd/containerd.sock.
	Address string
	// Origin names the setting the address comes from, for error messages.
	Origin string
}

// String is the address and its origin, as errors show it.
func (e Endpoint) String() string { return fmt.Sprintf("%s (%s)", e.Address, e.Origin) }

// Socket is the path of a unix socket, or empty for another kind of address.
func (e Endpoint) Socket() string {
	if path, ok := strings.CutPrefix(e.Address, "unix://"); ok {
		return path
	}
	return ""
}

// EndpointSources are the places an endpoint can come from, in the order in
// which they are asked.
type EndpointSources struct {
	// Given are the endpoints that the user set, each with what it was set by: the
	// flag, the environment, podctl's configuration. The first that is not empty
	// counts.
	Given []Endpoint
	// NodeSocket is the socket of podctl's own node, which counts when it exists. It does
	// so if nobody answers there: containers outlive their containerd, and while it is
	// started again pods that belong beside them must not come up in another runtime.
	NodeSocket string
	// CrictlConfig is crictl's configuration file.
	CrictlConfig string
	// WellKnown are the sockets that runtimes use by default.
	WellKnown []string
}

// WellKnownSockets are the default sockets of the runtimes podctl knows.
func WellKnownSockets() []string {
	return []string{
		"/run/containerd/containerd.sock",
		"/run/crio/crio.sock",
		"/run/k3s/containerd/containerd.sock",
	}
}

// ErrNoEndpoint says that no container runtime was found.
var ErrNoEndpoint = errors.New("no container runtime found")

// Discover finds the runtime to talk to: what the user set, podctl's own
// node, crictl's configuration, then the well-known sockets that exist.
func Discover(s EndpointSources) (Endpoint, error) {
	for _, given := range s.Given {
		if given.Address != "" {
			return Endpoint{Address: normalAddress(given.Address), Origin: given.Origin}, nil
		}
	}
	if found, err := isSocket(s.NodeSocket); found || err != nil {
		return Endpoint{Address: "unix://" + s.NodeSocket, Origin: "podctl node"}, err
	}
	if address, err := crictlEndpoint(s.CrictlConfig); err != nil {
		return Endpoint{}, err
	} else if address != "" {
		return Endpoint{Address: normalAddress(address), Origin: s.CrictlConfig}, nil
	}
	for _, path := range s.WellKnown {
		if found, err := isSocket(path); found || err != nil {
			return Endpoint{Address: "unix://" + path, Origin: "well-known socket"}, err
		}
	}
	return Endpoint{}, fmt.Errorf("%w: none of %s exists; start one with `podctl node up`, or name one with --runtime-endpoint",
		ErrNoEndpoint, strings.Join(s.WellKnown, ", "))
}

// normalAddress lets a bare path stand for a unix socket, as crictl does.
func normalAddress(address string) string {
	if strings.HasPrefix(address, "/") {
		return "unix://" + address
	}
	return address
}

// isSocket reports whether a runtime listens, or listened, at a path. One that another user
// made is refused and not passed over: it may stand where the right one was.
func isSocket(path string) (bool, error) {
	found, err := safefs.IsSocket(path)
	if err != nil {
		return false, fmt.Errorf("looking for the runtime's socket: %w; --runtime-endpoint names the one to talk to", err)
	}
	return found, nil
}

// crictlConfigMax bounds what is read of crictl's configuration, in bytes.
const crictlConfigMax = 64 << 10

// crictlEndpoint reads runtime-endpoint from crictl's configuration; a missing
// file has none, and one that another user can write to is refused.
func crictlEndpoint(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	f, err := safefs.OpenTrusted(path)
	if safefs.NotExist(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading crictl's configuration: %w; --runtime-endpoint goes before it", err)
	}
	defer f.Close() //nolint:errcheck // a file that was only read
	text, err := input.ReadAtMost(f, crictlConfigMax)
	if err != nil {
		return "", fmt.Errorf("reading crictl's configuration %s: %w", path, err)
	}
	var config struct {
		RuntimeEndpoint string `yaml:"runtime-endpoint"`
	}
	if err := yamlv3.Unmarshal(text, &config); err != nil {
		return "", fmt.Errorf("reading crictl's configuration %s: %w", path, err)
	}
	return config.RuntimeEndpoint, nil
}
