package volume

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/safefs"
)

func newWriter(t *testing.T) (*writer, string) {
	t.Helper()
	dir := t.TempDir()
	opened, err := safefs.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	w := &writer{dir: opened}
	t.Cleanup(w.close)
	return w, dir
}

func mustWrite(t *testing.T, w *writer, files map[string]File) {
	t.Helper()
	if err := w.write(files); err != nil {
		t.Fatal(err)
	}
}

// shape lists the files of the volume without the times in their names.
func shape(t *testing.T, dir string) []string {
	t.Helper()
	times := regexp.MustCompile(`^\.\.\d{4}(_\d\d){5}\.\d{10}`)
	var lines []string
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		line := fmt.Sprintf("%s %v", times.ReplaceAllString(name, "..TIME"), info.Mode())
		if target, err := os.Readlink(path); err == nil {
			line += " -> " + times.ReplaceAllString(target, "..TIME")
		}
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestContentHasTheKubeletsLayout(t *testing.T) {
	for name, mask := range map[string]int{"open umask": 0, "strict umask": 0o077} {
		t.Run(name, func(t *testing.T) {
			w, dir := newWriter(t)
			withUmask(t, mask)
			mustWrite(t, w, map[string]File{
				"a": plain("1", 0o644), "sub/deep/b": plain("2", 0o400), "sub/c": plain("3", 0o666), "none": plain("", 0),
			})
			want := []string{
				"..TIME drwxr-xr-x",
				"..TIME/a -rw-r--r--",
				"..TIME/none ----------",
				"..TIME/sub drwxr-xr-x",
				"..TIME/sub/c -rw-rw-rw-",
				"..TIME/sub/deep drwxr-xr-x",
				"..TIME/sub/deep/b -r--------",
				"..data Lrwxrwxrwx -> ..TIME",
				"a Lrwxrwxrwx -> ..data/a",
				"none Lrwxrwxrwx -> ..data/none",
				"sub Lrwxrwxrwx -> ..data/sub",
			}
			if diff := cmp.Diff(want, shape(t, dir)); diff != "" {
				t.Errorf("volume differs (-want +got):\n%s", diff)
			}
			wantText(t, filepath.Join(dir, "sub/deep/b"), "2")
		})
	}
}

func TestSameContentIsNotWrittenAgain(t *testing.T) {
	w, dir := newWriter(t)
	files := map[string]File{"a": plain("1", 0o644), "sub/b": plain("2", 0o600)}
	mustWrite(t, w, files)
	before, err := os.Readlink(filepath.Join(dir, dataLink))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, w, files)
	if after, err := os.Readlink(filepath.Join(dir, dataLink)); err != nil || after != before {
		t.Errorf("..data leads to %s (%v), want %s as before", after, err, before)
	}
	wantText(t, filepath.Join(dir, "a"), "1")
}

func TestNewContentReplacesAllFiles(t *testing.T) {
	tests := map[string]struct {
		files map[string]File
		want  []string
	}{
		"another text": {
			map[string]File{"a": plain("9", 0o644), "sub/b": plain("2", 0o644), "sub/c": plain("3", 0o644)},
			[]string{"a", "sub"},
		},
		"another mode": {
			map[string]File{"a": plain("1", 0o600), "sub/b": plain("2", 0o644), "sub/c": plain("3", 0o644)},
			[]string{"a", "sub"},
		},
		"a key more": {
			map[string]File{"a": plain("1", 0o644), "b": plain("2", 0o644), "sub/b": plain("2", 0o644)},
			[]string{"a", "b", "sub"},
		},
		"a key less":                   {map[string]File{"sub/b": plain("2", 0o644), "sub/c": plain("3", 0o644)}, []string{"sub"}},
		"a key less in a directory":    {map[string]File{"a": plain("1", 0o644), "sub/c": plain("3", 0o644)}, []string{"a", "sub"}},
		"a file where a directory was": {map[string]File{"sub": plain("file", 0o644)}, []string{"sub"}},
		"nothing at all":               {map[string]File{}, []string{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w, dir := newWriter(t)
			mustWrite(t, w, map[string]File{"a": plain("1", 0o644), "sub/b": plain("2", 0o644), "sub/c": plain("3", 0o644)})
			mustWrite(t, w, test.files)
			got, valid, err := w.current()
			if diff := cmp.Diff(test.files, got); diff != "" || err != nil || !valid {
				t.Errorf("content differs (-want +got), error %v:\n%s", err, diff)
			}
			visible, times := []string{}, 0
			for _, entry := range names(t, dir) {
				if !strings.HasPrefix(entry, "..") {
					visible = append(visible, entry)
				} else if entry != dataLink {
					times++
				}
			}
			if diff := cmp.Diff(test.want, visible); diff != "" || times != 1 {
				t.Errorf("%d directories, visible differ (-want +got):\n%s", times, diff)
			}
		})
	}
}

// TestReadersSeeAllOldOrAllNew reads two files through ..data, like containers that open it once, while both are
// replaced together.
func TestReadersSeeAllOldOrAllNew(t *testing.T) {
	w, dir := newWriter(t)
	version := func(i int) map[string]File {
		text := strings.Repeat(fmt.Sprint(i%10), 5000)
		return map[string]File{"a": plain(text, 0o644), "b": plain(text, 0o644)}
	}
	mustWrite(t, w, version(0))
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := range 100 {
			if err := w.write(version(i)); err != nil {
				t.Error(err)
			}
		}
	})
	whole := 0
	for range 300 {
		root, err := os.OpenRoot(filepath.Join(dir, dataLink))
		if err != nil {
			t.Fatalf("..data is missing for a moment: %v", err)
		}
		a, errA := root.ReadFile("a")
		b, errB := root.ReadFile("b")
		if err := root.Close(); err != nil {
			t.Fatal(err)
		}
		if errA != nil || errB != nil {
			continue // The directory of the old version was removed.
		}
		whole++
		if string(a) != string(b) || len(a) != 5000 {
			t.Fatalf("a has %.3q (%d), b has %.3q (%d)", a, len(a), b, len(b))
		}
	}
	writer.Wait()
	if whole == 0 {
		t.Error("no reader saw a complete version")
	}
}

func TestLeftoversOfKilledWriterAreRemoved(t *testing.T) {
	w, dir := newWriter(t)
	files := map[string]File{"a": plain("1", 0o644)}
	mustWrite(t, w, files)
	write(t, filepath.Join(dir, "..2026_01_01_00_00_00.0123456789", "secret"), "left")
	symlink(t, "..2026_01_01_00_00_00.0123456789", filepath.Join(dir, dataLinkNew))
	mustWrite(t, w, files)
	if got := names(t, dir); len(got) != 3 {
		t.Errorf("the volume has %v, want only the content", got)
	}
	symlink(t, "nowhere", filepath.Join(dir, dataLinkNew))
	mustWrite(t, w, map[string]File{"a": plain("2", 0o644)})
	wantText(t, filepath.Join(dir, "a"), "2")
}

func TestContentThatWasTamperedWithIsReplaced(t *testing.T) {
	secretFile := filepath.Join(t.TempDir(), "secret")
	write(t, secretFile, "the machine's")
	for name, tamper := range map[string]func(t *testing.T, dir string){
		"a changed file":    func(t *testing.T, dir string) { t.Helper(); write(t, filepath.Join(dir, dataLink, "a"), "x") },
		"a file more":       func(t *testing.T, dir string) { t.Helper(); write(t, filepath.Join(dir, dataLink, "x"), "x") },
		"a lost file":       func(t *testing.T, dir string) { t.Helper(); remove(t, filepath.Join(dir, dataLink, "a")) },
		"a link for a file": func(t *testing.T, dir string) { t.Helper(); relink(t, secretFile, filepath.Join(dir, dataLink, "a")) },
		"lost ..data":       func(t *testing.T, dir string) { t.Helper(); remove(t, filepath.Join(dir, dataLink)) },
		"..data to nowhere": func(t *testing.T, dir string) { t.Helper(); relink(t, "..nowhere", filepath.Join(dir, dataLink)) },
		"..data upwards":    func(t *testing.T, dir string) { t.Helper(); relink(t, "..", filepath.Join(dir, dataLink)) },
		"..data outside": func(t *testing.T, dir string) {
			t.Helper()
			relink(t, filepath.Dir(secretFile), filepath.Join(dir, dataLink))
		},
		"a link to elsewhere": func(t *testing.T, dir string) { t.Helper(); relink(t, secretFile, filepath.Join(dir, "a")) },
		"a pipe for a file": func(t *testing.T, dir string) {
			t.Helper()
			remove(t, filepath.Join(dir, dataLink, "a"))
			mkfifo(t, filepath.Join(dir, dataLink, "a"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, dir := newWriter(t)
			files := map[string]File{"a": plain("1", 0o644), "b": plain("2", 0o644)}
			mustWrite(t, w, files)
			tamper(t, dir)
			mustWrite(t, w, files)
			if got := shape(t, dir); len(got) != 6 {
				t.Errorf("the volume has %v", got)
			}
			wantText(t, filepath.Join(dir, "a"), "1")
			wantText(t, secretFile, "the machine's")
		})
	}
}

func TestFailedWriteKeepsTheOldContent(t *testing.T) {
	w, dir := newWriter(t)
	mustWrite(t, w, map[string]File{"a": plain("1", 0o644)})
	err := w.write(map[string]File{"a": plain("2", 0o644), "a/b": plain("a file cannot be a directory", 0o644)})
	if err == nil || !strings.Contains(err.Error(), "a/b") {
		t.Errorf("error %v, want one that names the file", err)
	}
	wantText(t, filepath.Join(dir, "a"), "1")
	if got := names(t, dir); len(got) != 3 {
		t.Errorf("the volume has %v, want only the old content", got)
	}
}

func TestMountPointsOfOtherVolumesStay(t *testing.T) {
	c := newContext(t, configMapVolume("conf", v1.KeyToPath{Key: "a", Path: "a"},
		v1.KeyToPath{Key: "b", Path: "run/hidden"}), emptyDirVolume("tmp"))
	app := &c.Desired.Pod.Spec.Containers[0]
	app.VolumeMounts = []v1.VolumeMount{
		{Name: "conf", MountPath: "/etc/app/"},
		{Name: "tmp", MountPath: "/etc/app/run/cache"},
		{Name: "tmp", MountPath: "/etc/app/run/cache/deeper"},
		{Name: "tmp", MountPath: "/etc/app/run/cache2"},
		{Name: "tmp", MountPath: "/etc/application"},
		{Name: "tmp", MountPath: "/other"},
	}
	want := []string{"run/cache", "run/cache2"}
	if diff := cmp.Diff(want, nestedMounts(c.Desired.Pod, "conf")); diff != "" {
		t.Errorf("nested mounts differ (-want +got):\n%s", diff)
	}
	withUmask(t, 0o077)
	for _, text := range []string{"1", "2"} {
		c.Desired.Objects.ConfigMaps["conf"].Data["a"] = text
		prepare(t, c, "conf")
		wantMode(t, filepath.Join(c.dir(t, "conf"), "run"), os.ModeDir|0o755)
		wantMode(t, filepath.Join(c.dir(t, "conf"), "run/cache2"), os.ModeDir|0o755)
		wantText(t, filepath.Join(c.dir(t, "conf"), "a"), text)
	}
	wantPrepared(t, c, "conf")
	wantGone(t, filepath.Join(c.dir(t, "conf"), "run/cache/deeper"))
}
