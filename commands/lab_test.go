package commands

import (
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
