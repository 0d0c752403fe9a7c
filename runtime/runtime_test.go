package runtime

import (
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// TestImageServiceThatDoesNotAnswer checks that errors of a separate image service name it, and not the runtime, which
// answers.
func TestImageServiceThatDoesNotAnswer(t *testing.T) {
	l := newLab(t, "i:1")
	images := silentSocket(t)
	client, err := cri.Connect(l.engine.Client.Endpoint, images, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if _, err = client.Version(t.Context(), nil); err != nil {
		t.Error(err)
	}
	client.Timeout = 10 * time.Millisecond
	_, err = client.Images.ListImages(t.Context(), nil)
	var unavailable *cri.UnavailableError
	if !errors.As(err, &unavailable) || unavailable.Endpoint != (cri.Endpoint{Address: "unix://" + images, Origin: "--image-endpoint"}) {
		t.Errorf("error %v", err)
	}
}

// TestRuntimeThatIsStarting checks that a wait continues while containerd answers but is not initialized.
func TestRuntimeThatIsStarting(t *testing.T) {
	l := newLab(t)
	starting := errors.New("server is not initialized yet")
	l.server.Fail(runtimetest.Fault{Method: "Version", Times: 1, Err: starting})
	_, err := l.engine.Client.Version(t.Context(), nil)
	if gone := (*cri.UnavailableError)(nil); !errors.As(err, &gone) || !strings.Contains(err.Error(), "is starting") {
		t.Errorf("error %v", err)
	}
	l.server.Fail(runtimetest.Fault{Method: "Version", Times: 1, Err: starting})
	if err := l.engine.Client.WithRetries(t.Context(), func() error {
		_, err := l.engine.Client.Version(t.Context(), nil)
		return err
	}); err != nil {
		t.Errorf("queried again: %v", err)
	}
}

// silentSocket listens on a unix socket and never answers.
func silentSocket(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cri.sock")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return path
}
