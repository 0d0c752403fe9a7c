package containerd

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// TestProcessDefaultsOfTheContainer checks that settings that a process does not override are the container's.
func TestProcessDefaultsOfTheContainer(t *testing.T) {
	umask := uint32(0o27)
	own := func() *specs.Process {
		return &specs.Process{
			Args:            []string{"/app"},
			CommandLine:     "app",
			Cwd:             "/srv",
			Env:             []string{"PATH=/bin", "A=1"},
			NoNewPrivileges: true,
			ApparmorProfile: "p",
			Capabilities:    &specs.LinuxCapabilities{Bounding: []string{"CAP_KILL"}},
			User:            specs.User{UID: 5, GID: 6, AdditionalGids: []uint32{7}, Umask: &umask},
		}
	}
	for name, c := range map[string]struct {
		process Process
		change  func(*specs.Process)
	}{
		"nothing":   {Process{}, func(*specs.Process) {}},
		"directory": {Process{Dir: "/tmp"}, func(s *specs.Process) { s.Cwd = "/tmp" }},
		"variables": {Process{Env: []string{"A=2", "B=x=y"}}, func(s *specs.Process) { s.Env = []string{"PATH=/bin", "A=2", "B=x=y"} }},
		"terminal": {Process{Terminal: true}, func(s *specs.Process) {
			s.Terminal, s.Env = true, append(s.Env, "TERM=xterm")
		}},
		"a terminal of another kind": {Process{Terminal: true, Env: []string{"TERM=vt100"}}, func(s *specs.Process) {
			s.Terminal, s.Env = true, append(s.Env, "TERM=vt100")
		}},
		"user": {Process{User: &User{UID: 1, GID: 2, AdditionalGroups: []uint32{3}}}, func(s *specs.Process) {
			s.User = specs.User{UID: 1, GID: 2, AdditionalGids: []uint32{3}, Umask: &umask}
		}},
	} {
		spec, want := own(), own()
		c.process.Args = []string{"id"}
		want.Args, want.CommandLine = []string{"id"}, ""
		c.change(want)
		if diff := cmp.Diff(want, c.process.on(spec)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(own(), spec); diff != "" {
			t.Errorf("%s changes the container's own:\n%s", name, diff)
		}
	}
}
