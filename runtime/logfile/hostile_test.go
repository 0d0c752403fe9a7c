package logfile

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/podctl/podctl/runtime/safefs"
)

// logsOf creates the log directory of one container, and a file that only root may read.
func logsOf(t *testing.T) (path, secret string) {
	t.Helper()
	base := t.TempDir()
	path, secret = base+"/logs/pod/app/0.log", base+"/outside/app/0.log"
	for name, text := range map[string]string{path: line("mine"), secret: "root:secret:1:0\n", path + ".20260504-110000": line("older")} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return path, secret
}

func shown(t *testing.T, path string, opts *Options) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := Log{path}.Read(t.Context(), opts, nil, &out, &out)
	return out.String(), err
}

// TestLogsFollowNoLinks checks links of a container in its log directory. Nothing of their targets is shown, also in
// errors.
func TestLogsFollowNoLinks(t *testing.T) {
	for name, place := range map[string]func(path, secret string) (link, target string){
		"the log":              func(path, secret string) (string, string) { return path, secret },
		"a rotated file":       func(path, secret string) (string, string) { return path + ".20260504-110000", secret },
		"the container's logs": func(path, secret string) (string, string) { return filepath.Dir(path), filepath.Dir(secret) },
		"the pod's logs": func(path, secret string) (string, string) {
			return filepath.Dir(filepath.Dir(path)), filepath.Dir(filepath.Dir(secret))
		},
		"the log, and it is huge": func(path, _ string) (string, string) { return path, "/dev/zero" },
	} {
		t.Run(name, func(t *testing.T) {
			path, secret := logsOf(t)
			link, target := place(path, secret)
			if err := errors.Join(os.RemoveAll(link), os.Symlink(target, link)); err != nil {
				t.Fatal(err)
			}
			tail := int64(1)
			for _, opts := range []*Options{{}, {Tail: &tail}, {Follow: true}} {
				got, err := shown(t, path, opts)
				if text := fmt.Sprint(got, err); strings.Contains(text, "secret") ||
					(name == "a rotated file") != (err == nil && got == "mine\n") {
					t.Errorf("it reports %q, %v", got, err)
				}
				if err != nil && !errors.Is(err, safefs.ErrLink) {
					t.Errorf("error %v", err)
				}
				if opts.Follow && err == nil {
					t.Error("following ended")
				}
				if name == "a rotated file" {
					break
				}
			}
			var end bytes.Buffer
			if err := (Log{path}).End(t.Context(), 5, 1<<20, &end); strings.Contains(fmt.Sprint(end.String(), err), "secret") {
				t.Errorf("the end of it: %q %v", end.String(), err)
			}
			if (Limits{}).Full(path) {
				t.Error("it is to be rotated")
			}
		})
	}
}

// TestOtherFilesAreNotShown checks that no text of such a file is shown.
func TestOtherFilesAreNotShown(t *testing.T) {
	_, secret := logsOf(t)
	if got, err := shown(t, secret, &Options{}); got != "" || err == nil || strings.Contains(err.Error(), "secret:") {
		t.Errorf("%q %v", got, err)
	}
}

// TestTheLogRootMayBeALink checks a log root that is a link of root.
func TestTheLogRootMayBeALink(t *testing.T) {
	path, _ := logsOf(t)
	root := filepath.Dir(filepath.Dir(filepath.Dir(path)))
	link := filepath.Join(t.TempDir(), "logs")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	if got, err := shown(t, link+"/pod/app/0.log", &Options{}); err != nil || got != "older\nmine\n" {
		t.Errorf("%q %v", got, err)
	}
}

// TestOldLogsAreDropped checks that the oldest files are removed, even if there are many, and that the number of files
// to read is limited.
func TestOldLogsAreDropped(t *testing.T) {
	path, _ := logsOf(t)
	for i := range 2 * rotatedMax {
		if err := os.WriteFile(fmt.Sprintf("%s.2025-%05d", path, i), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := shown(t, path, &Options{}); err == nil || !strings.Contains(err.Error(), "more than 1000 files are named 0.log.…") {
		t.Errorf("too many files: %v", err)
	}
	dir, err := safefs.OpenDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	if err = errors.Join(Limits{}.DropOld(dir, filepath.Base(path)), dir.Close()); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(path + ".*")
	if err != nil || len(left) != filesMax-1 || left[filesMax-2] != path+".20260504-110000" {
		t.Errorf("left are %v (%v)", left, err)
	}
}

// growing is a log that is written and rotated like by a runtime.
type growing struct {
	t    *testing.T
	path string
	f    *os.File
}

func (g *growing) open() *os.File {
	g.t.Helper()
	f, err := os.OpenFile(g.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		g.t.Error(err)
	}
	return f
}

func (g *growing) write(text string) {
	g.t.Helper()
	if _, err := g.f.WriteString(text); err != nil {
		g.t.Error(err)
	}
}

// rotate starts a new file. Text is written to the old file meanwhile and for a moment afterwards.
func (g *growing) rotate(n int, between, after string) {
	g.t.Helper()
	if err := os.Rename(g.path, fmt.Sprintf("%s.20260504-12%04d", g.path, n)); err != nil {
		g.t.Error(err)
	}
	g.write(between)
	old := g.f
	g.f = g.open()
	if _, err := old.WriteString(after); err != nil {
		g.t.Error(err)
	}
	if err := old.Close(); err != nil {
		g.t.Error(err)
	}
}

// collected is the output so far.
type collected struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (c *collected) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.b.Write(p)
}

func (c *collected) lines() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Fields(c.b.String())
}

// TestFollowOverRotations checks that every line is shown once and in order, also with many rotations in a row.
// Following ends after the container has ended and everything is shown.
func TestFollowOverRotations(t *testing.T) {
	path, _ := logsOf(t)
	g := &growing{t: t, path: path}
	g.f = g.open()
	ended := make(chan struct{})
	running := func(context.Context) (bool, error) {
		select {
		case <-ended:
			return false, nil
		default:
			return true, nil
		}
	}
	var out collected
	done := make(chan error, 1)
	go func() { done <- Log{path}.Read(t.Context(), &Options{Follow: true}, running, &out, &out) }()
	want := []string{"older", "mine"}
	printed := func() string {
		want = append(want, fmt.Sprint(len(want)))
		return line(want[len(want)-1])
	}
	for i := range 40 {
		text := printed()
		g.write(text[:20])
		g.write(text[20:])
		if i%3 == 0 {
			g.rotate(i, printed(), printed())
		}
		if i%10 == 9 {
			for len(out.lines()) < len(want) && t.Context().Err() == nil {
				time.Sleep(time.Millisecond)
			}
		}
	}
	g.write(printed() + "2026-05-04T12:00:00Z stdout F cut")
	close(ended)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if want = append(want, "cut"); !slices.Equal(out.lines(), want) {
		t.Errorf("shown were %v, not %v", out.lines(), want)
	}
	if err := g.f.Close(); err != nil {
		t.Error(err)
	}
}

// rotating is an output that rotates a log while the first line is shown.
type rotating struct {
	collected
	once   sync.Once
	rotate func()
}

func (r *rotating) Write(p []byte) (int, error) {
	r.once.Do(r.rotate)
	return r.collected.Write(p)
}

// TestFollowOverCompressedLogs checks that a reader that was slow continues after the file that it has read last,
// although the files were compressed in the meantime.
func TestFollowOverCompressedLogs(t *testing.T) {
	for name, compressed := range map[string][]string{
		"the file being read":            {"0.log.20260504-120000"},
		"also the next one":              {"0.log.20260504-120000", "0.log.20260504-120001"},
		"the file being read is gone":    nil,
		"and the next one is compressed": {"0.log.20260504-120001"},
	} {
		t.Run(name, func(t *testing.T) {
			path, _ := logsOf(t)
			g := &growing{t: t, path: path}
			g.f = g.open()
			out := &rotating{}
			out.rotate = func() {
				g.rotate(0, "", line("rest"))
				g.rotate(1, line("second"), "")
				g.rotate(2, line("third"), "")
				g.write(line("last"))
				dir := filepath.Dir(path)
				if !slices.Contains(compressed, "0.log.20260504-120000") {
					if err := os.Remove(dir + "/0.log.20260504-120000"); err != nil {
						t.Error(err)
					}
				}
				for _, name := range compressed {
					pack(t, dir+"/"+name)
				}
			}
			ended := func(context.Context) (bool, error) { return false, nil }
			if err := (Log{path}).Read(t.Context(), &Options{Follow: true, Tail: new(int64(1))}, ended, out, out); err != nil {
				t.Fatal(err)
			}
			if got, want := out.lines(), []string{"mine", "rest", "second", "third", "last"}; !slices.Equal(got, want) {
				t.Errorf("shown were %v, not %v", got, want)
			}
			if err := g.f.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// pack replaces a file by a compressed one.
func pack(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err = z.Write(text)
	if err = errors.Join(err, z.Close(), os.WriteFile(name+Compressed, packed.Bytes(), 0o600), os.Remove(name)); err != nil {
		t.Fatal(err)
	}
}

// TestFollowEndsWithTheContext checks that following ends also without output, and that it waits for a log that does
// not exist yet.
func TestFollowEndsWithTheContext(t *testing.T) {
	path, _ := logsOf(t)
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan struct{}, 100)
	running := func(context.Context) (bool, error) {
		select {
		case asked <- struct{}{}:
		default:
		}
		return true, nil
	}
	var out collected
	done := make(chan error, 1)
	if err := os.Rename(path, path+".20260504-120000"); err != nil {
		t.Fatal(err)
	}
	go func() { done <- Log{path}.Read(ctx, &Options{Follow: true}, running, &out, &out) }()
	<-asked
	if err := os.WriteFile(path, []byte(line("new")), 0o600); err != nil {
		t.Fatal(err)
	}
	for len(out.lines()) < 3 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || !slices.Equal(out.lines(), []string{"older", "mine", "new"}) {
		t.Errorf("%v %v", out.lines(), err)
	}
}

// TestFollowFollowsNoLink checks a link that replaces the log meanwhile.
func TestFollowFollowsNoLink(t *testing.T) {
	path, secret := logsOf(t)
	swapped := false
	running := func(context.Context) (bool, error) {
		var err error
		if !swapped {
			err = errors.Join(os.Remove(path), os.Symlink(secret, path))
			swapped = true
		}
		return true, err
	}
	var out collected
	err := Log{path}.Read(t.Context(), &Options{Follow: true}, running, &out, &out)
	if !errors.Is(err, safefs.ErrLink) || strings.Contains(fmt.Sprint(err, out.lines()), "secret") {
		t.Errorf("%v %v", out.lines(), err)
	}
}

// TestFollowWithoutWatches checks the log periodically.
func TestFollowWithoutWatches(t *testing.T) {
	w := &watcher{}
	defer w.close()
	ctx, cancel := context.WithCancel(t.Context())
	if err := w.wait(ctx, time.Millisecond); err != nil {
		t.Error(err)
	}
	cancel()
	if err := w.wait(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestStreamOrderIsKept checks that the order of streams stays, although output is written in larger pieces.
func TestStreamOrderIsKept(t *testing.T) {
	path, _ := logsOf(t)
	text, want := "", ""
	for i := range 50 {
		text += strings.Replace(line(fmt.Sprint(i)), "stdout", []string{"stdout", "stderr"}[i*i/3%2], 1)
		want += fmt.Sprintln(i)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var got both
	if err := (Log{path}).Read(t.Context(), &Options{}, nil, got.out(), got.err()); err != nil || got.all.String() != "older\n"+want {
		t.Errorf("%v %q", err, got.all.String())
	}
}

// TestTheLastLinesOverFiles checks that the last lines come from all files, also compressed ones, and that a line split
// by a rotation has its time once.
func TestTheLastLinesOverFiles(t *testing.T) {
	path, _ := logsOf(t)
	part := strings.Replace(line("be"), " F ", " P ", 1)
	for name, text := range map[string]string{
		path + ".20260504-100000.gz": string(zipped(t, line("one")+line("two"))),
		path + ".20260504-110000":    part,
		path:                         line("gin") + line("end"),
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for tail, want := range map[int64]string{0: "", 1: "end\n", 3: "begin\nend\n", 4: "two\nbegin\nend\n", 9: "one\ntwo\nbegin\nend\n"} {
		if got, err := shown(t, path, &Options{Tail: &tail}); err != nil || got != want {
			t.Errorf("the last %d: %q %v", tail, got, err)
		}
	}
	const stamp = "2026-05-04T12:00:00.000000001Z "
	if got, err := shown(t, path, &Options{Timestamps: true}); err != nil ||
		got != stamp+"one\n"+stamp+"two\n"+stamp+"begin\n"+stamp+"end\n" {
		t.Errorf("%q %v", got, err)
	}
}
