package safefs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestHandles checks that an absolute link is resolved below another root, and refused beneath a directory.
func TestHandles(t *testing.T) {
	root, outside := t.TempDir(), filepath.Join(t.TempDir(), "file")
	if err := errors.Join(
		os.WriteFile(outside, nil, 0o600),
		os.WriteFile(filepath.Join(root, "file"), nil, 0o600),
		os.Symlink(outside, filepath.Join(root, "out")),
		os.Symlink("/file", filepath.Join(root, "in")),
		os.Symlink("file", filepath.Join(root, "beside")),
	); err != nil {
		t.Fatal(err)
	}
	own, err := os.Stat(filepath.Join(root, "file"))
	if err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func(root, path string) (*os.File, error){"in": HandleIn, "beneath": HandleBeneath} {
		for path, want := range map[string]string{
			"file": "in beneath", "beside": "in beneath", "in": "in", "out": "", "../file": "in", "absent": "",
		} {
			f, openErr := open(root, path)
			opened := false
			if openErr == nil {
				info, statErr := f.Stat()
				opened = statErr == nil && os.SameFile(info, own)
				if !opened {
					t.Errorf("%s %s is another file: %v", name, path, statErr)
				}
				_ = f.Close()
			}
			if expected := want == "in beneath" || want == name; opened != expected {
				t.Errorf("%s %s: opened %t, %v", name, path, opened, openErr)
			}
		}
	}
}

// TestRemoveManyNames checks a directory that has more names than are read at a time.
func TestRemoveManyNames(t *testing.T) {
	base := t.TempDir()
	if err := os.Mkdir(filepath.Join(base, "many"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 2*namesMax + 5 {
		if err := os.WriteFile(filepath.Join(base, "many", fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := OpenDir(base)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	if err = dir.RemoveAll("many"); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(base); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
