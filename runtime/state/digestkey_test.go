package state

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestDigestKeyIsMadeOnce checks that the first process creates the key, readable only for its owner, and that all
// others get the same one.
func TestDigestKeyIsMadeOnce(t *testing.T) {
	l := newLayout(t)
	if key, err := l.DigestKey().Stored(); key != nil || err != nil {
		t.Fatalf("before it is created: %v %v", key, err)
	}
	ids := make([]string, 8)
	var group sync.WaitGroup
	for i := range ids {
		group.Go(func() {
			if err := l.DigestKey().Make(); err != nil {
				t.Error(err)
				return
			}
			key, err := l.DigestKey().Read()
			if err != nil {
				t.Error(err)
			}
			ids[i] = key.ID()
		})
	}
	group.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("keys %v, one is expected", ids)
		}
	}
	info, err := os.Stat(l.DigestKey().Path())
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() != digestKeyBytes {
		t.Errorf("the file: %v %v", info, err)
	}
	if left := names(t, l.Root); len(left) != 1 {
		t.Errorf("%v is left next to it", left)
	}
}

// TestADamagedDigestKeyIsNamed checks that a damaged key is reported, not replaced: existing digests could be compared
// again if the key were restored.
func TestADamagedDigestKeyIsNamed(t *testing.T) {
	l := newLayout(t)
	if err := l.Prepare(); err != nil {
		t.Fatal(err)
	}
	for name, plant := range map[string]func() error{
		"short":  func() error { return os.WriteFile(l.DigestKey().Path(), []byte("short"), 0o600) },
		"a link": func() error { return os.Symlink("/etc/hostname", l.DigestKey().Path()) },
	} {
		_ = os.Remove(l.DigestKey().Path())
		if err := plant(); err != nil {
			t.Fatal(err)
		}
		if err := l.DigestKey().Make(); err == nil || !strings.Contains(err.Error(), "remove it") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_ = os.Remove(l.DigestKey().Path())
	if err := errors.Join(
		os.WriteFile(l.DigestKey().Path(), make([]byte, digestKeyBytes), 0o600),
		os.Chmod(l.DigestKey().Path(), 0o644),
	); err != nil {
		t.Fatal(err)
	}
	if err := l.DigestKey().Make(); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("one that others can read: %v", err)
	}
}

// TestDigestKeySweep checks that leftovers of a process that was killed while it created the key are removed once there
// is a key.
func TestDigestKeySweep(t *testing.T) {
	l := newLayout(t)
	if err := errors.Join(
		l.Prepare(),
		os.WriteFile(filepath.Join(l.Root, unfinishedKey+"1"), nil, 0o600),
		l.DigestKey().Sweep(),
	); err != nil {
		t.Fatal(err)
	}
	if left := names(t, l.Root); len(left) != 1 {
		t.Errorf("without a key: %v", left)
	}
	if err := errors.Join(l.DigestKey().Make(), l.DigestKey().Sweep()); err != nil {
		t.Fatal(err)
	}
	if left := names(t, l.Root); len(left) != 1 || left[0] != "digest.key" {
		t.Errorf("with a key: %v", left)
	}
}
