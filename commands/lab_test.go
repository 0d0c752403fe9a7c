package commands

import (
	"os"
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/commandstest"
)

// lab is an in-memory runtime with the directories of one podctl.
type lab struct{ *commandstest.Lab }

func newLab(t *testing.T) *lab {
	t.Helper()
	return &lab{commandstest.NewLab(t, Main)}
}

// call runs one command line without a runtime.
func call(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return commandstest.Call(t, Main, stdin, args...)
}

// TestConfiguredPodDefaults checks that pods that are applied by hand get the agent's defaults.
func TestConfiguredPodDefaults(t *testing.T) {
	l := newLab(t)
	file := l.Path("config.yaml")
	if err := os.WriteFile(file, []byte("agent: {pod-max-pids: 50, seccomp-default: true}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.Must("apply", "-f", l.Write("web", "  containers: [{name: c, image: i:1}]\n"))
	stdout, _ := l.Must("snapshot", "web", "--config", file)
	for _, want := range []string{`"podPIDs": 50`, `"seccompDefault": true`} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%s is missing", want)
		}
	}
}
