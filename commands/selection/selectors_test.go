package selection_test

import (
	"os"
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/exit"
)

// TestStatusSelectors checks that every command over several pods applies status fields to the current status.
func TestStatusSelectors(t *testing.T) {
	l := newLab(t)
	const spec = "  restartPolicy: Never\n  containers: [{name: %, image: 'i:1'}]\n"
	l.Must("apply", l.Write("done", strings.Replace(spec, "%", "d", 1)),
		l.Write("runs", strings.Replace(spec, "%", "r", 1)))
	l.Exit("d", 0)
	for _, c := range []struct {
		args         []string
		want, absent string
	}{
		{[]string{"get", "-o", "name", "--field-selector", "status.phase=Succeeded"}, "pod/done\n", "runs"},
		{[]string{"get", "-o", "name", "--field-selector", "status.phase!=Succeeded"}, "pod/runs\n", "done"},
		{[]string{"plan", "--field-selector", "status.phase=Running"}, "default/runs", "done"},
		{[]string{"describe", "--field-selector", "status.phase=Running"}, "runs", "done"},
		{
			[]string{"wait", "--field-selector", "status.phase=Running", "--for=started"},
			"pod default/runs is started\n", "done",
		},
		{[]string{"restart", "--all"}, "pod default/runs", "pod default/done"},
		{[]string{"delete", "--field-selector", "status.phase=Succeeded"}, "pod default/done deleted\n", "runs"},
		{[]string{"logs", "--field-selector", "status.phase=Succeeded"}, "", "runs"},
		{[]string{"delete", "-l", "app=absent"}, "", "deleted"},
		{[]string{"delete", "--all"}, "pod default/runs deleted\n", "done"},
	} {
		if stdout, stderr := l.Must(c.args...); !strings.Contains(stdout, c.want) ||
			strings.Contains(stdout, c.absent) {
			t.Errorf("%v:\n%s%s", c.args, stdout, stderr)
		}
	}
	if code, _, stderr := l.Call("wait", "-l", "app=absent"); code != exit.Error ||
		!strings.Contains(stderr, "no pods in namespace default with labels app=absent") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

// TestUnknownStatus checks that a pod with an unknown status is reported, not silently left out.
func TestUnknownStatus(t *testing.T) {
	l, checkpoint := damaged(t)
	if err := os.Remove(checkpoint); err != nil {
		t.Fatal(err)
	}
	l.Close()
	code, stdout, stderr := l.Call("delete", "--field-selector", "status.phase=Failed")
	if code != exit.Error || stdout != "" || stderr == "" {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}
