package eviction

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestLook checks that memory, process IDs and the file systems of the directories are measured. The runtime is queried
// until it has answered once.
func TestLook(t *testing.T) {
	calls := 0
	dir := t.TempDir()
	m := &Machine{NodeDirs: []string{dir, filepath.Join(dir, "missing")}, ImageFs: func(context.Context) (string, error) {
		if calls++; calls == 1 {
			return "", errors.New("down")
		}
		return dir, nil
	}, AllPods: func() (string, int64) { return "/", 1 << 60 }}
	if look, err := m.Measure(t.Context()); err == nil || len(look.Left[NodeFsAvailable]) != 1 || look.Left[ImageFsAvailable] != nil {
		t.Errorf("without the runtime: %+v %v", look, err)
	}
	for range 2 {
		look, err := m.Measure(t.Context())
		if err != nil || calls != 2 || look.OwnImageFs {
			t.Errorf("%+v %v, asked %d times", look, err, calls)
		}
		for _, one := range meanings() {
			all := look.Left[one.signal]
			if len(all) != 1 || all[0].Capacity <= 0 || all[0].Available <= 0 || all[0].Available > all[0].Capacity {
				t.Errorf("%s: %+v", one.signal, all)
			}
		}
	}
}

// TestPodMemory checks that the memory of all pods together is measured against its limit, and that more usage than the
// limit leaves nothing.
func TestPodMemory(t *testing.T) {
	for limit, want := range map[int64]string{1 << 60: "some", 1: "none", 0: "unknown"} {
		m := &Machine{AllPods: func() (string, int64) { return "/", limit }}
		look := &Measurement{Left: map[Signal][]Amount{}}
		err := m.podMemory(look)
		got := "unknown"
		if left := look.Left[AllocatableMemoryAvailable]; len(left) > 0 {
			if got = "some"; left[0].Available == 0 {
				got = "none"
			}
			if left[0].Capacity != limit {
				t.Errorf("%+v", left)
			}
		}
		if got != want || err != nil {
			t.Errorf("limit %d: %s, want %s, %v", limit, got, want, err)
		}
	}
	look := &Measurement{Left: map[Signal][]Amount{}}
	for name, limit := range map[string]int64{"/podctl-test-missing": 1, "": 0} {
		m := &Machine{AllPods: func() (string, int64) { return name, limit }}
		if err := m.podMemory(look); err != nil || len(look.Left) > 0 {
			t.Errorf("%q: %+v %v", name, look, err)
		}
	}
}

// TestMeasureSmallDisks checks a small file system that fills up, in bytes and in files. Each of two file systems of
// the node counts, and images may have a separate one.
func TestMeasureSmallDisks(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a file system")
	}
	small := filepath.Join(t.TempDir(), "small")
	if err := os.Mkdir(small, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("small", small, "tmpfs", 0, "size=1m,nr_inodes=100"); errors.Is(err, unix.EPERM) {
		t.Skip("no file system can be mounted here")
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(small, 0); err != nil {
			t.Error(err)
		}
	})
	all := thresholds(t, "nodefs.available<10%,nodefs.inodesFree<10%")
	m := &Machine{NodeDirs: []string{t.TempDir(), small}, ImageFs: func(context.Context) (string, error) { return small, nil }}
	signals := func() (names string) {
		look, err := m.Measure(t.Context())
		if err != nil || !look.OwnImageFs || look.Left[ImageFsInodesFree][0].Capacity != 100 {
			t.Errorf("%+v %v", look, err)
		}
		met, _ := newTracker(all).update(time.Time{}, look)
		for _, one := range met {
			names += string(one.Signal) + " "
		}
		return names
	}
	full := filepath.Join(small, "full")
	if err := os.WriteFile(full, make([]byte, 1000<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := signals(); got != "nodefs.available " {
		t.Errorf("full: %s", got)
	}
	if err := os.Remove(full); err != nil {
		t.Fatal(err)
	}
	for err := error(nil); err == nil; {
		var f *os.File
		if f, err = os.CreateTemp(small, "file"); err == nil {
			err = f.Close()
		}
	}
	if got := signals(); !strings.Contains(got, "nodefs.inodesFree") {
		t.Errorf("without inodes: %s", got)
	}
}
