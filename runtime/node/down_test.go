package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// busyRuntime always reports one sandbox as busy, and removes the others.
type busyRuntime struct {
	runtimeapi.RuntimeServiceClient
	busy    string
	mu      sync.Mutex
	removed []string
}

func (r *busyRuntime) StopPodSandbox(
	_ context.Context, in *runtimeapi.StopPodSandboxRequest, _ ...grpc.CallOption,
) (*runtimeapi.StopPodSandboxResponse, error) {
	if in.GetPodSandboxId() == r.busy {
		return nil, errors.New("container is already in removing state")
	}
	return &runtimeapi.StopPodSandboxResponse{}, nil
}

func (r *busyRuntime) RemovePodSandbox(
	_ context.Context, in *runtimeapi.RemovePodSandboxRequest, _ ...grpc.CallOption,
) (*runtimeapi.RemovePodSandboxResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.removed = append(r.removed, in.GetPodSandboxId())
	return &runtimeapi.RemovePodSandboxResponse{}, nil
}

// TestBusySandboxDoesNotBlockOthers checks that a sandbox that containerd never removes is reported and blocks neither
// the removal of others nor the next steps.
func TestBusySandboxDoesNotBlockOthers(t *testing.T) {
	r := &busyRuntime{busy: "stuck"}
	var reported []string
	report := func(format string, args ...any) { reported = append(reported, fmt.Sprintf(format, args...)) }
	pods := []*runtimeapi.PodSandbox{{Id: "stuck"}, {Id: "one"}, {Id: "two"}}
	if err := layout(t.TempDir()).removePods(t.Context(), r, pods, 50*time.Millisecond, report); err != nil {
		t.Error(err)
	}
	slices.Sort(r.removed)
	if !slices.Equal(r.removed, []string{"one", "two"}) ||
		len(reported) != 1 || !strings.Contains(reported[0], "removing sandbox stuck: ") {
		t.Errorf("removed %v, reported %q", r.removed, reported)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := layout(t.TempDir()).removePods(ctx, r, pods, time.Minute, report); err == nil || len(reported) != 1 {
		t.Errorf("after the end: %v, reported %q", err, reported)
	}
}

// TestChildrenEndWithTheirShim checks that the children of a shim are found and killed, unless the process has been
// replaced.
func TestChildrenEndWithTheirShim(t *testing.T) {
	parent := exec.CommandContext(t.Context(), "sh", "-c", "sleep 1000 & echo started; wait $!; exit $?")
	out, err := parent.StdoutPipe()
	if err == nil {
		err = parent.Start()
	}
	if err == nil {
		_, err = out.Read(make([]byte, len("started")))
	}
	pid := parent.Process.Pid
	children := childrenOf(pid)
	if err != nil || len(children) != 1 {
		t.Fatal(children, err)
	}
	if err := killChildren(pid, func() bool { return false }); err != nil || unix.Kill(children[0], 0) != nil {
		t.Errorf("a child of another process was killed: %v", err)
	}
	if err := killChildren(pid, func() bool { return true }); err != nil {
		t.Error(err)
	}
	if err := parent.Wait(); err == nil || parent.ProcessState.ExitCode() != 128+int(unix.SIGKILL) {
		t.Errorf("the child ended with %v", err)
	}
}

// TestOverlayTestClearsTheOneBefore checks that the mount of an interrupted check is removed.
func TestOverlayTestClearsTheOneBefore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "overlay-test")
	merged := filepath.Join(dir, "merged")
	if err := os.MkdirAll(merged, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := unix.Mount("tmpfs", merged, "tmpfs", 0, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(merged, unix.MNT_DETACH) }) // The mount still exists if the test failed.
	}
	overlayWorks(dir)
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", dir, err)
	}
}
