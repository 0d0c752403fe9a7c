package filecopy

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// archived returns the entries of an archive by name: kind, mode and content.
func archived(t *testing.T, text []byte) map[string]string {
	t.Helper()
	found := map[string]string{}
	for r := tar.NewReader(bytes.NewReader(text)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		found[h.Name] = h.FileInfo().Mode().String() + " " + h.Linkname + string(content)
	}
}

// TestArchives checks that an archive has no set-user-ID programs, devices or pipes, but everything else, and unpacks
// to the same files.
func TestArchives(t *testing.T) {
	src, dst := t.TempDir(), t.TempDir()
	make1(t, src+"/tree/a/run.sh", "run", 0o751)
	make1(t, src+"/tree/set", "id", 0o755|os.ModeSetuid)
	make1(t, src+"/tree/none", "", 0o600)
	link1(t, "/etc/passwd", src+"/tree/away")
	if err := errors.Join(os.Chmod(src+"/tree", 0o755), os.Chmod(src+"/tree/a", 0o700), unix.Mkfifo(src+"/tree/pipe", 0o600)); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	var skipped []string
	if err := Archive(t.Context(), opened(t, src+"/tree"), &text, "new", Options{Skipped: func(name, _ string) {
		skipped = append(skipped, name)
	}}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"new/":         "drwxr-xr-x ",
		"new/a/":       "drwx------ ",
		"new/a/run.sh": "-rwxr-x--x run",
		"new/set":      "-rwxr-xr-x id",
		"new/none":     "-rw------- ",
		"new/away":     "Lrwxrwxrwx /etc/passwd",
	}
	if diff := cmp.Diff(want, archived(t, text.Bytes())); diff != "" || !slices.Equal(skipped, []string{"new/pipe"}) {
		t.Errorf("left out %v; (-want +got)\n%s", skipped, diff)
	}
	if err := Unpack(t.Context(), bytes.NewReader(text.Bytes()), opened(t, dst), Options{
		Owner: &Owner{UID: os.Getuid(), GID: os.Getgid()},
	}); err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	if err := Archive(t.Context(), opened(t, dst+"/new"), &again, "new", Options{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, archived(t, again.Bytes())); diff != "" {
		t.Errorf("unpacked: (-want +got)\n%s", diff)
	}
	if err := Archive(t.Context(), opened(t, src+"/tree/a/run.sh"), &again, "one", Options{}); err != nil {
		t.Errorf("a file alone: %v", err)
	}
}

// pack writes an archive with these headers. The content of each file is its own name.
func pack(t *testing.T, headers ...tar.Header) io.Reader {
	t.Helper()
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	for _, h := range headers {
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(h.Name))
		}
		err := w.WriteHeader(&h)
		if err == nil && h.Typeflag == tar.TypeReg {
			_, err = io.WriteString(w, h.Name)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &text
}

// TestHostileArchives checks that no entry is written outside the directory, through its name or through a link of the
// archive or the directory.
func TestHostileArchives(t *testing.T) {
	file := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600} }
	for name, c := range map[string]struct {
		entries []tar.Header
		want    string
	}{
		"a name that leads out":       {[]tar.Header{file("../victim")}, "leads out"},
		"a name that leads out later": {[]tar.Header{file("a/../../victim")}, "leads out"},
		"a link and a file below it": {
			[]tar.Header{{Typeflag: tar.TypeSymlink, Name: "out", Linkname: "OUTSIDE"}, file("out/victim")},
			"out/victim",
		},
		"a link that is there": {[]tar.Header{file("there/victim")}, "there/victim"},
		"a directory in place of one": {
			[]tar.Header{{Typeflag: tar.TypeDir, Name: "there/", Mode: 0o755}, file("there/victim")},
			"there/victim",
		},
		"a hard link to a file outside": {[]tar.Header{{Typeflag: tar.TypeLink, Name: "x", Linkname: "../victim"}}, "not in the archive"},
		"a hard link through a link":    {[]tar.Header{{Typeflag: tar.TypeLink, Name: "x", Linkname: "there/victim"}}, "linking x"},
		"too many directories":          {[]tar.Header{file(strings.Repeat("d/", DepthMax) + "f")}, "are nested more than"},
	} {
		base := t.TempDir()
		make1(t, base+"/victim", "theirs", 0o600)
		make1(t, base+"/root/kept", "x", 0o600)
		link1(t, base, base+"/root/there")
		for i := range c.entries {
			c.entries[i].Linkname = strings.ReplaceAll(c.entries[i].Linkname, "OUTSIDE", base)
		}
		err := Unpack(t.Context(), pack(t, c.entries...), opened(t, base+"/root"), Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if text, _ := os.ReadFile(base + "/victim"); string(text) != "theirs" {
			t.Errorf("%s: a file outside holds %q", name, text)
		}
		if entries, _ := os.ReadDir(base); len(entries) != 2 {
			t.Errorf("%s: %v", name, entries)
		}
	}
}

// TestUnpackReplaces checks that existing files and links are replaced, not written through. Existing directories keep
// their mode. A directory that follows its contents in the archive gets the mode of the archive.
func TestUnpackReplaces(t *testing.T) {
	base := t.TempDir()
	make1(t, base+"/victim", "theirs", 0o600)
	make1(t, base+"/root/old/kept", "x", 0o600)
	link1(t, base+"/victim", base+"/root/link")
	if err := os.Chmod(base+"/root/old", 0o711); err != nil {
		t.Fatal(err)
	}
	err := Unpack(t.Context(), pack(t,
		tar.Header{Typeflag: tar.TypeReg, Name: "/link", Mode: 0o640},
		tar.Header{Typeflag: tar.TypeDir, Name: "old/", Mode: 0o777},
		tar.Header{Typeflag: tar.TypeReg, Name: "late/f", Mode: 0o600},
		tar.Header{Typeflag: tar.TypeLink, Name: "late/g", Linkname: "late/f"},
		tar.Header{Typeflag: tar.TypeDir, Name: "late", Mode: 0o700},
	), opened(t, base+"/root"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"victim": "theirs", "root/link": "/link", "root/old/kept": "x", "root/late/g": "late/f"} {
		if text, err := os.ReadFile(base + "/" + name); string(text) != want {
			t.Errorf("%s holds %q: %v", name, text, err)
		}
	}
	for name, want := range map[string]os.FileMode{"old": 0o711, "late": 0o700, "link": 0o640} {
		if info, err := os.Lstat(base + "/root/" + name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v: %v", name, info.Mode(), err)
		}
	}
}

// TestUnpackEndsWithItsContext checks that waiting for an archive ends with the context.
func TestUnpackEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	defer w.Close() //nolint:errcheck // nothing is written
	cancel()
	if err := Unpack(ctx, r, opened(t, t.TempDir()), Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := Unpack(t.Context(), strings.NewReader("junk"), opened(t, t.TempDir()), Options{}); err == nil ||
		!strings.Contains(err.Error(), "reading the tar archive") {
		t.Error(err)
	}
}
