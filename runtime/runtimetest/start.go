package runtimetest

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Start starts an in-memory runtime that ends with the test, and returns its endpoint. Its clock stands still until it
// is advanced.
func Start(t *testing.T, images ...string) (*Server, *Clock, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "podctl-lab-") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	clock := NewClock(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC))
	socket := filepath.Join(dir, "cri.sock")
	server, err := NewServer(t.Context(), socket, clock, images...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server, clock, "unix://" + socket
}
