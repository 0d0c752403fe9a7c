package commands

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// lab is a runtime in memory and the directories of one podctl.
type lab struct {
	*runtimetest.Server
	t          *testing.T
	dir        string
	clock      *runtimetest.Clock
	cgroupRoot string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	dir, err := os.MkdirTemp("", "podctl-lab-") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, dir: dir, cgroupRoot: filepath.Base(dir), clock: runtimetest.WallClock()}
	if l.Server, err = runtimetest.NewServer(t.Context(), l.path("cri.sock"), l.clock, "i:1", "i:2"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.Close()
		if err := errors.Join(cgroup.Remove("/"+l.cgroupRoot), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	return l
}

func (l *lab) path(name string) string { return filepath.Join(l.dir, name) }

// write makes a manifest of the pod's name and the rest of its spec.
func (l *lab) write(name, spec string) string {
	l.t.Helper()
	path := l.path(name + ".yaml")
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec:\n  terminationGracePeriodSeconds: 1\n" + spec
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
	return path
}

// call runs a command line.
func (l *lab) call(args ...string) (code int, stdout, stderr string) {
	l.t.Helper()
	var out, errs bytes.Buffer
	env := &Env{In: strings.NewReader(""), Out: &out, Err: &errs, Now: l.clock.Now, Getenv: func(string) string { return "" }}
	code = Main(l.t.Context(), env, append([]string{
		"--state-dir", l.path("state"), "--log-root", l.path("logs"), "--cgroup-root", l.cgroupRoot,
		"-r", "unix://" + l.path("cri.sock"), "--timeout", "30s",
	}, args...))
	return code, out.String(), errs.String()
}

// must runs a command line that ends well.
func (l *lab) must(args ...string) (stdout, stderr string) {
	l.t.Helper()
	code, stdout, stderr := l.call(args...)
	if code != exitOK {
		l.t.Fatalf("%v: exit code %d\n%s%s", args, code, stdout, stderr)
	}
	return stdout, stderr
}

// soon is how long what a runtime does takes in a test.
const soon = time.Millisecond
