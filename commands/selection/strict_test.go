package selection_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/exit"
)

// damaged applies two pods and truncates the checkpoint of the second.
func damaged(t *testing.T) (l *lab, checkpoint string) {
	t.Helper()
	l = newLab(t)
	l.Must("apply", l.Write("sound", "  containers: [{name: a, image: 'i:1'}]\n"))
	sound, err := filepath.Glob(l.Path("state/pods/*/checkpoint.json"))
	if err != nil || len(sound) != 1 {
		t.Fatal(sound, err)
	}
	l.Must("apply", l.Write("hurt", "  containers: [{name: a, image: 'i:1'}]\n"))
	both, err := filepath.Glob(l.Path("state/pods/*/checkpoint.json"))
	if err != nil || len(both) != 2 {
		t.Fatal(both, err)
	}
	if checkpoint = both[0]; checkpoint == sound[0] {
		checkpoint = both[1]
	}
	if err := os.Truncate(checkpoint, 300); err != nil {
		t.Fatal(err)
	}
	return l, checkpoint
}

// TestAllReportsDamagedCheckpoints checks that a command over all pods works on the readable ones, and ends with an
// error if a checkpoint is unreadable.
func TestAllReportsDamagedCheckpoints(t *testing.T) {
	l, checkpoint := damaged(t)
	for _, c := range []struct {
		args              []string
		code              int
		wantMessage, done string
	}{
		{[]string{"plan"}, exit.Error, "podctl: reading the checkpoint " + checkpoint, "default/sound"},
		{[]string{"plan", "--exit-code"}, exit.Error, "podctl: reading the checkpoint " + checkpoint, "default/sound"},
		{
			[]string{"apply", "--all", "--dry-run"},
			exit.Error, "podctl: reading the checkpoint " + checkpoint,
			"default/sound",
		},
		{
			[]string{"apply", "--all"},
			exit.Error, "podctl: reading the checkpoint " + checkpoint,
			"pod default/sound unchanged",
		},
		{[]string{"probe"}, exit.Error, "podctl: reading the checkpoint " + checkpoint, ""},
		{[]string{"snapshot"}, exit.Error, "podctl: reading the checkpoint " + checkpoint, `"sound"`},
		{[]string{"plan", "sound"}, exit.OK, "note: reading the checkpoint " + checkpoint, "default/sound"},
		{[]string{"get"}, exit.OK, "note: reading the checkpoint " + checkpoint, "hurt"},
		{
			[]string{"delete", "--all"},
			exit.Error, "podctl: reading the checkpoint " + checkpoint,
			"pod default/sound deleted",
		},
	} {
		code, stdout, stderr := l.Call(c.args...)
		if code != c.code || strings.Count(stderr, checkpoint) != 1 || !strings.Contains(stderr, c.wantMessage) ||
			!strings.Contains(stdout, c.done) {
			t.Errorf("%v: exit code %d\n%s%s", c.args, code, stdout, stderr)
		}
	}
}

// TestLostPodIsNamed checks the error for a pod whose checkpoint is missing. The error mentions the pod if it is in the
// runtime.
func TestLostPodIsNamed(t *testing.T) {
	l := newLab(t)
	manifest := l.Write("web", "  containers: [{name: a, image: 'i:1'}]\n")
	l.Must("apply", manifest)
	if err := os.RemoveAll(l.Path("state/pods")); err != nil {
		t.Fatal(err)
	}
	const hint = "its checkpoint is missing or in another state directory: use the manifest instead of the name"
	for name, lost := range map[string]bool{"web": true, "absent": false} {
		for _, verb := range []string{"delete", "plan"} {
			code, _, stderr := l.Call(verb, name)
			if code != exit.Error || !strings.Contains(stderr, "no pod default/"+name) ||
				strings.Contains(stderr, hint) != lost {
				t.Errorf("%s %s: exit code %d\n%s", verb, name, code, stderr)
			}
		}
	}
	// Commands that only inspect pods find it.
	if stdout, _ := l.Must("describe", "web"); !strings.Contains(stdout, "podctl (no checkpoint)") ||
		strings.Contains(stdout, "Next apply") {
		t.Errorf("%s", stdout)
	}
	if stdout, _ := l.Must("get", "web", "-o", "name"); stdout != "pod/web\n" {
		t.Error(stdout)
	}
	l.Must("logs", "web")
	for _, args := range [][]string{{"get", "absent"}, {"describe", "absent"}, {"logs", "absent"}} {
		if code, _, stderr := l.Call(args...); code != exit.Error ||
			!strings.Contains(stderr, "no pod default/absent") {
			t.Errorf("%v: exit code %d\n%s", args, code, stderr)
		}
	}
	if code, _, stderr := l.Call("debug", "--image", "i:1", "web"); code == exit.OK ||
		!strings.Contains(stderr, "was not applied by podctl") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	if stdout, _ := l.Must("delete", manifest); stdout != "pod default/web deleted\n" {
		t.Errorf("the hint does not help: %s", stdout)
	}
}
