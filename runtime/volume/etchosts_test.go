package volume

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestHostsFileIsWrittenInPlace(t *testing.T) {
	withUmask(t, 0o077)
	c := newContext(t)
	for _, text := range []string{"127.0.0.1\tlocalhost\n", strings.Repeat("10.0.0.1\tlonger\n", 100), "short\n", ""} {
		before, statErr := os.Stat(c.Pod.EtcHosts())
		if err := WriteEtcHosts(c.Pod, []byte(text)); err != nil {
			t.Fatal(err)
		}
		wantText(t, c.Pod.EtcHosts(), text)
		wantMode(t, c.Pod.EtcHosts(), 0o644)
		if after, err := os.Stat(c.Pod.EtcHosts()); err != nil || (statErr == nil && !os.SameFile(before, after)) {
			t.Errorf("the file was replaced (%v), so containers would not see the change", err)
		}
	}
}

func TestCorrectHostsFileIsUnchanged(t *testing.T) {
	c := newContext(t)
	if err := WriteEtcHosts(c.Pod, []byte("right\n")); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(c.Pod.EtcHosts(), old, old); err != nil {
		t.Fatal(err)
	}
	if err := WriteEtcHosts(c.Pod, []byte("right\n")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(c.Pod.EtcHosts()); err != nil || time.Since(info.ModTime()) < time.Minute {
		t.Errorf("an unchanged file was written (%v)", err)
	}
}

func TestHostsFileDoesNotFollowLinks(t *testing.T) {
	c := newContext(t)
	other := t.TempDir() + "/other"
	write(t, other, "untouched")
	if err := c.Pod.MakeDir(c.Pod.Dir(), 0o750); err != nil {
		t.Fatal(err)
	}
	symlink(t, other, c.Pod.EtcHosts())
	if err := WriteEtcHosts(c.Pod, []byte("x")); err == nil {
		t.Error("writing through a link succeeded, want an error")
	}
	wantText(t, other, "untouched")
}
