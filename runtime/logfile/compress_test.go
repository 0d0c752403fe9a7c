package logfile

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/podctl/podctl/runtime/safefs"
)

// TestCompress checks that rotated files are compressed with their modes, and that leftovers of a killed process are
// removed.
func TestCompress(t *testing.T) {
	path := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(path, name), []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{
		"0.log", "0.log.20260101-000001", "0.log.20260101-000002", "0.log.20260101-000002.gz.tmp",
		"0.log.20260101-000003", "1.log.20260101-000001",
	} {
		write(name, name+" was here\n")
	}
	write("0.log.20260101-000003.gz", "done before")
	if err := os.Symlink("/etc/passwd", filepath.Join(path, "0.log.20260101-000004")); err != nil {
		t.Fatal(err)
	}
	dir, err := safefs.OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close() //nolint:errcheck // nothing was written through it
	if err = Compress(dir, "0.log"); err == nil {
		t.Error("a link is compressed")
	}
	var names []string
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	want := []string{
		"0.log", "0.log.20260101-000001.gz", "0.log.20260101-000002.gz", "0.log.20260101-000003.gz",
		"0.log.20260101-000004", "1.log.20260101-000001",
	}
	if !slices.Equal(names, want) {
		t.Errorf("%v", names)
	}
	f, err := os.Open(filepath.Join(path, want[2]))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // nothing was written through it
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(zip)
	if info, statErr := f.Stat(); err != nil ||
		statErr != nil || !strings.HasPrefix(string(text), "0.log.20260101-000002 was") || info.Mode().Perm() != 0o640 {
		t.Errorf("%q %v %v", text, info.Mode(), err)
	}
}

// TestReadWhileCompressing checks that a log that exists under both names is read once, and that one that was
// compressed after it was listed is read.
func TestReadWhileCompressing(t *testing.T) {
	path := t.TempDir()
	for _, name := range []string{"0.log", "0.log.20260101-000001", "0.log.20260101-000001.gz", "0.log.20260101-000002.gz"} {
		if err := os.WriteFile(filepath.Join(path, name), nil, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	d, err := openDir(filepath.Join(path, "0.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close() //nolint:errcheck // nothing was written through it
	files, err := d.rotated()
	if err != nil || len(files) != 2 || files[0].name != "0.log.20260101-000001.gz" {
		t.Errorf("%v %v", files, err)
	}
	s, err := d.open("0.log.20260101-000002")
	if err != nil || !s.zip {
		t.Fatal(s, err)
	}
	if err = s.close(); err != nil {
		t.Error(err)
	}
}
