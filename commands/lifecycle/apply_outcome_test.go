package lifecycle_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/commandstest"
	"github.com/podctl/podctl/commands/exit"
)

type outcomes struct {
	Kind  string
	Items []struct {
		Pod      struct{ Name string }
		Changed  *bool
		Complete *bool
		Summary  *struct{ Start int }
		ExitCode int
		Error    string
		Skipped  []string
	}
}

// TestOutcomeOfApply checks that the last line of the JSON output has the result of each pod.
func TestOutcomeOfApply(t *testing.T) {
	l := newLab(t)
	good := l.Write("good", quickly)
	bad := l.Write("bad", "  containers: [{name: a, image: 'absent:1', imagePullPolicy: Never}]\n")
	apply := func(code int, args ...string) outcomes {
		t.Helper()
		got, stdout, stderr := l.Call(append([]string{"apply", "-o", "json"}, args...)...)
		lines := strings.Split(strings.TrimSpace(stdout), "\n")
		var out outcomes
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &out); err != nil || got != code ||
			out.Kind != "ApplyOutcome" {
			t.Fatalf("exit code %d, %v\n%s%s", got, err, stdout, stderr)
		}
		if strings.Count(stdout, `"ApplyOutcome"`) != 1 {
			t.Errorf("%s", stdout)
		}
		return out
	}
	out := apply(exit.OK, good)
	if one := out.Items[0]; len(out.Items) != 1 || one.Pod.Name != "good" || !*one.Changed || one.Summary.Start == 0 ||
		one.ExitCode != exit.OK || one.Error != "" {
		t.Errorf("%+v", out)
	}
	if one := apply(exit.OK, good).Items[0]; *one.Changed || !*one.Complete {
		t.Errorf("%+v", one)
	}
	if !slices.ContainsFunc(commandstest.Limits(), func(limit string) bool {
		out = apply(exit.NotYet, "--wait", "--timeout", limit, good, bad)
		return len(out.Items) == 2 && out.Items[0].ExitCode == exit.OK && out.Items[1].ExitCode == exit.NotYet &&
			out.Items[1].Error != ""
	}) {
		t.Errorf("%+v", out)
	}
}
