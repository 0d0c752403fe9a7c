package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"github.com/prometheus/procfs"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/containerd"
	"github.com/podctl/podctl/runtime/safefs"
)

// stopTimeout is how long containerd has to exit by itself.
const stopTimeout = time.Minute

// Down stops the pods of the node, its containerd and its shims, and removes its mounts, network and files. It ends
// only processes of the node. A missing node is not an error.
func Down(ctx context.Context, o Options) error {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return fmt.Errorf("taking the node down: %w", err)
	}
	l := layout(dir)
	if _, statErr := os.Stat(dir); errors.Is(statErr, fs.ErrNotExist) {
		return nil
	}
	unlock, err := lockDir(ctx, l)
	if err != nil {
		return err
	}
	defer unlock()
	if _, statErr := os.Stat(dir); errors.Is(statErr, fs.ErrNotExist) {
		// Another podctl has taken it down meanwhile.
		return nil
	}
	if err := safefs.CheckDir(dir); err != nil {
		return fmt.Errorf("taking the node down: %w", err)
	}
	if err := stopPods(ctx, l, &o); err != nil {
		return err
	}
	if err := stopContainerd(ctx, l); err != nil {
		return err
	}
	if err := killShims(l); err != nil {
		return err
	}
	return clean(ctx, l)
}

// stopPods removes every sandbox, and with them containers, network namespaces and mounts. If containerd has died, it
// is started again for this, because only containerd can remove its pods cleanly.
func stopPods(ctx context.Context, l layout, o *Options) error {
	p, running, err := readProcess(l)
	if err != nil {
		return err
	}
	if p == nil || p.PID == 0 {
		return nil // It has never been started.
	}
	if !running {
		o.report("starting containerd again to take its pods down")
	}
	if _, err := revive(ctx, l, o, p); err != nil {
		return err
	}
	return withRuntime(l, func(client runtimeapi.RuntimeServiceClient) error {
		reply, err := client.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
		if err != nil {
			return err
		}
		return l.removePods(ctx, client, reply.GetItems(), removeTimeout, o.report)
	})
}

// removeTimeout is how long containerd has to remove one sandbox.
const removeTimeout = 2 * time.Minute

// removePods removes sandboxes. A sandbox that containerd does not remove in time does not block the others or the next
// steps; its processes end with the shims.
func (l layout) removePods(
	ctx context.Context, client runtimeapi.RuntimeServiceClient,
	pods []*runtimeapi.PodSandbox, limit time.Duration, report func(string, ...any),
) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	stuck := make([]error, len(pods))
	for i, s := range pods {
		group.Go(func() error {
			podCtx, cancel := context.WithTimeout(groupCtx, limit)
			defer cancel()
			err := l.removePod(podCtx, client, s.GetId())
			if podCtx.Err() != nil && groupCtx.Err() == nil {
				stuck[i], err = err, nil
			}
			return err
		})
	}
	err := group.Wait()
	for _, one := range stuck {
		if one != nil {
			report("containerd does not remove a pod in time; podctl ends its processes and removes its mounts: %v",
				one)
		}
	}
	return err
}

func (l layout) removePod(ctx context.Context, client runtimeapi.RuntimeServiceClient, id string) error {
	err := containerd.Retry(ctx, func(ctx context.Context) error {
		_, err := client.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id})
		if err == nil {
			_, err = client.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id})
		}
		return err
	}, func(ctx context.Context) error { return l.freeContainers(ctx, client, id) })
	return safefs.Wrapf(err, "removing sandbox %s", id)
}

// freeContainers ends the tasks that the CRI has lost in one sandbox.
func (l layout) freeContainers(ctx context.Context, client runtimeapi.RuntimeServiceClient, sandbox string) error {
	reply, err := client.ListContainers(ctx, &runtimeapi.ListContainersRequest{
		Filter: &runtimeapi.ContainerFilter{PodSandboxId: sandbox},
	})
	if err != nil {
		return err
	}
	for _, c := range reply.GetContainers() {
		_, err := client.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: c.GetId()})
		if containerd.IsStuckTask(err) {
			err = containerd.KillTask(ctx, l.socket(), c.GetId())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stopContainerd sends SIGTERM to the process, and SIGKILL after a while.
func stopContainerd(ctx context.Context, l layout) error {
	p, running, err := readProcess(l)
	if err != nil || !running {
		return err
	}
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		if err := signalIf(p.PID, signal, func() bool { return p.alive(l) }); err != nil {
			return fmt.Errorf("stopping containerd: %w", err)
		}
		if waitGone(ctx, l, p) {
			return nil
		}
	}
	return fmt.Errorf("containerd, pid %d, does not exit", p.PID)
}

func waitGone(ctx context.Context, l layout, p *process) bool {
	gone := func(context.Context) (bool, error) { return !p.alive(l), nil }
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, stopTimeout, true, gone) == nil
}

// killShims ends shims that still serve this node's socket, and the processes of their containers, which would
// otherwise continue to run.
func killShims(l layout) error {
	processes, err := procfs.AllProcs()
	if err != nil {
		return fmt.Errorf("looking for shims: %w", err)
	}
	for _, p := range processes {
		serves := func() bool { return isShim(p, l.socket()) }
		if !serves() {
			continue
		}
		if err := errors.Join(killChildren(p.PID, serves), signalIf(p.PID, unix.SIGKILL, serves)); err != nil {
			return fmt.Errorf("stopping a shim: %w", err)
		}
	}
	return nil
}

// killChildren ends the children of a process while meant is true for it. The end of a container's first process ends
// the others in its pid namespace.
func killChildren(parent int, meant func() bool) error {
	var errs []error
	for _, pid := range childrenOf(parent) {
		errs = append(errs, signalIf(pid, unix.SIGKILL, func() bool {
			return meant() && slices.Contains(childrenOf(parent), pid)
		}))
	}
	return errors.Join(errs...)
}

// childrenOf returns the children of a process, or none if it is gone.
func childrenOf(parent int) []int {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	if err != nil {
		return nil
	}
	var found []int
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // The thread has ended, and its children have another parent.
		}
		for field := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil {
				found = append(found, pid)
			}
		}
	}
	return found
}

// isShim reports whether a process is a shim that serves a socket. The command line is not enough, because any process
// can set it. The process must also belong to podctl's user, and its program must be a shim.
func isShim(p procfs.Proc, socket string) bool {
	args, err := p.CmdLine()
	if err != nil || !isShimCommand(args, socket) {
		return false
	}
	exe, err := p.Executable()
	return err == nil && isOurs(p.PID) && strings.HasPrefix(filepath.Base(exe), shimPrefix)
}

// shimPrefix is the prefix for names of containerd's shims.
const shimPrefix = "containerd-shim"

// isShimCommand reports whether a command line is that of a shim for a socket.
func isShimCommand(args []string, socket string) bool {
	return len(args) > 0 && strings.HasPrefix(filepath.Base(args[0]), shimPrefix) && slices.Contains(args, socket)
}

// clean removes mounts, network and files.
func clean(ctx context.Context, l layout) error {
	if err := Unmount(string(l)); err != nil {
		return err
	}
	// If the record is missing or damaged, the network is unknown.
	if p, _, err := readProcess(l); err == nil && p != nil && p.Bridge != "" {
		if err := errors.Join(removeBridge(p.Bridge), removeCNI(ctx, p.Bridge)); err != nil {
			return fmt.Errorf("removing the node's network: %w", err)
		}
	}
	if err := os.RemoveAll(string(l)); err != nil {
		return fmt.Errorf("removing the node's files: %w", err)
	}
	for _, dir := range sharedDirs() {
		_ = os.Remove(dir) // This fails if the directory has files of another containerd, as intended.
	}
	return nil
}

// sharedDirs returns the directories that each containerd and its shims create outside of their own, the innermost
// first. /run/netns stays: in another mount namespace, a tmpfs with the networks of another node can be mounted on it,
// and the kernel would unmount it together with the directory.
func sharedDirs() []string {
	return []string{"/run/containerd/runc/k8s.io", "/run/containerd/runc", "/run/containerd/s", "/run/containerd"}
}

// Unmount removes all mounts below a directory.
func Unmount(dir string) error {
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil {
		return fmt.Errorf("looking for mounts: %w", err)
	}
	for _, m := range slices.Backward(mounts) {
		err := unix.Unmount(m.Mountpoint, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		// A mount below another one cannot be reached, and is removed with its directory.
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("unmounting %s: %w", m.Mountpoint, err)
		}
	}
	return nil
}

// removeBridge shuts a bridge down and removes it. A missing one is not an error.
func removeBridge(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return fmt.Errorf("removing the bridge: %w", err)
	}
	defer unix.Close(fd) //nolint:errcheck // a socket that carried two ioctls
	request, err := unix.NewIfreq(name)
	if err != nil {
		return fmt.Errorf("removing the bridge: %w", err)
	}
	request.SetUint16(0)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		if errors.Is(err, unix.ENODEV) {
			return nil
		}
		return fmt.Errorf("taking the bridge %s down: %w", name, err)
	}
	return safefs.Wrapf(unix.IoctlIfreq(fd, unix.SIOCBRDELBR, request), "removing the bridge %s", name)
}
