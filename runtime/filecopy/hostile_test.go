package filecopy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/safefs"
)

// nest creates nested directories, deeper than a path can name.
func nest(t *testing.T, top, name string, levels int) {
	t.Helper()
	if err := os.Mkdir(top, 0o755); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(top, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range levels {
		if err = unix.Mkdirat(fd, name, 0o755); err != nil {
			t.Fatal(err)
		}
		below, err := unix.Openat(fd, name, unix.O_PATH|unix.O_DIRECTORY, 0)
		if err = errors.Join(err, unix.Close(fd)); err != nil {
			t.Fatal(err)
		}
		fd = below
	}
	if err := unix.Close(fd); err != nil {
		t.Fatal(err)
	}
}

// TestDeepTreesAreRefused checks that they are refused with a short message, little memory and few descriptors. Trees
// of a realistic depth are copied.
func TestDeepTreesAreRefused(t *testing.T) {
	src, dst := t.TempDir(), t.TempDir()
	make1(t, src+"/tree/a/first", "kept", 0o600)
	name := strings.Repeat("n", 255)
	nest(t, src+"/tree/deep", name, 1500)
	tree, to := opened(t, src+"/tree"), opened(t, dst)
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	most, began := 0, time.Now()
	opts := Options{Progress: func(int64, int64) {}, Skipped: func(name, why string) { t.Errorf("%s: %s", name, why) }}
	done := make(chan error, 1)
	go func() { done <- Copy(t.Context(), tree, to, "tree", opts) }()
	var err error
	for running := true; running; {
		select {
		case err = <-done:
			running = false
		default:
			entries, _ := os.ReadDir("/proc/self/fd")
			most = max(most, len(entries))
			// Each look allocates memory, too. Growing pauses limit the number of looks on a slow machine.
			time.Sleep(max(time.Millisecond, time.Since(began)/100))
		}
	}
	goruntime.ReadMemStats(&after)
	want := fmt.Sprintf("copying tree/…/%s/%s: directories are nested more than 256 levels deep; "+
		"copy the contents of the deepest separately, or remove it", name, name)
	if err == nil || err.Error() != want {
		t.Errorf("error %v", err)
	}
	if spent := after.TotalAlloc - before.TotalAlloc; spent > 64<<20 {
		t.Errorf("%d bytes were allocated", spent)
	}
	if most > 2*DepthMax+60 {
		t.Errorf("%d descriptors were open", most)
	}
	shallow := t.TempDir()
	nest(t, shallow+"/ok", "d", DepthMax-1)
	if err := Copy(t.Context(), opened(t, shallow+"/ok"), to, "ok", opts); err != nil {
		t.Errorf("a tree of %d levels: %v", DepthMax, err)
	}
}

// TestFileNamesStayOnOneLine checks that messages about files with any name stay on one line.
func TestFileNamesStayOnOneLine(t *testing.T) {
	src := t.TempDir()
	odd := []string{"a\nnote: forged", "b\x1b[2Kgone", "c\u009b31m", "d\u202etxt.exe", "e\u2028f", "f\xff"}
	for _, name := range odd {
		if err := unix.Mkfifo(filepath.Join(src, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var output []string
	opts := Options{Skipped: func(name, why string) { output = append(output, name+": "+why) }}
	if err := Copy(t.Context(), opened(t, src), opened(t, t.TempDir()), "x", opts); err != nil || len(output) != len(odd) {
		t.Errorf("%q %v", output, err)
	}
	for _, name := range odd {
		// A directory in place of a file, and a file in place of a directory.
		from, to := t.TempDir(), t.TempDir()
		make1(t, filepath.Join(from, name), "text", 0o600)
		make1(t, filepath.Join(to, name, "x"), "text", 0o600)
		for _, c := range [][2]string{{from, to}, {to, from}} {
			err := Copy(t.Context(), opened(t, filepath.Join(c[0], name)), opened(t, c[1]), name, Options{})
			if err == nil {
				t.Fatalf("%q was replaced", name)
			}
			output = append(output, err.Error())
		}
	}
	for _, text := range output {
		if strings.ContainsAny(text, "\n\x1b\u009b\u202e\u2028") || !utf8.ValidString(text) {
			t.Errorf("%q", text)
		}
	}
}

// disk returns the disk usage of a file in bytes.
func disk(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Blocks * 512
}

// TestSparseFilesStaySparse checks holes at the beginning, between data and at the end, and files without data.
func TestSparseFilesStaySparse(t *testing.T) {
	for name, c := range map[string]struct {
		size int64
		data []int64
	}{
		"at the end":   {1 << 40, []int64{0}},
		"at the begin": {1<<40 + 3, []int64{1 << 40}},
		"between":      {1<<30 + 3, []int64{0, 1 << 20, 1 << 30}},
		"nothing else": {1 << 41, nil},
		"none":         {3, []int64{0}},
		"empty":        {0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			src, dst := t.TempDir(), t.TempDir()
			make1(t, src+"/f", "", 0o600)
			f, err := os.OpenFile(src+"/f", os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			closing(t, f)
			if err := f.Truncate(c.size); err != nil {
				t.Fatal(err)
			}
			for _, at := range c.data {
				if _, err := f.WriteAt([]byte("abc"), at); err != nil {
					t.Fatal(err)
				}
			}
			var reported int64
			if err := Copy(t.Context(), f, opened(t, dst), "f", Options{Progress: func(_, bytes int64) { reported = bytes }}); err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(dst + "/f"); err != nil || info.Size() != c.size || disk(t, dst+"/f") > 1<<20 || reported > 1<<20 {
				t.Errorf("%d bytes, %d on the disk, %d reported (%v)", info.Size(), disk(t, dst+"/f"), reported, err)
			}
			out := opened(t, dst+"/f")
			for _, at := range c.data {
				got := make([]byte, 3)
				if _, err := out.ReadAt(got, at); err != nil || string(got) != "abc" {
					t.Errorf("at %d there is %q (%v)", at, got, err)
				}
			}
		})
	}
}

// TestFilesThatChangeWhileTheyAreCopied checks that a growing file ends at its first size, and a truncated one at its
// new size.
func TestFilesThatChangeWhileTheyAreCopied(t *testing.T) {
	for name, change := range map[string]func(*os.File) error{
		"grows": func(f *os.File) error {
			info, err := f.Stat()
			if err == nil && info.Size() < 64<<20 {
				_, err = f.WriteAt(make([]byte, 64<<10), info.Size())
			}
			return err
		},
		"is cut": func(f *os.File) error { return f.Truncate(40 << 10) },
	} {
		t.Run(name, func(t *testing.T) {
			src, dst := t.TempDir(), t.TempDir()
			make1(t, src+"/f", strings.Repeat("x", 256<<10), 0o600)
			f, err := os.OpenFile(src+"/f", os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			closing(t, f)
			opts := Options{Progress: func(int64, int64) {
				if failed := change(f); failed != nil {
					t.Error(failed)
				}
			}}
			if err = Copy(t.Context(), opened(t, src+"/f"), opened(t, dst), "f", opts); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(dst + "/f")
			if err != nil || len(text) > 256<<10 || (name == "grows") != (len(text) == 256<<10) || strings.Trim(string(text), "x") != "" {
				t.Errorf("%d bytes were copied (%v)", len(text), err)
			}
		})
	}
}

// TestFilesWithoutSize checks that files of /proc and /sys with size zero are copied.
func TestFilesWithoutSize(t *testing.T) {
	dst := t.TempDir()
	for i, path := range []string{"/proc/version", "/sys/kernel/mm/transparent_hugepage/enabled"} {
		want, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) && i > 0 {
			continue
		}
		name := fmt.Sprint(i)
		if err := Copy(t.Context(), opened(t, path), opened(t, dst), name, Options{}); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dst, name)); err != nil || string(got) != string(want) {
			t.Errorf("%s: %q, not %q (%v)", path, got, want, err)
		}
	}
}

// TestACopyIntoItselfEnds checks that it ends and loses nothing.
func TestACopyIntoItselfEnds(t *testing.T) {
	src := t.TempDir()
	make1(t, src+"/tree/file", "mine", 0o600)
	var skipped []string
	opts := Options{Skipped: func(name, _ string) { skipped = append(skipped, name) }}
	if err := Copy(t.Context(), opened(t, src+"/tree"), opened(t, src+"/tree"), "again", opts); err != nil ||
		len(skipped) != 1 || skipped[0] != "again/again" {
		t.Errorf("%v, %v", skipped, err)
	}
	if _, err := os.Stat(src + "/tree/again/again"); !os.IsNotExist(err) {
		t.Errorf("the copy is in the copy: %v", err)
	}
	for _, name := range []string{"tree", "tree/file"} {
		err := Copy(t.Context(), opened(t, filepath.Join(src, name)),
			opened(t, filepath.Join(src, filepath.Dir(name))), filepath.Base(name), opts)
		if !errors.Is(err, errSame) {
			t.Errorf("%s to itself: %v", name, err)
		}
	}
	if text, err := os.ReadFile(src + "/tree/file"); err != nil || string(text) != "mine" {
		t.Errorf("the file holds %q (%v)", text, err)
	}
}

// TestLargeDirectoriesAreCopied checks directories whose names are read in several parts.
func TestLargeDirectoriesAreCopied(t *testing.T) {
	src, dst := t.TempDir(), t.TempDir()
	for i := range 3*safefs.NamesAtOnce + 1 {
		make1(t, fmt.Sprintf("%s/tree/%d", src, i), "", 0o600)
	}
	if err := Copy(t.Context(), opened(t, src+"/tree"), opened(t, dst), "tree", Options{}); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dst + "/tree"); err != nil || len(entries) != 3*safefs.NamesAtOnce+1 {
		t.Errorf("%d files (%v)", len(entries), err)
	}
}

// TestRootOpensNoDevice checks that devices are neither read nor opened.
func TestRootOpensNoDevice(t *testing.T) {
	base := t.TempDir()
	if err := unix.Mkfifo(base+"/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := OpenRoot(opened(t, base), ".")
	if err != nil {
		t.Fatal(err)
	}
	closing(t, root)
	if _, err = root.Open("/pipe"); err == nil || !strings.Contains(err.Error(), "neither a file nor a directory") {
		t.Errorf("a pipe: %v", err)
	}
	make1(t, base+"/file", "text", 0o600)
	f, err := root.Open("/file")
	if err != nil {
		t.Fatal(err)
	}
	closing(t, f)
	if text, err := io.ReadAll(f); err != nil || string(text) != "text" {
		t.Errorf("%q %v", text, err)
	}
}
