package commands

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// damaged applies two pods and cuts off the journal of the second.
func damaged(t *testing.T) (l *lab, journal string) {
	t.Helper()
	l = newLab(t)
	l.must("apply", l.write("sound", "  containers: [{name: a, image: 'i:1'}]\n"))
	sound, err := filepath.Glob(l.path("state/pods/*/journal.json"))
	if err != nil || len(sound) != 1 {
		t.Fatal(sound, err)
	}
	l.must("apply", l.write("hurt", "  containers: [{name: a, image: 'i:1'}]\n"))
	both, err := filepath.Glob(l.path("state/pods/*/journal.json"))
	if err != nil || len(both) != 2 {
		t.Fatal(both, err)
	}
	if journal = both[0]; journal == sound[0] {
		journal = both[1]
	}
	if err := os.Truncate(journal, 300); err != nil {
		t.Fatal(err)
	}
	return l, journal
}

// TestAllIsNotDoneWithoutAJournal: who asks for all pods is told in the end, with an error,
// that one of them was out of reach; the others get what was asked for.
func TestAllIsNotDoneWithoutAJournal(t *testing.T) {
	l, journal := damaged(t)
	for _, c := range []struct {
		args       []string
		code       int
		says, done string
	}{
		{[]string{"plan"}, exitError, "podctl: reading the journal " + journal, "default/sound"},
		{[]string{"plan", "--exit-code"}, exitError, "podctl: reading the journal " + journal, "default/sound"},
		{[]string{"apply", "--all", "--dry-run"}, exitError, "podctl: reading the journal " + journal, "default/sound"},
		{[]string{"apply", "--all"}, exitError, "podctl: reading the journal " + journal, "pod default/sound unchanged"},
		{[]string{"probe"}, exitError, "podctl: reading the journal " + journal, ""},
		{[]string{"snapshot"}, exitError, "podctl: reading the journal " + journal, `"sound"`},
		{[]string{"plan", "sound"}, exitOK, "note: reading the journal " + journal, "default/sound"},
		{[]string{"get"}, exitOK, "note: reading the journal " + journal, "hurt"},
		{[]string{"delete", "--all"}, exitError, "podctl: reading the journal " + journal, "pod default/sound deleted"},
	} {
		code, stdout, stderr := l.call(c.args...)
		if code != c.code || strings.Count(stderr, journal) != 1 || !strings.Contains(stderr, c.says) || !strings.Contains(stdout, c.done) {
			t.Errorf("%v: exit code %d\n%s%s", c.args, code, stdout, stderr)
		}
	}
}

// TestWithUnread: no other outcome hides a journal that could not be read, and a worse one
// keeps its code.
func TestWithUnread(t *testing.T) {
	g := &globals{unread: errors.New("a journal")}
	for _, c := range []struct {
		err  error
		code int
		says string
	}{
		{nil, exitError, "a journal"},
		{withCode(exitPending), exitError, "a journal"},
		{errors.New("x"), exitError, "x\na journal"},
		{&codeError{code: exitRefused, err: errors.New("x")}, exitRefused, "x\na journal"},
	} {
		if err := g.withUnread(t.Context(), c.err); err.Error() != c.says || exitCode(t.Context(), err) != c.code {
			t.Errorf("%v: %d %q", c.err, exitCode(t.Context(), err), err.Error())
		}
	}
	if err := (&globals{}).withUnread(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// TestLostPodIsNamed: a pod that get shows although its journal is gone is not said to be
// nowhere; what is in nobody's runtime is.
func TestLostPodIsNamed(t *testing.T) {
	l := newLab(t)
	manifest := l.write("web", "  containers: [{name: a, image: 'i:1'}]\n")
	l.must("apply", manifest)
	if err := os.RemoveAll(l.path("state/pods")); err != nil {
		t.Fatal(err)
	}
	const hint = "whose journal is gone or elsewhere: give its manifest in the place of its name"
	for name, lost := range map[string]bool{"web": true, "absent": false} {
		for _, verb := range []string{"delete", "plan", "describe"} {
			code, _, stderr := l.call(verb, name)
			if code != exitError || !strings.Contains(stderr, "no pod default/"+name) || strings.Contains(stderr, hint) != lost {
				t.Errorf("%s %s: exit code %d\n%s", verb, name, code, stderr)
			}
		}
	}
	if stdout, _ := l.must("delete", manifest); stdout != "pod default/web deleted\n" {
		t.Errorf("what the hint says does not help: %s", stdout)
	}
}
