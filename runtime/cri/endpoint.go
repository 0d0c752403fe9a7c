package cri

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/runtime/safefs"
)

// Endpoint is the address of a container runtime and where it was configured.
type Endpoint struct {
	// Address is a gRPC target, for example unix:///run/containerd/containerd.sock.
	Address string
	// Origin names the setting with the address, for error messages.
	Origin string
}

// String returns the address and its origin, as errors show them.
func (e Endpoint) String() string { return fmt.Sprintf("%s (%s)", e.Address, e.Origin) }

// Socket returns the path of a unix socket, or an empty string for another kind of address.
func (e Endpoint) Socket() string {
	if path, ok := strings.CutPrefix(e.Address, "unix://"); ok {
		return path
	}
	return ""
}

// Server returns the id of the process that listens at a unix socket: the runtime, unless another process has opened
// the socket for it.
func (e Endpoint) Server(ctx context.Context) (pid int, err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", e.Socket())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, fmt.Errorf("%s is not a unix socket", e)
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, err
	}
	failed := raw.Control(func(fd uintptr) {
		var peer *unix.Ucred
		if peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(peer.Pid)
		}
	})
	return pid, errors.Join(err, failed)
}

// EndpointSources lists the places to look for an endpoint, in this order.
type EndpointSources struct {
	// Given lists the endpoints that the user may set: the flag, the environment, podctl's configuration. The first one
	// with an address is used.
	Given []Endpoint
	// NodeSocket is the socket of podctl's own node. If it exists it is used, even if no process listens there.
	// Containers outlive their containerd: while it restarts, their pods must not be created in another runtime.
	NodeSocket string
	// CrictlConfig is crictl's configuration file.
	CrictlConfig string
	// WellKnown lists the default sockets of runtimes.
	WellKnown []string
}

// WellKnownSockets returns the default sockets of the runtimes that podctl knows.
func WellKnownSockets() []string {
	return []string{
		"/run/containerd/containerd.sock",
		"/run/crio/crio.sock",
		"/run/k3s/containerd/containerd.sock",
	}
}

// ErrNoEndpoint reports that no container runtime was found.
var ErrNoEndpoint = errors.New("no container runtime found")

// Discover returns the endpoint of the runtime. It looks at the user's settings, podctl's own node, crictl's
// configuration, and then the well-known sockets that exist.
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
	return Endpoint{}, fmt.Errorf("%w: none of %s exists; "+
		"start one with `podctl node up`, or name one with --runtime-endpoint",
		ErrNoEndpoint, strings.Join(s.WellKnown, ", "))
}

// normalAddress turns a path into the address of a unix socket, as crictl does.
func normalAddress(address string) string {
	if strings.HasPrefix(address, "/") {
		return "unix://" + address
	}
	return address
}

// isSocket reports whether a path is a socket. It refuses a socket of another user instead of skipping it, because it
// may have replaced the right one.
func isSocket(path string) (bool, error) {
	found, err := safefs.IsSocket(path)
	if err != nil {
		return false, fmt.Errorf("looking for the runtime's socket: %w; name one with --runtime-endpoint", err)
	}
	return found, nil
}

// crictlConfigMax limits the bytes read from crictl's configuration.
const crictlConfigMax = 64 << 10

// crictlEndpoint reads runtime-endpoint from crictl's configuration. It returns an empty string if the file is missing,
// and an error if another user can write to it.
func crictlEndpoint(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	f, err := safefs.OpenTrusted(path)
	if safefs.NotExist(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading crictl's configuration: %w; --runtime-endpoint takes precedence over it", err)
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
