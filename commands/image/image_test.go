package image_test

import (
	"strings"
	"testing"

	"github.com/podctl/podctl/commands"
	"github.com/podctl/podctl/commands/commandstest"
	"github.com/podctl/podctl/commands/exit"
)

func TestImageUsage(t *testing.T) {
	for name, args := range map[string][]string{
		"pull of nothing":        {"image", "pull"},
		"rm of nothing":          {"image", "rm"},
		"load of nothing":        {"image", "load"},
		"save of nothing":        {"image", "save"},
		"an unknown command":     {"image", "nonsense"},
		"--pin of a pod":         {"plan", "--pin", "web"},
		"--pin without manifest": {"plan", "--pin"},
	} {
		if code, _, stderr := commandstest.Call(t, commands.Main, "", args...); code != exit.Error || !strings.Contains(stderr, "--help") {
			t.Errorf("%s: exit code %d\n%s", name, code, stderr)
		}
	}
}
