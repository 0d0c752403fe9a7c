package filelock

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestLockedAgainWritesNothing checks that the holder is written only if the text changes.
func TestLockedAgainWritesNothing(t *testing.T) {
	dir := t.TempDir()
	of := File{
		Path:    filepath.Join(dir, "x.lock"),
		Keeps:   func() (bool, error) { return true, nil },
		Command: []string{"podctl", "agent", "/etc/podctl/pods"},
	}
	lockAndFree(t, of)
	long := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := os.Chtimes(of.Path, long, long); err != nil {
		t.Fatal(err)
	}
	lockAndFree(t, of)
	if info, err := os.Stat(of.Path); err != nil || !info.ModTime().Equal(long) {
		t.Errorf("locked again by the same process, the file was written at %v, %v", info.ModTime(), err)
	}
	of.Command = []string{"podctl", "apply"}
	lockAndFree(t, of)
	if holder := (&File{Path: of.Path}).readHolder(); holder != fmt.Sprintf("pid %d (podctl apply)", os.Getpid()) {
		t.Errorf("the holder is %q", holder)
	}
}

func lockAndFree(t *testing.T, of File) {
	t.Helper()
	lock, err := Take(t.Context(), of, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if err = lock.Unlock(); err != nil {
		t.Fatal(err)
	}
}
