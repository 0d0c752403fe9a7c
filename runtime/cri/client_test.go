package cri

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// socket listens on a unix socket and never answers.
func socket(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cri.sock")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return path
}

// deadSocket returns a socket as a killed process leaves it.
func deadSocket(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dead.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err = l.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDiscover(t *testing.T) {
	sock, dead := socket(t), deadSocket(t)
	config := filepath.Join(t.TempDir(), "crictl.yaml")
	if err := os.WriteFile(config, []byte("runtime-endpoint: unix:///from/crictl.sock\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		sources EndpointSources
		want    Endpoint
	}{
		"the flag comes first": {
			EndpointSources{Given: []Endpoint{{"/a.sock", "flag"}, {"/b.sock", "env"}}},
			Endpoint{"unix:///a.sock", "flag"},
		},
		"then the environment": {
			EndpointSources{Given: []Endpoint{{"", "flag"}, {"unix:///b.sock", "env"}}, NodeSocket: sock},
			Endpoint{"unix:///b.sock", "env"},
		},
		"then a node that is up": {EndpointSources{NodeSocket: sock, CrictlConfig: config}, Endpoint{"unix://" + sock, "podctl node"}},
		"also one that died": {
			EndpointSources{NodeSocket: dead, WellKnown: []string{sock}},
			Endpoint{"unix://" + dead, "podctl node"},
		},
		"then crictl's file": {
			EndpointSources{NodeSocket: "/absent", CrictlConfig: config},
			Endpoint{"unix:///from/crictl.sock", config},
		},
		"then a socket that is there": {
			EndpointSources{CrictlConfig: "/absent", WellKnown: []string{"/absent", sock}},
			Endpoint{"unix://" + sock, "well-known socket"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got, err := Discover(c.sources); err != nil || got != c.want {
				t.Errorf("%+v %v, want %+v", got, err, c.want)
			}
		})
	}
	if _, err := Discover(EndpointSources{WellKnown: []string{"/absent"}}); !errors.Is(err, ErrNoEndpoint) ||
		!strings.Contains(err.Error(), "podctl node up") {
		t.Errorf("error %v", err)
	}
}

// TestDiscoverRefusesOtherUsersFiles checks that a socket or configuration of another user is refused with its name,
// not skipped. An endpoint set by the user is used.
func TestDiscoverRefusesOtherUsersFiles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	sock, own, config := socket(t), socket(t), filepath.Join(t.TempDir(), "crictl.yaml")
	link := filepath.Join(t.TempDir(), "link")
	err := errors.Join(os.WriteFile(config, []byte("runtime-endpoint: unix:///his.sock\n"), 0o600), os.Symlink(own, link))
	for _, path := range []string{sock, config, link} {
		err = errors.Join(err, os.Lchown(path, 65534, 65534))
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, sources := range map[string]EndpointSources{
		"the node's socket":   {NodeSocket: sock, WellKnown: []string{own}},
		"a well-known socket": {WellKnown: []string{sock, own}},
		"a link to a socket":  {WellKnown: []string{link}},
		"crictl's file":       {CrictlConfig: config, WellKnown: []string{own}},
	} {
		if got, err := Discover(sources); err == nil ||
			!strings.Contains(err.Error(), "user 65534") || !strings.Contains(err.Error(), "--runtime-endpoint") {
			t.Errorf("%s: %+v %v", name, got, err)
		}
		sources.Given = []Endpoint{{Address: sock}}
		if got, err := Discover(sources); err != nil || got.Socket() != sock {
			t.Errorf("%s, and one that is named: %+v %v", name, got, err)
		}
	}
}

func TestRuntimeThatDoesNotAnswer(t *testing.T) {
	client, err := Connect(Endpoint{Address: "unix://" + socket(t), Origin: "test"}, "", 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	_, err = client.Version(t.Context(), nil)
	var unavailable *UnavailableError
	if !errors.As(err, &unavailable) || !strings.Contains(err.Error(), "no answer within 100ms") || !strings.Contains(err.Error(), "test") {
		t.Errorf("error %v", err)
	}
}

// TestTimeoutNamesTheRuntime checks that an error about the user's timeout names the runtime, but an interrupt does
// not.
func TestTimeoutNamesTheRuntime(t *testing.T) {
	client, err := Connect(Endpoint{Address: "unix://" + socket(t), Origin: "test"}, "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	cause := errors.New("gave up after 20ms (--timeout)")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, cause)
	defer cancel()
	_, err = client.Version(ctx, nil)
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), client.Endpoint.String()) {
		t.Errorf("error %v", err)
	}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = client.Version(interrupted, nil); err != context.Canceled { //nolint:errorlint // nothing is around it
		t.Errorf("error %v", err)
	}
}

func TestSocketsThatCannotBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, wantMessage := range map[string]string{"/absent.sock": "no such socket", file: "is not a socket"} {
		_, err := Connect(Endpoint{Address: "unix://" + path, Origin: "test"}, "", time.Second)
		if err == nil || !strings.Contains(err.Error(), wantMessage) {
			t.Errorf("%s: %v", path, err)
		}
		_, err = Connect(Endpoint{Address: "unix://" + socket(t), Origin: "test"}, path, time.Second)
		if err == nil || !strings.Contains(err.Error(), wantMessage) || !strings.Contains(err.Error(), path+" (--image-endpoint)") {
			t.Errorf("%s as the image service: %v", path, err)
		}
	}
}

// TestRuntimeNoticesTheTimeFirst checks that a call has the caller's error if the server notices the caller's deadline
// first.
func TestRuntimeNoticesTheTimeFirst(t *testing.T) {
	gaveUp := errors.New("gave up in time")
	ctx, cancel := context.WithTimeoutCause(t.Context(), deadlineSlack/2, gaveUp)
	defer cancel()
	c := connection{Client: &Client{Timeout: time.Minute}}
	invoke := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
		return status.Error(codes.DeadlineExceeded, "stream terminated by RST_STREAM with error code: CANCEL")
	}
	if err := c.intercept(ctx, "Status", nil, nil, nil, invoke); !errors.Is(err, gaveUp) {
		t.Errorf("it ended with %v", err)
	}
}

// TestSystemdCgroupOfAnOldRuntime checks the driver for containerd 1.x, which does not answer RuntimeConfig. It has the
// driver in the configuration of its default runtime.
func TestSystemdCgroupOfAnOldRuntime(t *testing.T) {
	for text, want := range map[string]bool{
		`{"containerd":{"defaultRuntimeName":"runc","runtimes":{"runc":{"options":{"SystemdCgroup":true}}}}}`: true,
		`{"containerd":{"defaultRuntimeName":"runc","runtimes":{"runc":{"options":{"BinaryName":"runc"}}}}}`:  false,
		`{"containerd":{"defaultRuntimeName":"kata","runtimes":{` +
			`"runc":{"options":{"SystemdCgroup":true}},"kata":{"options":null}}}}`: false,
		`not JSON`: false,
	} {
		if got := ReadInfo(map[string]string{"config": text}).SystemdCgroup(); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

// TestServer finds the process that listens at the socket of an endpoint.
func TestServer(t *testing.T) {
	if pid, err := (Endpoint{Address: "unix://" + socket(t)}).Server(t.Context()); err != nil || pid != os.Getpid() {
		t.Errorf("%d %v", pid, err)
	}
	for _, address := range []string{"unix://" + deadSocket(t), "tcp://x"} {
		if pid, err := (Endpoint{Address: address}).Server(t.Context()); err == nil {
			t.Errorf("%s: %d without a listener", address, pid)
		}
	}
}
