package selection_test

import (
	"testing"

	"github.com/podctl/podctl/commands"
	"github.com/podctl/podctl/commands/commandstest"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// lab is an in-memory runtime with the directories of one podctl.
type lab struct{ *commandstest.Lab }

func newLab(t *testing.T) *lab {
	t.Helper()
	return &lab{commandstest.NewLab(t, commands.Main)}
}

func TestMain(m *testing.M) { runtimetest.Main(m) }
