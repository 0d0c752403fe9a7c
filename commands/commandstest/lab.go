package commandstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/state"
)

// Main runs one command line and returns its exit code. It is the type of commands.Main.
type Main func(ctx context.Context, env *terminal.Env, args []string) int

// Lab is a runtime in memory with the directories of one podctl.
type Lab struct {
	*runtimetest.Server
	Clock      *runtimetest.Clock
	CgroupRoot string

	t    *testing.T
	main Main
	dir  string
	// stopAgent stops the agent of ServeNode.
	stopAgent func()
}

// NewLab returns a lab that is removed at the end of the test.
func NewLab(t *testing.T, main Main) *Lab {
	t.Helper()
	dir, err := os.MkdirTemp("", "podctl-lab-") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	l := &Lab{t: t, main: main, dir: dir, CgroupRoot: filepath.Base(dir), Clock: runtimetest.WallClock()}
	l.stopAgent = func() {}
	if l.Server, err = runtimetest.NewServer(t.Context(), l.Path("cri.sock"), l.Clock, "i:1", "i:2"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.Close()
		err := cgroup.Machine{}.Remove(context.Background(), "/"+l.CgroupRoot)
		if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	return l
}

// T returns the test.
func (l *Lab) T() *testing.T { return l.t }

// Path returns a path in the lab's directory.
func (l *Lab) Path(name string) string { return filepath.Join(l.dir, name) }

// Write writes a manifest for a pod. spec has the rest of its spec in YAML. It returns the path of the file.
func (l *Lab) Write(name, spec string) string {
	l.t.Helper()
	path := l.Path(name + ".yaml")
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\n" +
		"spec:\n  terminationGracePeriodSeconds: 1\n" + spec
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
	return path
}

// Args prepends the flags that select the lab to the arguments of a command line.
func (l *Lab) Args(args ...string) []string {
	return append([]string{
		"--state-dir", l.Path("state"),
		"--log-root", l.Path("logs"),
		"--cgroup-root", l.CgroupRoot,
		"--proxy-mode", "none",
		"-r", "unix://" + l.Path("cri.sock"),
		"--timeout", "5m",
	}, args...)
}

// Call runs a command line.
func (l *Lab) Call(args ...string) (code int, stdout, stderr string) {
	l.t.Helper()
	var out, errs bytes.Buffer
	code = l.main(l.t.Context(), Env("", &out, &errs, l.Clock.Now), l.Args(args...))
	return code, out.String(), errs.String()
}

// Must runs a command line, and fails the test if it fails.
func (l *Lab) Must(args ...string) (stdout, stderr string) {
	l.t.Helper()
	code, stdout, stderr := l.Call(args...)
	if code != exit.OK {
		l.t.Fatalf("%v: exit code %d\n%s%s", args, code, stdout, stderr)
	}
	return stdout, stderr
}

// Limits returns the time limits with which a test tries a command that ends by its limit. The rest of the command must
// also fit into the limit, and a busy machine needs a longer one.
func Limits() []string { return []string{"300ms", "1s", "5s", "30s", "5m"} }

// InTime runs a command line with each of the Limits until good accepts its exit code and output.
func (l *Lab) InTime(flag string, args []string, good func(code int, text string) bool) {
	l.t.Helper()
	var report string
	for _, limit := range Limits() {
		code, stdout, stderr := l.Call(append(slices.Clone(args), flag, limit)...)
		if good(code, stdout+stderr) {
			return
		}
		report = fmt.Sprintf("%v %s %s: exit code %d\n%s%s", args, flag, limit, code, stdout, stderr)
	}
	l.t.Error(report)
}

// Env returns an environment without a terminal and without variables.
func Env(stdin string, out, errs io.Writer, now func() time.Time) *terminal.Env {
	return &terminal.Env{
		In:     strings.NewReader(stdin),
		Out:    out,
		Err:    errs,
		Now:    now,
		Getenv: func(string) string { return "" },
	}
}

// Call runs one command line without a runtime.
func Call(t *testing.T, main Main, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	now := func() time.Time { return time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC) }
	code = main(t.Context(), Env(stdin, &out, &errs, now), append(args, "--state-dir", t.TempDir()))
	return code, out.String(), errs.String()
}

// Pods has manifests of two pods in the namespace default and one in another.
const Pods = `{apiVersion: v1, kind: Pod, metadata: {name: hello}, spec: {
  initContainers: [{name: fetch, image: i}], containers: [{name: web, image: i}, {name: worker, image: i}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: help}, spec: {containers: [{name: app, image: i}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: dns, namespace: system}, spec: {containers: [{name: core, image: i}]}}
`

// Applied returns a state directory in which the pods of a manifest have been applied.
func Applied(t *testing.T, manifest string) string {
	t.Helper()
	m, err := load.Load(t.Context(), input.Reader{Stdin: strings.NewReader(manifest)}, "-")
	if err != nil || m.Err() != nil {
		t.Fatal(err, m.Err())
	}
	dir := filepath.Join(t.TempDir(), "state")
	for _, d := range m.Pods {
		pod := state.Layout{Root: dir, LogRoot: t.TempDir()}.Pod(d.Pod.UID)
		if err := pod.Checkpoint().Write(&state.Checkpoint{Memory: model.Memory{Applied: d}}); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Walk calls visit for a command and all its subcommands.
func Walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, sub := range cmd.Commands() {
		Walk(sub, visit)
	}
}
