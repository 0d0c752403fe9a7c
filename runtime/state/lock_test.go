package state

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/filelock"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// With these variables the test binary acts as another process. They set its action and the root of the state
// directory.
const (
	roleEnv = "PODCTL_TEST_ROLE"
	rootEnv = "PODCTL_TEST_ROOT"
)

func TestMain(m *testing.M) {
	l := Layout{Root: os.Getenv(rootEnv)}
	switch os.Getenv(roleEnv) {
	case "holdLock":
		holdLock(l)
	case "fillDisk":
		writeBeyondLimit(l)
	default:
		runtimetest.Main(m)
	}
}

// emulatorEnv names the emulator for a test program that the machine cannot run directly.
const emulatorEnv = "PODCTL_TEST_EMULATOR"

// otherProcess returns a command that runs this test binary in a role. Its result is in the file that report returns.
func otherProcess(t *testing.T, role string, l Layout, args ...string) *exec.Cmd {
	t.Helper()
	line := append([]string{os.Args[0]}, args...)
	if emulator := os.Getenv(emulatorEnv); emulator != "" {
		line = append([]string{emulator}, line...)
	}
	cmd := exec.CommandContext(t.Context(), line[0], line[1:]...)
	cmd.Env = append(os.Environ(), roleEnv+"="+role, rootEnv+"="+l.Root)
	return cmd
}

func report(l Layout) string { return filepath.Join(filepath.Dir(l.Root), "report") }

// reportResult writes the result to the report file. Errors are ignored, because they could not be reported.
func reportResult(l Layout, err error) {
	_ = os.WriteFile(report(l)+".new", []byte(fmt.Sprint(err)), 0o600)
	_ = os.Rename(report(l)+".new", report(l))
}

// holdLock locks, reports that, and waits to be killed or for the end of the test.
func holdLock(l Layout) {
	lock, err := l.Pod(testUID).Lock(context.Background())
	reportResult(l, err)
	_, _ = io.Copy(io.Discard, os.Stdin) //nolint:forbidigo // it ends with the test
	if lock != nil {
		_ = lock.Unlock()
	}
}

// startHolder starts another process that holds the lock.
func startHolder(t *testing.T, l Layout) *exec.Cmd {
	t.Helper()
	cmd := otherProcess(t, "holdLock", l, "apply", "web.yaml", "https://user:secret@example.org/x", "--token=abc")
	// The pipe is closed when this process ends.
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(report(l))
	for errors.Is(err, fs.ErrNotExist) {
		time.Sleep(time.Millisecond)
		text, err = os.ReadFile(report(l))
	}
	if string(text) != "<nil>" {
		t.Fatalf("the holder printed %q, %v", text, err)
	}
	return cmd
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

func mustLock(t *testing.T, pod Pod) *filelock.Lock {
	t.Helper()
	lock, err := pod.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

func TestLockTimeoutNamesHolder(t *testing.T) {
	l := newLayout(t)
	holder := startHolder(t, l)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	lock, err := l.Pod(testUID).Lock(ctx)
	locked := (*filelock.LockedError)(nil)
	if lock != nil || !errors.As(err, &locked) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Lock = %v, %v; want a LockedError because of the deadline", lock, err)
	}
	if waited := time.Since(began); waited < 50*time.Millisecond {
		t.Errorf("gave up after %v, want to wait for the deadline", waited)
	}
	if want := fmt.Sprintf("pid %d (", holder.Process.Pid); !strings.Contains(err.Error(), want) {
		t.Errorf("error %q does not name the holder with %q", err, want)
	}
	if !strings.Contains(locked.Holder, "apply web.yaml)") {
		t.Errorf("holder %q, want its plain words and nothing else", locked.Holder)
	}
	kill(t, holder)
}

func TestLockOfADeadProcessIsFree(t *testing.T) {
	l := newLayout(t)
	kill(t, startHolder(t, l))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	lock, err := l.Pod(testUID).Lock(ended)
	if err != nil {
		t.Fatalf("the lock of a dead process blocks: %v", err)
	}
	if err := lock.Unlock(); err != nil {
		t.Error(err)
	}
}

func TestLocksOfTwoPodsDoNotMeet(t *testing.T) {
	l := newLayout(t)
	first, second := mustLock(t, l.Pod("u1")), mustLock(t, l.Pod("u2"))
	if err := errors.Join(first.Unlock(), second.Unlock()); err != nil {
		t.Error(err)
	}
}

func TestLockAdmitsOneAtATime(t *testing.T) {
	pod := newLayout(t).Pod(testUID)
	var inside, total atomic.Int32
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			lock, err := pod.Lock(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			if n := inside.Add(1); n != 1 {
				t.Errorf("%d hold the lock at once", n)
			}
			time.Sleep(time.Millisecond)
			inside.Add(-1)
			total.Add(1)
			change := pod.leave
			if i%3 == 0 {
				change = pod.come
			}
			if err := change(); err != nil {
				t.Error(err)
			}
			if err := lock.Unlock(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if total.Load() != 20 {
		t.Errorf("%d got the lock, want 20", total.Load())
	}
}

// come creates the pod's directory, and leave removes it.
func (p Pod) come() error { return os.MkdirAll(p.Dir(), 0o700) }

func (p Pod) leave() error { return os.RemoveAll(p.Dir()) }

// TestLockIsNotStarved locks repeatedly without a pause, like a process that makes one pass after another, and checks
// that a waiting process still gets the lock.
func TestLockIsNotStarved(t *testing.T) {
	pod := newLayout(t).Pod(testUID)
	if err := errors.Join(pod.layout.Locks().make(), pod.come()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var rounds atomic.Int32
	var greedy sync.WaitGroup
	started := make(chan struct{})
	greedy.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			if rounds.Add(1) > 40 {
				t.Error("the other one starves")
				stop()
			}
			lock, err := pod.Lock(t.Context()) //nolint:contextcheck // the end of ctx is no error of this one
			if err != nil {
				t.Error(err)
				return
			}
			if i == 0 {
				close(started)
			}
			time.Sleep(20 * time.Millisecond)
			if err := lock.Unlock(); err != nil {
				t.Error(err)
			}
		}
	})
	<-started
	for range 20 {
		rounds.Store(0)
		lock, err := pod.Lock(ctx)
		if err != nil {
			break
		}
		if err := lock.Unlock(); err != nil {
			t.Error(err)
		}
	}
	stop()
	greedy.Wait()
}

func TestLockFileIsRemovedWithThePod(t *testing.T) {
	pod := newLayout(t).Pod(testUID)
	lock := mustLock(t, pod)
	if err := errors.Join(pod.come(), lock.Unlock()); err != nil {
		t.Fatal(err)
	}
	wantMode(t, pod.lockFile(), 0o600)
	if text, err := os.ReadFile(pod.lockFile()); err != nil || !strings.HasPrefix(string(text), fmt.Sprintf("pid %d (", os.Getpid())) {
		t.Errorf("a free lock names %q and not who held it last (%v)", text, err)
	}
	lock = mustLock(t, pod)
	if err := errors.Join(pod.leave(), lock.Unlock()); err != nil {
		t.Fatal(err)
	}
	wantGone(t, pod.lockFile())
}

// TestLockOnARemovedFileDoesNotCount removes the file of a held lock while another process waits. The waiting process
// must get the lock of the file that new processes see.
func TestLockOnARemovedFileDoesNotCount(t *testing.T) {
	pod := newLayout(t).Pod(testUID)
	first := mustLock(t, pod)
	got := make(chan *filelock.Lock)
	go func() {
		lock, err := pod.Lock(t.Context())
		if err != nil {
			t.Error(err)
		}
		got <- lock
	}()
	time.Sleep(30 * time.Millisecond)
	if err := first.Unlock(); err != nil {
		t.Fatal(err)
	}
	second := <-got
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if lock, err := pod.Lock(ctx); err == nil {
		t.Error("two hold the lock after the file was removed")
		_ = lock.Unlock()
	}
	if err := second.Unlock(); err != nil {
		t.Error(err)
	}
}

func TestLockDoesNotFollowLinks(t *testing.T) {
	pod := newLayout(t).Pod(testUID)
	other := t.TempDir() + "/other"
	write(t, other, "untouched")
	if err := pod.layout.Locks().make(); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, pod.lockFile()); err != nil {
		t.Fatal(err)
	}
	if _, err := pod.Lock(t.Context()); err == nil {
		t.Error("locking through a link succeeded, want an error")
	}
	if text, err := os.ReadFile(other); err != nil || string(text) != "untouched" {
		t.Errorf("the other file is now %q (%v)", text, err)
	}
}

// TestLockIsAFile checks that only a regular file is used as a lock.
func TestLockIsAFile(t *testing.T) {
	for name, mknod := range map[string]func(path string) error{
		"a pipe":   mkfifo,
		"a device": func(path string) error { return unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))) },
	} {
		t.Run(name, func(t *testing.T) {
			pod := newLayout(t).Pod(testUID)
			if err := pod.layout.Locks().make(); err != nil {
				t.Fatal(err)
			}
			if err := mknod(pod.lockFile()); errors.Is(err, os.ErrPermission) {
				t.Skip("devices are made by root")
			} else if err != nil {
				t.Fatal(err)
			}
			if _, err := pod.Lock(t.Context()); err == nil ||
				!strings.Contains(err.Error(), pod.lockFile()+" is not a regular file: remove it") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestLockThatCannotBeOpenedIsAnError(t *testing.T) {
	pod := newLayout(t).Pod(testUID)
	if err := pod.layout.Locks().make(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(pod.layout.Root, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(pod.layout.Locks().dir(), 0o555); err != nil {
		t.Fatal(err)
	}
	var err error
	asOrdinaryUser(t, func() { _, err = pod.Lock(t.Context()) })
	if !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), "opening the lock") {
		t.Errorf("error %v, want one about opening the lock", err)
	}
}

// TestSweep checks that the files of free locks without a pod, and empty directories of pods, are removed.
func TestSweep(t *testing.T) {
	l := Layout{Root: filepath.Join(t.TempDir(), "state")}
	lock := func(uid types.UID) *filelock.Lock {
		held, err := l.Pod(uid).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return held
	}
	held := lock("held")
	for _, dir := range []string{filepath.Join(l.Pod("kept").Dir(), "volumes"), l.Pod("empty").Dir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"gone.lock", "kept.lock", "empty.lock", "_node.lock", "notes"} {
		if err := os.WriteFile(filepath.Join(l.Locks().dir(), name), []byte("pid 1 (podctl)\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Locks().Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := namesIn(t, l.Locks().dir()); !slices.Equal(left, []string{"held.lock", "kept.lock", "notes"}) {
		t.Errorf("left are %v", left)
	}
	if left := namesIn(t, l.pods()); !slices.Equal(left, []string{"kept"}) {
		t.Errorf("left are the directories %v", left)
	}
	if err := held.Unlock(); err != nil {
		t.Error(err)
	}
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}
