package state

import (
	"errors"
	"os"
	"testing"
	"time"
)

func TestHealthOfADirectoryThatIsMissing(t *testing.T) {
	l := newLayout(t)
	h := l.Health()
	if h.Exists || !h.Writable || h.Unusable != nil || h.Checkpoints != 0 {
		t.Errorf("%+v, want one that can be created", h)
	}
	wantGone(t, l.Root)
}

func TestHealthReportsEveryCheckpoint(t *testing.T) {
	l := newLayout(t)
	writeApplied(t, l, "default", "sound", "u1")
	writeApplied(t, l, "default", "open", "u2")
	writeApplied(t, l, "default", "damaged", "u3")
	write(t, l.Pod("u3").Checkpoint().Path(), "{")
	newest := time.Now().Add(time.Hour).Truncate(time.Second)
	if err := errors.Join(
		os.Chmod(l.Pod("u2").Checkpoint().Path(), 0o644),
		os.Chtimes(l.Pod("u1").Checkpoint().Path(), newest, newest),
	); err != nil {
		t.Fatal(err)
	}
	h := l.Health()
	if !h.Exists || h.Mode != 0o700 || !h.Writable || h.Unusable != nil || h.Checkpoints != 3 {
		t.Errorf("%+v", h)
	}
	if len(h.Unreadable) != 1 || !errors.Is(h.Unreadable[0], ErrDamaged) {
		t.Errorf("unreadable: %v", h.Unreadable)
	}
	if len(h.Open) != 1 || h.Open[0] != l.Pod("u2").Checkpoint().Path() {
		t.Errorf("open: %v", h.Open)
	}
	if !h.NewestWrite.Equal(newest) {
		t.Errorf("newest write %s, want %s", h.NewestWrite, newest)
	}
}

func TestHealthOfADirectoryThatIsNotTrusted(t *testing.T) {
	l := newLayout(t)
	writeApplied(t, l, "default", "web", "u1")
	if err := os.Chmod(l.Root, 0o777); err != nil {
		t.Fatal(err)
	}
	if h := l.Health(); !errors.Is(h.Unusable, ErrUnsafe) || h.Checkpoints != 0 {
		t.Errorf("%+v, want ErrUnsafe", h)
	}
}
