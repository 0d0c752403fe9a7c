package state

import (
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

func mkfifo(path string) error { return unix.Mkfifo(path, 0o600) }

func sparse(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

// TestReadersNeverSeeHalfACheckpoint reads while another goroutine replaces the checkpoint, and checks that each result
// is a whole written checkpoint.
func TestReadersNeverSeeHalfACheckpoint(t *testing.T) {
	pod := newLayout(t).Pod(testUID)
	long := fullCheckpoint()
	long.Source = strings.Repeat("x", 100000)
	if err := pod.Checkpoint().Write(fullCheckpoint()); err != nil {
		t.Fatal(err)
	}
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := range 20 {
			j := *fullCheckpoint()
			if i%2 == 0 {
				j = *long
			}
			if err := pod.Checkpoint().Write(&j); err != nil {
				t.Error(err)
			}
		}
	})
	for range 200 {
		if j, err := pod.Checkpoint().Read(); err != nil || j.Generation != 3 {
			t.Fatalf("ReadCheckpoint = %v, %v", j, err)
		}
	}
	writer.Wait()
}

func TestFailedWriteKeepsPreviousCheckpoint(t *testing.T) {
	l := newLayout(t)
	pod := l.Pod(testUID)
	if err := pod.Checkpoint().Write(&Checkpoint{Memory: model.Memory{Generation: 1}}); err != nil {
		t.Fatal(err)
	}
	if err := otherProcess(t, "fillDisk", l).Run(); err != nil {
		t.Fatal(err)
	}
	output, err := os.ReadFile(report(l))
	if err != nil || !strings.Contains(string(output), "the previous one is kept") {
		t.Fatalf("writing beyond the limit: %q (%v), want an error that names the kept file", output, err)
	}
	j, err := pod.Checkpoint().Read()
	if err != nil || j.Generation != 1 {
		t.Errorf("ReadCheckpoint = %+v, %v; want generation 1", j, err)
	}
	if entries := names(t, pod.Dir()); len(entries) != 1 {
		t.Errorf("the pod's directory holds %v, want the checkpoint alone", entries)
	}
}

// TestFailedFirstWriteKeepsNothing checks that a failed first write leaves no checkpoint.
func TestFailedFirstWriteKeepsNothing(t *testing.T) {
	l := newLayout(t)
	if err := otherProcess(t, "fillDisk", l).Run(); err != nil {
		t.Fatal(err)
	}
	output, err := os.ReadFile(report(l))
	if err != nil || !strings.Contains(string(output), "writing the checkpoint") || strings.Contains(string(output), "kept") {
		t.Errorf("writing beyond the limit: %q (%v)", output, err)
	}
}

// writeBeyondLimit writes a checkpoint above the file size limit, as on a full disk, and reports the result.
func writeBeyondLimit(l Layout) {
	signal.Ignore(unix.SIGXFSZ)
	err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1000, Max: 1000})
	if err == nil {
		err = l.Pod(testUID).Checkpoint().Write(&Checkpoint{Memory: model.Memory{Generation: 2}, Source: strings.Repeat("x", 5000)})
	}
	reportResult(l, err)
}

func TestLeftoversOfAKilledWriterGo(t *testing.T) {
	pod := newLayout(t).Pod(testUID)
	if err := pod.Checkpoint().Write(&Checkpoint{Memory: model.Memory{Generation: 1}}); err != nil {
		t.Fatal(err)
	}
	leftover := filepath.Join(pod.Dir(), ".checkpoint.json1234567")
	write(t, leftover, `{"ver`)
	if err := pod.Checkpoint().Write(&Checkpoint{Memory: model.Memory{Generation: 2}}); err != nil {
		t.Fatal(err)
	}
	wantGone(t, leftover)
	write(t, leftover, `{"ver`)
	if err := pod.Checkpoint().Remove(); err != nil {
		t.Fatal(err)
	}
	wantGone(t, pod.Dir())
}

func TestRemoveCheckpointRemovesThePodAndNothingElse(t *testing.T) {
	l := newLayout(t)
	pod, other := l.Pod(testUID), l.Pod("other")
	for _, p := range []Pod{pod, other} {
		if err := p.Checkpoint().Write(&Checkpoint{Memory: model.Memory{Generation: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := pod.Checkpoint().Remove(); err != nil {
			t.Fatal(err)
		}
	}
	wantGone(t, pod.Dir())
	if j, err := other.Checkpoint().Read(); err != nil || j.Generation != 1 {
		t.Errorf("the other pod's checkpoint is %+v, %v", j, err)
	}
}

func TestRemoveCheckpointReportsLeftovers(t *testing.T) {
	pod := newLayout(t).Pod(testUID)
	if err := pod.Checkpoint().Write(&Checkpoint{}); err != nil {
		t.Fatal(err)
	}
	content := filepath.Join(ok(pod.VolumeDir(podspec.EmptyDir, "data")), "file")
	write(t, content, "precious")
	if err := pod.Checkpoint().Remove(); !errors.Is(err, unix.ENOTEMPTY) {
		t.Errorf("error %v, want ENOTEMPTY", err)
	}
	if _, err := os.Stat(content); err != nil {
		t.Errorf("content of a volume was removed: %v", err)
	}
}

func TestCheckpointOfAnotherUserIsNotDamaged(t *testing.T) {
	pod := newLayout(t).Pod(testUID)
	if err := pod.Checkpoint().Write(&Checkpoint{}); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(pod.Dir(), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(pod.Dir(), 0o750) })
	var err error
	asOrdinaryUser(t, func() { _, err = pod.Checkpoint().Read() })
	if !errors.Is(err, fs.ErrPermission) || strings.Contains(err.Error(), "remove") {
		t.Errorf("error %v, want one about permission that advises no removal", err)
	}
}
