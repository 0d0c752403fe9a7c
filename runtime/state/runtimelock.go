package state

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/podctl/podctl/runtime/filelock"
)

// RuntimeLockDir is where the locks of runtimes lie, for agents of all state directories.
const RuntimeLockDir = "/run"

// Runtime takes a container runtime for one agent, whatever state directory others have. The lock lies in a directory that all
// agents share. Another agent is not waited for: the error is a *filelock.LockedError then, and names its state directory.
func (s Locks) Runtime(ctx context.Context, dir, endpoint string) (*filelock.Lock, error) {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	name := fmt.Sprintf("podctl-agent-%x%s", sha256.Sum256([]byte(resolved(endpoint))), lockSuffix)
	words := []string{"podctl", "agent", "of", s.layout.Root}
	return filelock.Take(ctx, filelock.File{Path: filepath.Join(dir, name), Command: words}, func(string) {})
}

// resolved is an endpoint without links: two that lead to one socket are one.
func resolved(endpoint string) string {
	path := strings.TrimPrefix(endpoint, "unix://")
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}
