package commands

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/commandstest"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// plainLab is an in-memory runtime with applied pods, so that every inspection command has output.
type plainLab struct {
	state, socket, manifest string
	clock                   *runtimetest.Clock
}

func newPlainLab(t *testing.T) *plainLab {
	t.Helper()
	dir, err := os.MkdirTemp("", "podctl-plain-") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l := &plainLab{
		state: commandstest.Applied(t, commandstest.Pods), socket: filepath.Join(dir, "cri.sock"),
		manifest: filepath.Join(dir, "pods.yaml"),
	}
	l.clock = runtimetest.NewClock(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC))
	server, err := runtimetest.NewServer(t.Context(), l.socket, l.clock, "i")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	if err := os.WriteFile(l.manifest, []byte(commandstest.Pods), 0o600); err != nil {
		t.Fatal(err)
	}
	return l
}

// call runs a command line on pipes, or on a terminal with the given variables.
func (l *plainLab) call(t *testing.T, terminal map[string]string, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	env := &Env{
		In:     strings.NewReader(""),
		Out:    &out,
		Err:    &errs,
		OutTTY: terminal != nil,
		ErrTTY: terminal != nil,
		Now:    l.clock.Now,
		Getenv: func(name string) string { return terminal[name] },
	}
	Main(t.Context(), env, append([]string{"--state-dir", l.state, "--runtime-endpoint", l.socket}, args...))
	return out.String(), errs.String()
}

// commandLines returns calls that need no running container.
func (l *plainLab) commandLines() [][]string {
	return [][]string{
		{"plan", l.manifest},
		{"plan", "-o", "json", "hello"},
		{"plan", "-o", "yaml", "hello"},
		{"apply", "--dry-run", l.manifest},
		{"delete", "--dry-run", "hello"},
		{"get"},
		{"get", "-A", "-o", "wide"},
		{"get", "--containers"},
		{"get", "-o", "yaml", "hello"},
		{"probe", "hello"},
		{"validate", l.manifest},
		{"render", l.manifest},
		{"snapshot"},
		{"export", "hello"},
		{"version"},
		{"completion", "bash"},
		{"node", "status"},
		{"plan", "nobody"},
		{"plan", "--nonsense"},
		{"plan", "--help"},
		{},
	}
}

// notPlain matches control characters for a terminal.
func notPlain() *regexp.Regexp { return regexp.MustCompile(`[\x00-\x08\x0b-\x1f\x7f]|\x{9b}`) }

// TestPipesGetPlainText checks that both streams are plain text if they are not a terminal, for a pager, a log or
// another program.
func TestPipesGetPlainText(t *testing.T) {
	l := newPlainLab(t)
	for _, args := range l.commandLines() {
		stdout, stderr := l.call(t, nil, args...)
		if stdout+stderr == "" {
			t.Errorf("podctl %v prints nothing", args)
		}
		if found := notPlain().FindString(stdout + stderr); found != "" {
			t.Errorf("podctl %v: %q on a pipe", args, found)
		}
		if strings.HasSuffix(stdout, "\n\n") || (stdout != "" && !strings.HasSuffix(stdout, "\n")) {
			t.Errorf("podctl %v: the last line has no newline", args)
		}
	}
}

// TestHelpIsPlain checks that help is plain text, on a terminal too.
func TestHelpIsPlain(t *testing.T) {
	l := newPlainLab(t)
	commandstest.Walk(New(&Env{Getenv: func(string) string { return "" }}), func(cmd *cobra.Command) {
		args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
		stdout, stderr := l.call(t, map[string]string{"TERM": "xterm"}, args...)
		if stdout == "" || stderr != "" || notPlain().MatchString(stdout) {
			t.Errorf("%v: %q %q", args, stdout, stderr)
		}
	})
}

// TestColours checks that a terminal gets colours unless it or the user disables them.
func TestColours(t *testing.T) {
	l := newPlainLab(t)
	for name, c := range map[string]struct {
		terminal map[string]string
		flags    []string
		want     bool
	}{
		"a terminal":            {terminal: map[string]string{"TERM": "xterm"}, want: true},
		"NO_COLOR":              {terminal: map[string]string{"TERM": "xterm", "NO_COLOR": "1"}},
		"a dumb terminal":       {terminal: map[string]string{"TERM": "dumb"}},
		"--color never":         {terminal: map[string]string{"TERM": "xterm"}, flags: []string{"--color", "never"}},
		"a pipe":                {},
		"a pipe --color always": {flags: []string{"--color", "always"}, want: true},
	} {
		stdout, _ := l.call(t, c.terminal, append(c.flags, "plan", l.manifest)...)
		if got := strings.Contains(stdout, "\x1b["); got != c.want {
			t.Errorf("%s: colours %v\n%q", name, got, stdout)
		}
	}
}

// TestSystemKnowsPipes checks that a pipe is not treated as a terminal.
func TestSystemKnowsPipes(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(r.Close(), w.Close()) })
	out, errs := os.Stdout, os.Stderr                      //nolint:forbidigo // the test replaces the streams of the process
	t.Cleanup(func() { os.Stdout, os.Stderr = out, errs }) //nolint:forbidigo // as above
	os.Stdout, os.Stderr = w, w                            //nolint:forbidigo // as above
	if env := System(); env.OutTTY || env.ErrTTY {
		t.Errorf("a pipe counts as a terminal: %+v", env)
	}
}
