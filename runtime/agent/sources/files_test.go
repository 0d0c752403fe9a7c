package sources

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"github.com/podctl/podctl/runtime/model"
)

// patient is how long a test waits for an expected event. Only a test that fails needs it.
const patient = 10 * time.Minute

// soon is the delay of reports in tests with real files and servers. TestInvalidTexts checks the delay of an agent.
const soon = 20 * time.Millisecond

// recorder records the updates of a source.
type recorder struct {
	lock    sync.Mutex
	updates []Update
}

func (l *recorder) record(u Update) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.updates = append(l.updates, u)
}

func (l *recorder) all() []Update {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.updates
}

// awaits waits for an update.
func (l *recorder) awaits(t *testing.T, what string, is func(Update) bool) Update {
	t.Helper()
	for end := time.Now().Add(patient); ; time.Sleep(time.Millisecond) {
		if all := l.all(); len(all) > 0 && is(all[len(all)-1]) {
			return all[len(all)-1]
		}
		if time.Now().After(end) {
			t.Fatalf("no update has %s; updates %+v", what, l.all())
		}
	}
}

func (l *recorder) wants(t *testing.T, pods string) Update {
	t.Helper()
	return l.awaits(t, pods, func(u Update) bool { return u.Complete && shown(u) == pods })
}

// blames waits for one problem of a file that contains some words.
func (l *recorder) blames(t *testing.T, file, words string) Update {
	t.Helper()
	return l.awaits(t, words, func(u Update) bool {
		return len(u.Problems) == 1 && u.Problems[0].File == file && strings.Contains(u.Problems[0].Text, words)
	})
}

// never checks that no update lacked any of some pods.
func (l *recorder) never(t *testing.T, without string) {
	t.Helper()
	for _, u := range l.all() {
		if u.Complete && !strings.Contains(shown(u), without) {
			t.Errorf("an update is without %s: %s", without, shown(u))
		}
	}
}

// starts runs a source until the test ends.
func starts(t *testing.T, s Source) (*recorder, chan chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l, reread, done := &recorder{}, make(chan chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx, reread, l.record)
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(patient):
			t.Error("the source does not end")
		}
	})
	return l, reread
}

// watched runs the source of a path. The interval is long, so that only events lead to reads.
func watched(t *testing.T, path string) *recorder {
	t.Helper()
	s, err := NewFiles(path, Settings{Interval: time.Hour, Settle: 5 * time.Millisecond, reportDelay: soon})
	if err != nil {
		t.Fatal(err)
	}
	l, _ := starts(t, s)
	l.awaits(t, "a first update", func(u Update) bool { return u.Complete || len(u.Problems) > 0 })
	return l
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// must fails the test if a step failed.
func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// TestDirectory checks that files are added, written, replaced and removed, and that files that are not manifests are
// ignored.
func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "one.yaml"), manifest("one", "", "1"))
	for _, name := range []string{".one.yaml.swp", "one.yaml~", "#one.yaml#", ".hidden.yaml", "one.yaml.bak", "4913", "notes.txt"} {
		put(t, filepath.Join(dir, name), "garbage")
	}
	must(t, os.Mkdir(filepath.Join(dir, "below.yaml"), 0o700))
	l := watched(t, dir)
	if u := l.wants(t, "one:1"); len(u.Problems)+len(u.Unread) > 0 || u.Source != dir || u.Pods[0].Owner != dir ||
		u.Pods[0].Source != filepath.Join(dir, "one.yaml") {
		t.Errorf("%+v", u)
	}
	put(t, filepath.Join(dir, "two.yml"), manifest("two", "", "1"))
	l.wants(t, "one:1 two:1")
	put(t, filepath.Join(dir, "one.yaml"), manifest("one", "", "2"))
	l.wants(t, "one:2 two:1")
	put(t, filepath.Join(dir, ".new"), manifest("one", "", "3"))
	must(t, os.Rename(filepath.Join(dir, ".new"), filepath.Join(dir, "one.yaml")))
	l.wants(t, "one:3 two:1")
	must(t, os.Rename(filepath.Join(dir, "two.yml"), filepath.Join(dir, "renamed.json")))
	l.awaits(t, "the new name", func(u Update) bool {
		return shown(u) == "one:3 two:1" && filepath.Base(u.Pods[1].Source) == "renamed.json"
	})
	l.never(t, "one:")
	must(t, os.Remove(filepath.Join(dir, "renamed.json")), os.Chmod(filepath.Join(dir, "one.yaml"), 0o400))
	l.wants(t, "one:3")
	for i, u := range l.all()[1:] {
		if u.SameAs(l.all()[i]) {
			t.Errorf("reported twice: %+v", u)
		}
	}
}

// TestHalfWritten checks that a file changes nothing while it is being written, and is reported as a problem if it
// stays incomplete.
func TestHalfWritten(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "one.yaml")
	put(t, path, manifest("one", "", "1"))
	l := watched(t, dir)
	put(t, path, "")
	time.Sleep(50 * time.Millisecond)
	put(t, path, manifest("one", "", "2")[:60])
	u := l.blames(t, path, "one.yaml:")
	if shown(u) != "one:1" {
		t.Errorf("wanted are %s", shown(u))
	}
	put(t, path, manifest("one", "", "2"))
	if u = l.wants(t, "one:2"); len(u.Problems) > 0 {
		t.Errorf("problems %v", u.Problems)
	}
	l.never(t, "one:")
}

// TestReplacedFile checks that a file that is renamed to its name is reported as complete. A file that is written in
// place is not, even if another one was moved away before. TestSeriesOfEventsIsOneReport checks when they are read.
func TestReplacedFile(t *testing.T) {
	dir, away := t.TempDir(), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	w := newWatch(dir, "")
	must(t, w.renew(t.Context()))
	for range 3 {
		put(t, at(".new"), "text")
		must(t, os.Rename(at(".new"), at("one.yaml")))
		if c := <-w.events; c != replaced {
			t.Errorf("a file that was replaced is %d", c)
		}
	}
	put(t, at(".other"), "")
	must(t, os.Rename(at(".other"), filepath.Join(away, "other")))
	put(t, at("one.yaml"), "half")
	if c := <-w.events; c != written {
		t.Errorf("a file that was written is %d", c)
	}
}

// TestWrittenFile checks that a file that is written in place is not read before it has settled.
func TestWrittenFile(t *testing.T) {
	const settles = 300 * time.Millisecond
	path := filepath.Join(t.TempDir(), "one.yaml")
	put(t, path, manifest("one", "", "1"))
	s, err := NewFiles(path, Settings{Interval: time.Hour, Settle: settles})
	must(t, err)
	l, _ := starts(t, s)
	l.wants(t, "one:1")
	began := time.Now()
	put(t, path, manifest("one", "", "2"))
	if l.wants(t, "one:2"); time.Since(began) < settles {
		t.Errorf("it was read after %s", time.Since(began))
	}
}

// TestDeletedFile checks that a file that is deleted and written again ends its pod only with EndRemoved, and that a
// file that is replaced does not.
func TestDeletedFile(t *testing.T) {
	for _, ends := range []bool{false, true} {
		dir := t.TempDir()
		at := func(name string) string { return filepath.Join(dir, name) }
		put(t, at("one.yaml"), manifest("one", "", "1"))
		s, err := NewFiles(dir, Settings{EndRemoved: ends})
		must(t, err)
		l, _ := starts(t, s)
		l.wants(t, "one:1")
		put(t, at(".new"), manifest("one", "", "2"))
		must(t, os.Rename(at(".new"), at("one.yaml")))
		l.wants(t, "one:2")
		must(t, os.Remove(at("one.yaml")))
		put(t, at("one.yaml"), manifest("one", "", "2"))
		put(t, at("two.yaml"), manifest("two", "", "1"))
		l.wants(t, "one:2 two:1")
		ended := func() bool {
			return slices.ContainsFunc(l.all(), func(u Update) bool { return u.Complete && len(u.Pods) == 0 })
		}
		for ends && !ended() {
			time.Sleep(time.Millisecond)
		}
		if ended() != ends {
			t.Errorf("EndRemoved %t: the pod has ended: %t", ends, ended())
		}
	}
}

// TestChanges checks that only a file renamed within the directory counts as replaced.
func TestChanges(t *testing.T) {
	dir, away := t.TempDir(), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	watcher, err := fsnotify.NewWatcher()
	must(t, err, watcher.Add(dir))
	defer watcher.Close() //nolint:errcheck // the test is over
	for _, c := range []struct {
		name string
		do   func() error
		want []change
	}{
		{"new", func() error { return os.Mkdir(at("a"), 0o700) }, []change{written}},
		{"moved away", func() error { return os.Rename(at("a"), filepath.Join(away, "a")) }, []change{written}},
		{"new after that", func() error { return os.Mkdir(at("b"), 0o700) }, []change{written}},
		{"moved in", func() error { return os.Rename(filepath.Join(away, "a"), at("a")) }, []change{written}},
		{"renamed", func() error { return os.Rename(at("a"), at("c")) }, []change{written, replaced}},
	} {
		must(t, c.do())
		for _, want := range c.want {
			if event := <-watcher.Events; changeOf(event) != want {
				t.Errorf("%s: %s is %d", c.name, event, changeOf(event))
			}
		}
	}
}

// TestVolumeSwap checks a directory of a Kubernetes volume, which is swapped by renaming a link.
func TestVolumeSwap(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for i := range 2 {
		must(t, os.Mkdir(at(fmt.Sprintf("..%d", i)), 0o700))
		put(t, at(fmt.Sprintf("..%d/one.yaml", i)), manifest("one", "", fmt.Sprint(i)))
	}
	must(t, os.Symlink("..0", at("..data")), os.Symlink("..data/one.yaml", at("one.yaml")))
	all, single := watched(t, dir), watched(t, at("one.yaml"))
	all.wants(t, "one:0")
	single.wants(t, "one:0")
	must(t, os.Symlink("..1", at("..tmp")), os.Rename(at("..tmp"), at("..data")), os.RemoveAll(at("..0")))
	all.wants(t, "one:1")
	single.wants(t, "one:1")
}

// TestReplacedDirectory checks that a directory that is missing for a moment keeps its pods, and is watched again when
// it is back.
func TestReplacedDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pods")
	path := filepath.Join(dir, "one.yaml")
	must(t, os.Mkdir(dir, 0o700))
	put(t, path, manifest("one", "", "1"))
	l := watched(t, dir)
	for i := range 3 {
		must(t, os.Rename(dir, fmt.Sprint(dir, i)))
		time.Sleep(20 * time.Millisecond)
		must(t, os.Mkdir(dir, 0o700))
		put(t, path, manifest("one", "", fmt.Sprint("a", i)))
		l.wants(t, fmt.Sprint("one:a", i))
		must(t, os.RemoveAll(dir))
		time.Sleep(20 * time.Millisecond)
		must(t, os.Mkdir(dir, 0o700))
		put(t, path, manifest("one", "", fmt.Sprint("b", i)))
		l.wants(t, fmt.Sprint("one:b", i))
	}
	must(t, os.RemoveAll(dir))
	if u := l.blames(t, dir, "no such file or directory"); shown(u) != "one:b2" {
		t.Errorf("wanted are %s", shown(u))
	}
	l.never(t, "one:")
	must(t, os.Mkdir(dir, 0o700))
	l.wants(t, "")
}

// TestMissingPaths checks that a missing directory is not read as empty. A missing file is, unless its directory is
// missing, too.
func TestMissingPaths(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(dir, "pods"), filepath.Join(dir, "pods", "one.yaml")} {
		if u := watched(t, path).blames(t, path, "no such file or directory"); u.Complete {
			t.Errorf("%s counts as read", path)
		}
	}
	path := filepath.Join(dir, "one.yaml")
	l := watched(t, path)
	l.wants(t, "")
	put(t, path, manifest("one", "", "1"))
	l.wants(t, "one:1")
	put(t, filepath.Join(dir, "other.yaml"), manifest("other", "", "1"))
	put(t, path, manifest("one", "", "2"))
	l.wants(t, "one:2")
	must(t, os.Remove(path))
	l.wants(t, "")
	l = watched(t, filepath.Join(dir, "pods"))
	must(t, os.Mkdir(filepath.Join(dir, "pods"), 0o700))
	l.wants(t, "")
	put(t, filepath.Join(dir, "pods", "one.yaml"), manifest("one", "", "1"))
	l.wants(t, "one:1")
}

// TestUnreadableFiles checks that unreadable files do not hide others.
func TestUnreadableFiles(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	put(t, at("one.yaml"), manifest("one", "", "1"))
	put(t, at("large.yaml"), strings.Repeat("#", 11<<20))
	must(t, os.Symlink("nowhere", at("link.yaml")), os.Symlink("/", at("dir.yaml")), unix.Mkfifo(at("pipe.yaml"), 0o600))
	l := watched(t, dir)
	u := l.awaits(t, "four problems", func(u Update) bool { return len(u.Problems) == 4 })
	if shown(u) != "one:1" || len(u.Unread) != 4 {
		t.Errorf("%+v", u)
	}
	for i, words := range []string{"it is not a regular file", "larger than", "no such file", "it is not a regular file"} {
		if !strings.Contains(u.Problems[i].Text, words) {
			t.Errorf("%v, want %q", u.Problems[i], words)
		}
	}
	must(t, os.Remove(at("link.yaml")), os.Remove(at("dir.yaml")), os.Remove(at("pipe.yaml")), os.Remove(at("large.yaml")))
	l.awaits(t, "no problem", func(u Update) bool { return len(u.Problems)+len(u.Unread) == 0 && shown(u) == "one:1" })
}

// TestReread checks that a requested read finds changes without an event.
func TestReread(t *testing.T) {
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "text")
	put(t, elsewhere, manifest("one", "", "1"))
	must(t, os.Symlink(elsewhere, filepath.Join(dir, "one.yaml")))
	s, err := NewFiles(dir, Settings{Interval: time.Hour})
	must(t, err)
	l, reread := starts(t, s)
	l.wants(t, "one:1")
	put(t, elsewhere, manifest("one", "", "2"))
	requested := make(chan struct{})
	reread <- requested
	<-requested
	if u := l.all()[len(l.all())-1]; shown(u) != "one:2" {
		t.Errorf("after the look: %s", shown(u))
	}
	s.Ended(model.PodRef{})
}

// TestListing checks that the periodic read finds changes without an event.
func TestListing(t *testing.T) {
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "text")
	put(t, elsewhere, manifest("one", "", "1"))
	must(t, os.Symlink(elsewhere, filepath.Join(dir, "one.yaml")))
	s, err := NewFiles(dir, Settings{Interval: 10 * time.Millisecond})
	must(t, err)
	l, _ := starts(t, s)
	l.wants(t, "one:1")
	put(t, elsewhere, manifest("one", "", "2"))
	l.wants(t, "one:2")
}

// TestUnchangedFilesAreNotRead checks that unchanged files are not read again once they are older than the resolution
// of their times.
func TestUnchangedFilesAreNotRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "one.yaml")
	put(t, path, manifest("one", "", "1"))
	f, err := NewFiles(dir, Settings{})
	must(t, err)
	info, err := os.Stat(path)
	must(t, err)
	now := identityOf(info)
	changed := time.Unix(now.inner.Unix())
	for _, c := range []struct {
		after time.Duration
		known bool
	}{{0, false}, {timeResolution, false}, {timeResolution + 1, true}, {time.Hour, true}} {
		f.read(t.Context(), changed.Add(c.after))
		if _, known := f.kept.unchanged(path, info); known != c.known {
			t.Errorf("read %s after the change, it is known: %t", c.after, known)
		}
	}
	is := f.kept[path].id
	for name, change := range map[string]func(*identity){
		"size": func(i *identity) { i.size++ }, "inode": func(i *identity) { i.inode++ }, "device": func(i *identity) { i.device++ },
		"mtime": func(i *identity) { i.written.Nsec++ }, "ctime": func(i *identity) { i.inner.Nsec-- },
	} {
		k := f.kept[path]
		k.id = is
		change(&k.id)
		f.kept[path] = k
		if _, known := f.kept.unchanged(path, info); known {
			t.Errorf("a file of another %s counts as read", name)
		}
	}
}

// TestFailedWatchNamesTheLimit checks that the message of a failed watch names the limit to raise.
func TestFailedWatchNamesTheLimit(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.EMFILE: "fs.inotify.max_user_instances", syscall.ENOSPC: "fs.inotify.max_user_watches", syscall.EACCES: "permission denied",
	} {
		if err := noticedLate("/pods", fmt.Errorf("adding: %w", errno)); !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "/pods") {
			t.Errorf("%v: %v", errno, err)
		}
	}
}
