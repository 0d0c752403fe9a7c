package input

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// nothing is known of any file.
func nothing(string, fs.FileInfo) ([]byte, bool) { return nil, false }

// TestEach: files that cannot be read hide no other, and what may never end is not begun.
func TestEach(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if files, err := (Reader{}).Each(t.Context(), dir, nothing); err != nil || len(files) > 0 {
		t.Errorf("an empty directory: %v, %v", files, err)
	}
	err := errors.Join(os.WriteFile(at("a.yaml"), []byte("a"), 0o600), os.WriteFile(at("b.yaml"), []byte("large"), 0o600),
		os.WriteFile(at(".c.yaml"), nil, 0o600), os.WriteFile(at("d.txt"), nil, 0o600), os.Mkdir(at("e.yaml"), 0o700),
		os.Symlink("nowhere", at("f.yaml")), unix.Mkfifo(at("g.yaml"), 0o600), os.WriteFile(at("h.yaml"), []byte("h"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	known := func(name string, info fs.FileInfo) ([]byte, bool) {
		return []byte("known"), name == at("h.yaml") && info.Size() == 1
	}
	files, err := Reader{MaxBytes: 4}.Each(t.Context(), dir, known)
	if err != nil || len(files) != 5 {
		t.Fatalf("%v, %v", files, err)
	}
	for i, want := range []string{"a.yaml a", "b.yaml larger than 4 bytes", "f.yaml no such file", "g.yaml no regular file", "h.yaml known"} {
		name, words, _ := strings.Cut(want, " ")
		f, told := files[i], string(files[i].Text)
		if f.Err != nil {
			told = f.Err.Error()
		}
		if f.Name != at(name) || !strings.Contains(told, words) || f.Err != nil && (strings.Count(told, f.Name) != 1 || len(f.Text) > 0) {
			t.Errorf("%s: %s, want %s", f.Name, told, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Reader{}).Each(ctx, dir, nothing); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

// TestEachMissing: a file that is missing has no text; a directory that is missing has said nothing.
func TestEachMissing(t *testing.T) {
	dir := t.TempDir()
	for name, missing := range map[string]bool{"pod.yaml": false, "pods": true, "pods/pod.yaml": true} {
		files, err := Reader{}.Each(t.Context(), filepath.Join(dir, name), nothing)
		if len(files) > 0 || errors.Is(err, fs.ErrNotExist) != missing || !missing && err != nil {
			t.Errorf("%s: %v, %v", name, files, err)
		}
	}
	// A directory may have the name of a file, and a file that of a directory.
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "d.yaml"), 0o700), os.WriteFile(filepath.Join(dir, "d.yaml", "a.yml"), nil, 0o600), os.WriteFile(filepath.Join(dir, "f"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"d.yaml", "f", "d.yaml/a.yml"} {
		if files, err := (Reader{}).Each(t.Context(), filepath.Join(dir, name), nothing); err != nil || len(files) != 1 || files[0].Err != nil {
			t.Errorf("%s: %v, %v", name, files, err)
		}
	}
}
