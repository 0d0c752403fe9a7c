package input

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// nothing is a Known that knows no file.
func nothing(string, fs.FileInfo) ([]byte, bool) { return nil, false }

// TestEach checks that unreadable files do not hide others, and that reads that may never end do not start.
func TestEach(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if files, err := (&Tree{Path: dir}).Each(t.Context(), nothing); err != nil || len(files) > 0 {
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
	files, err := (&Tree{Reader: Reader{MaxBytes: 4}, Path: dir}).Each(t.Context(), known)
	if err != nil || len(files) != 5 {
		t.Fatalf("%v, %v", files, err)
	}
	for i, want := range []string{
		"a.yaml a", "b.yaml larger than 4 bytes", "f.yaml no such file", "g.yaml not a regular file", "h.yaml known",
	} {
		name, words, _ := strings.Cut(want, " ")
		f, reported := files[i], string(files[i].Text)
		if f.Err != nil {
			reported = f.Err.Error()
		}
		badError := f.Err != nil && (strings.Count(reported, f.Name) != 1 || len(f.Text) > 0)
		if f.Name != at(name) || !strings.Contains(reported, words) || badError {
			t.Errorf("%s: %s, want %s", f.Name, reported, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&Tree{Path: dir}).Each(ctx, nothing); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

// TestEachMissing checks that a missing file has no text, and that a missing directory is an error.
func TestEachMissing(t *testing.T) {
	dir := t.TempDir()
	for name, missing := range map[string]bool{"pod.yaml": false, "pods": true, "pods/pod.yaml": true} {
		files, err := (&Tree{Path: filepath.Join(dir, name)}).Each(t.Context(), nothing)
		if len(files) > 0 || errors.Is(err, fs.ErrNotExist) != missing || !missing && err != nil {
			t.Errorf("%s: %v, %v", name, files, err)
		}
	}
	// A directory may have the name of a file, and a file that of a directory.
	err := errors.Join(
		os.Mkdir(filepath.Join(dir, "d.yaml"), 0o700),
		os.WriteFile(filepath.Join(dir, "d.yaml", "a.yml"), nil, 0o600),
		os.WriteFile(filepath.Join(dir, "f"), nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"d.yaml", "f", "d.yaml/a.yml"} {
		if files, err := (&Tree{Path: filepath.Join(dir, name)}).Each(t.Context(), nothing); err != nil ||
			len(files) != 1 || files[0].Err != nil {
			t.Errorf("%s: %v, %v", name, files, err)
		}
	}
}

// TestFilesOfTheKernel checks that files of the kernel are not opened, also through links: /proc/kmsg never ends, and
// opening a device may have side effects.
func TestFilesOfTheKernel(t *testing.T) {
	dir := t.TempDir()
	for i, target := range []string{"/proc/kmsg", "/proc/self/environ", "/sys/kernel/mm/transparent_hugepage/enabled", "/dev/zero"} {
		link := filepath.Join(dir, fmt.Sprintf("%d.yaml", i))
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
		_, opened := Open(link)
		_, tree := OpenTree(link)
		_, named := OpenNamed(t.Context(), link)
		for how, err := range map[string]error{"Open": opened, "OpenTree": tree, "OpenNamed": named} {
			if err == nil || !strings.Contains(err.Error(), link) {
				t.Errorf("%s of %s: %v", how, target, err)
			}
		}
	}
	files, err := (&Tree{Path: dir}).Each(t.Context(), nothing)
	if err != nil || len(files) != 4 || !strings.Contains(files[0].Err.Error(), "0.yaml: it is on a file system of the kernel") {
		t.Errorf("%+v, %v", files, err)
	}
	if _, err = (Reader{}).Read(t.Context(), dir); err == nil ||
		!strings.Contains(err.Error(), "0.yaml: it is on a file system of the kernel") {
		t.Errorf("as a directory: %v", err)
	}
}

// TestNamedFiles checks that a user may name a pipe or /dev/null, also through a link in /proc, but no other device and
// no directory.
func TestNamedFiles(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_, err = write.WriteString("piped")
	if err = errors.Join(err, write.Close()); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{fmt.Sprintf("/proc/self/fd/%d", read.Fd()): "piped", "/dev/null": ""} {
		if text, err := ReadNamed(t.Context(), path, 10); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
	for _, path := range []string{"/dev/zero", t.TempDir()} {
		if _, err := ReadNamed(t.Context(), path, 10); !errors.Is(err, errNotInput) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if f, err := OpenTree(t.TempDir()); err != nil || f.Close() != nil {
		t.Errorf("a directory: %v", err)
	}
}

// TestDirectoriesAreBounded checks the limits for files, entries and bytes. A directory above them is not read to its
// end.
func TestDirectoriesAreBounded(t *testing.T) {
	dir := t.TempDir()
	fill := func(n int, name string) {
		for i := range n {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf(name, i)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill(maxFiles, "%d.yaml")
	if files, err := (&Tree{Path: dir}).Each(t.Context(), nothing); err != nil || len(files) != maxFiles {
		t.Errorf("%d files, %v", len(files), err)
	}
	fill(1, "%d.json")
	for _, recursive := range []bool{false, true} {
		_, each := (&Tree{Path: dir, Reader: Reader{Recursive: recursive}}).Each(t.Context(), nothing)
		_, read := Reader{Recursive: recursive}.Read(t.Context(), filepath.Dir(dir)+"/"+filepath.Base(dir))
		for _, err := range []error{each, read} {
			if !errors.Is(err, errFiles) || strings.Count(err.Error(), dir) != 1 {
				t.Errorf("too many files: %v", err)
			}
		}
	}
	other := t.TempDir()
	err := errors.Join(
		os.WriteFile(filepath.Join(other, "a"), nil, 0o600),
		os.WriteFile(filepath.Join(other, ".b"), nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	l := lister{ctx: t.Context(), entries: maxEntries - 2}
	if _, err := l.read(other); err != nil {
		t.Errorf("as many entries as may be: %v", err)
	}
	if _, err := l.read(other); !errors.Is(err, errEntries) {
		t.Errorf("too many entries: %v", err)
	}
}

// TestManifestsTogetherAreBounded checks that many large files are refused together.
func TestManifestsTogetherAreBounded(t *testing.T) {
	dir := t.TempDir()
	for i := range maxTogether/DefaultMaxBytes + 1 {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%d.yaml", i)))
		if err == nil {
			err = errors.Join(f.Truncate(DefaultMaxBytes), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	reader := Reader{Timeout: time.Hour}
	_, each := (&Tree{Reader: reader, Path: dir}).Each(t.Context(), nothing)
	_, read := reader.Read(t.Context(), dir)
	if !errors.Is(each, errTogether) || !errors.Is(read, errTogether) {
		t.Errorf("%v, %v", each, read)
	}
}

// TestHangingFiles checks that an operation that hangs is abandoned, is not started twice at once, and is started again
// after it has ended.
func TestHangingFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree, began, ends := &Tree{Reader: Reader{Timeout: time.Minute}}, atomic.Int32{}, make(chan struct{})
		hangs := func() { began.Add(1); <-ends }
		for range 3 {
			if err := tree.Do(t.Context(), "a", hangs); !errors.Is(err, errSilent) || began.Load() != 1 {
				t.Errorf("begun %d times: %v", began.Load(), err)
			}
		}
		if err := tree.Do(t.Context(), "b", func() {}); err != nil {
			t.Errorf("another one: %v", err)
		}
		close(ends)
		synctest.Wait()
		if err := tree.Do(t.Context(), "a", hangs); err != nil || began.Load() != 2 || len(tree.silent) != 0 {
			t.Errorf("after the end: begun %d times, %v", began.Load(), err)
		}
	})
}

// TestManyHangingFiles checks that reading many files that hang ends, and that the number of threads is limited.
func TestManyHangingFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree, began, ends := &Tree{Reader: Reader{Timeout: 5 * time.Second}}, atomic.Int32{}, make(chan struct{})
		dir := t.TempDir()
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		defer cancel()
		for i := range 10 * maxSilent {
			name := filepath.Join(dir, fmt.Sprint(i))
			if err := os.WriteFile(name, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if f := tree.one(ctx, name, func(string, fs.FileInfo) ([]byte, bool) { began.Add(1); <-ends; return nil, true }); f.Err == nil {
				t.Fatal("it has answered")
			}
		}
		if err := tree.Do(t.Context(), "the directory", func() {}); err != nil {
			t.Errorf("the directory: %v", err)
		}
		if began.Load() != 2*maxSilent || ctx.Err() != nil {
			t.Errorf("%d were begun; %v", began.Load(), ctx.Err())
		}
		close(ends)
	})
}

// TestHangingLinks checks that links whose targets hang do not keep files of the directory from being read.
func TestHangingLinks(t *testing.T) {
	dir := t.TempDir()
	plain, link := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")
	if err := errors.Join(os.WriteFile(plain, []byte("a"), 0o600), os.Symlink(plain, link)); err != nil {
		t.Fatal(err)
	}
	tree := &Tree{Path: dir, silent: map[string]<-chan struct{}{}}
	for i := range maxSilent {
		tree.silent[fmt.Sprint(i)] = make(chan struct{})
	}
	files, err := tree.Each(t.Context(), nothing)
	if err != nil || len(files) != 2 || string(files[0].Text) != "a" || !errors.Is(files[1].Err, errManySilent) {
		t.Errorf("%+v, %v", files, err)
	}
}
