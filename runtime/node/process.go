package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apimachinery/pkg/util/wait"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/filelock"
	"github.com/podctl/podctl/runtime/safefs"
)

// process is the containerd of a node, as recorded on disk.
type process struct {
	// PID is zero from before the first start until the process id is known.
	PID int `json:"pid"`
	// StartTicks distinguishes the process from a later one with the same pid.
	StartTicks uint64 `json:"startTicks"`
	Version    string `json:"version"`
	// Program and SandboxImage are those that the node was started with.
	Program      string `json:"program"`
	SandboxImage string `json:"sandboxImage"`
	CgroupDriver string `json:"cgroupDriver,omitempty"`
	Subnet       string `json:"subnet"`
	Bridge       string `json:"bridge"`

	// found is set for a running process that is not recorded yet.
	found bool
}

func (l layout) processFile() string { return l.path("process.json") }

// pidFile has the pid for a service manager.
func (l layout) pidFile() string { return l.path("containerd.pid") }

// readProcess returns the node's process, and whether it is alive and belongs to this node.
func readProcess(l layout) (*process, bool, error) {
	text, err := os.ReadFile(l.processFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading the node's process: %w", err)
	}
	var p process
	if err = json.Unmarshal(text, &p); err != nil {
		return nil, false, nil //nolint:nilerr // a crash can leave half a file: no process is recorded
	}
	if p.alive(l) {
		return &p, true, nil
	}
	err = p.find(l)
	return &p, p.found, err
}

// find looks for the process of a podctl that was killed after it started the process and before it recorded it. A
// second containerd could not use the files of the first.
func (p *process) find(l layout) error {
	processes, err := procfs.AllProcs()
	if err != nil {
		return fmt.Errorf("looking for the node's process: %w", err)
	}
	for _, one := range processes {
		args, err := one.CmdLine()
		if err != nil || !slices.Equal(args[max(0, len(args)-2):], l.arguments()) || !seesOurs(one.PID, l) {
			continue
		}
		q := *p
		q.PID, q.found = one.PID, true
		if q.StartTicks, _ = startTicks(q.PID); q.alive(l) {
			*p = q
			return nil
		}
	}
	return nil
}

// seesOurs reports whether a process sees the same directory of the node as podctl. This is necessary because
// containers have processes with arbitrary arguments.
func seesOurs(pid int, l layout) bool {
	ours, err := os.Stat(l.path())
	if err != nil {
		return false
	}
	handle, err := safefs.HandleIn(fmt.Sprintf("/proc/%d/root", pid), l.path())
	if err != nil {
		return false
	}
	defer handle.Close() //nolint:errcheck // it was only a path
	theirs, err := handle.Stat()
	return err == nil && os.SameFile(ours, theirs)
}

// arguments returns the arguments of the node's containerd.
func (l layout) arguments() []string { return []string{"--config", l.config()} }

// alive reports whether the process runs and was started for this node: it has podctl's user, the recorded start time
// and the node's configuration.
func (p *process) alive(l layout) bool {
	ticks, state := startTicks(p.PID)
	if ticks == 0 || ticks != p.StartTicks || state == "Z" || !isOurs(p.PID) {
		return false
	}
	proc, err := procfs.NewProc(p.PID)
	if err != nil {
		return false
	}
	args, err := proc.CmdLine()
	return err == nil && mayHaveArgument(args, l.config())
}

// mayHaveArgument reports whether a process that is not a zombie was started with an argument. Until exec has finished,
// which may be after its parent notices, a process has no arguments.
func mayHaveArgument(args []string, wanted string) bool {
	return len(args) == 0 || slices.Contains(args, wanted)
}

// isOurs reports whether a process runs as podctl's user.
func isOurs(pid int) bool {
	var stat unix.Stat_t
	err := unix.Stat(fmt.Sprintf("/proc/%d", pid), &stat)
	return err == nil && int(stat.Uid) == os.Geteuid()
}

// signalIf sends a signal to a process if believed is true. It holds a pidfd meanwhile, so no other process can have
// the pid when the signal arrives.
func signalIf(pid int, signal os.Signal, believed func() bool) error {
	held, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	defer held.Release() //nolint:errcheck // it frees a descriptor
	if !believed() {
		return nil
	}
	if err := held.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// startTicks returns the start time of a process in clock ticks since boot, and its state. It returns zero if the
// process does not exist.
func startTicks(pid int) (uint64, string) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return 0, ""
	}
	stat, err := proc.Stat()
	if err != nil {
		return 0, ""
	}
	return stat.Starttime, stat.State
}

// start starts containerd so that it outlives this process.
func start(l layout, p process) (*process, error) {
	err := os.Remove(l.socket())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("starting containerd: %w", err)
	}
	log, err := os.OpenFile(l.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting containerd: %w", err)
	}
	defer log.Close() //nolint:errcheck // the child has its own copy
	program, err := safefs.OpenProgram(p.Program)
	if err != nil {
		return nil, fmt.Errorf("starting containerd: %w", err)
	}
	defer program.Close() //nolint:errcheck // A handle on a program.
	if err = p.announce(l); err != nil {
		return nil, fmt.Errorf("starting containerd: %w", err)
	}
	cmd := program.Command(context.Background(), l.arguments()...) // It outlives this process.
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir, cmd.Env = "/", environ(p.Program)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err = cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting containerd: %w", err)
	}
	p.PID = cmd.Process.Pid
	p.StartTicks, _ = startTicks(p.PID)
	if err = p.remember(l); err != nil {
		return nil, fmt.Errorf("starting containerd: %w", err)
	}
	go cmd.Wait() //nolint:errcheck // reaps it if it dies while we still run
	return &p, nil
}

// announce records that a process is about to start. An existing record of a process stays until there is a new one.
func (p *process) announce(l layout) error {
	if err := os.Remove(l.pidFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := os.Lstat(l.processFile()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return p.write(l)
}

// remember records the node's process.
func (p *process) remember(l layout) error {
	pid := strconv.AppendInt(nil, int64(p.PID), 10)
	return errors.Join(p.write(l), safefs.WriteFile(l.pidFile(), append(pid, '\n')))
}

func (p *process) write(l layout) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return safefs.WriteFile(l.processFile(), text)
}

// errEnded reports that containerd exited during the wait.
var errEnded = errors.New("containerd exited soon after its start")

// waitHealthy waits until the CRI reports that it is ready.
func waitHealthy(ctx context.Context, l layout, p *process) error {
	var last error
	check := func(ctx context.Context) (bool, error) {
		if !p.alive(l) {
			return false, fmt.Errorf("%w; the end of its log %s:\n%s", errEnded, l.log(), tail(l.log()))
		}
		last = healthy(ctx, l)
		return last == nil, nil
	}
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, healthTimeout, true, check)
	switch {
	case err == nil:
		return errors.Join(os.Chmod(l.socket(), 0o600), os.Chmod(l.shimSocket(), 0o600))
	case errors.Is(err, errEnded):
		return err
	}
	return fmt.Errorf("containerd did not become healthy in time: %w; its log is %s", last, l.log())
}

// queryTimeout limits one call to the node's CRI.
const queryTimeout = 30 * time.Second

func healthy(ctx context.Context, l layout) error {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	return withRuntime(l, func(client runtimeapi.RuntimeServiceClient) error {
		reply, err := client.Status(ctx, &runtimeapi.StatusRequest{})
		if err != nil {
			return err
		}
		for _, c := range reply.GetStatus().GetConditions() {
			needed := c.GetType() == runtimeapi.RuntimeReady || c.GetType() == runtimeapi.NetworkReady
			if needed && !c.GetStatus() {
				return fmt.Errorf("%s: %s", c.GetType(), c.GetMessage())
			}
		}
		return nil
	})
}

// withRuntime calls the node's CRI over a separate connection.
func withRuntime(l layout, talk func(runtimeapi.RuntimeServiceClient) error) error {
	return withConnection(l, func(conn *grpc.ClientConn) error {
		return talk(runtimeapi.NewRuntimeServiceClient(conn))
	})
}

func withConnection(l layout, talk func(*grpc.ClientConn) error) error {
	conn, err := grpc.NewClient("unix://"+l.socket(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	return errors.Join(talk(conn), conn.Close())
}

func countPods(ctx context.Context, l layout) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	n := 0
	err := withRuntime(l, func(client runtimeapi.RuntimeServiceClient) error {
		reply, listErr := client.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
		n = len(reply.GetItems())
		return listErr
	})
	return n, err
}

// tailMax is how much of the end of a log is read: containers cause lines in it.
const tailMax = 64 << 10

// tail returns the end of a log for an error message.
func tail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close() //nolint:errcheck // it was only read
	if info, statErr := f.Stat(); statErr == nil {
		_, _ = f.Seek(max(info.Size()-tailMax, 0), io.SeekStart)
	}
	text, err := io.ReadAll(io.LimitReader(f, tailMax))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "  " + strings.Join(lines[max(len(lines)-8, 0):], "\n  ")
}

// lockDir lets only one podctl at a time start or stop a node. The lock's file stays. If it were removed, a waiting
// process would lock the removed file while another one creates a new file.
func lockDir(ctx context.Context, l layout) (unlock func(), err error) {
	if err = os.MkdirAll(filepath.Dir(string(l)), 0o700); err != nil {
		return nil, fmt.Errorf("locking the node: %w", err)
	}
	// A user who can write there chooses the program that is started as containerd.
	if err = safefs.CheckDir(filepath.Dir(string(l))); err != nil {
		return nil, fmt.Errorf("the state directory cannot be trusted: %w", err)
	}
	file := filelock.File{
		Path:  string(l) + ".lock",
		Keeps: func() (bool, error) { return true, nil },
	}
	lock, err := filelock.Take(ctx, file, func(string) {})
	if locked := (*filelock.LockedError)(nil); errors.As(err, &locked) {
		locked.What = "the node"
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("locking the node: %w", err)
	}
	return func() { _ = lock.Unlock() }, nil
}
