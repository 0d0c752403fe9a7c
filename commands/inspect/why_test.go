package inspect_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/why"
)

const twoContainers = "  containers: [{name: a, image: 'i:1'}, {name: b, image: 'i:1', " +
	"env: [{name: X, valueFrom: {configMapKeyRef: {name: cm, key: k}}}]}]\n"

// explained runs `podctl why -o json`.
func explained(t *testing.T, l *lab, args ...string) *why.Explanation {
	t.Helper()
	stdout, _ := l.Must(append([]string{"why", "-o", "json"}, args...)...)
	e := &why.Explanation{}
	if err := json.Unmarshal([]byte(stdout), e); err != nil {
		t.Fatal(err)
	}
	return e
}

// kinds returns the kinds of the decisions about a container.
func kinds(e *why.Explanation, container string) (kinds []string) {
	for _, d := range e.Decisions {
		if d.Container == container {
			kinds = append(kinds, d.Kind+" "+string(d.Reason))
		}
	}
	return kinds
}

// TestWhy follows the life of a pod: a start, a missing object, a crash, a delay and a deletion.
func TestWhy(t *testing.T) {
	l := newLab(t)
	l.Clock.Stop() // The delay of a crash must not end before the next command.
	web := l.Write("web", twoContainers)
	l.Call("apply", web)
	stdout, _ := l.Must("why", "web")
	for _, text := range []string{
		"a: Running", "NotCreated: it was started: ", "b: Waiting", "CreateContainerConfigError: ConfigMap default/cm is missing",
		"changes with: the missing object: podctl apply", "no agent keeps the pod", "sandbox   create",
	} {
		if !strings.Contains(stdout, text) {
			t.Errorf("%q is missing:\n%s", text, stdout)
		}
	}
	l.Exit("a", 3)
	l.Call("apply", web)
	l.Exit("a", 3)
	l.Call("apply", web)
	e := explained(t, l, "default/web", "a")
	want := []string{"StartContainer NotCreated", "StartContainer Exited", "Hold CrashLoopBackOff"}
	if got := kinds(e, "a"); !slices.Equal(got, want) || kinds(e, "b") != nil {
		t.Errorf("a: %v, not %v; b: %v", got, want, kinds(e, "b"))
	}
	if len(e.Subjects) != 1 || e.Subjects[0].Causes[0].Until == nil || len(e.Subjects[0].Causes[0].Changes) != 3 {
		t.Errorf("%+v", e.Subjects)
	}
	l.Call("delete", "web")
	e = explained(t, l, "web")
	last := e.Decisions[len(e.Decisions)-1]
	if !e.Gone || last.Kind != "StopSandbox" || last.Reason != "Deleted" || len(e.Subjects) != 0 {
		t.Errorf("of a deleted pod: %+v", e)
	}
	l.Must("why", "pod/web")
	l.Must("prune")
	if code, _, stderr := l.Call("why", "web"); code != exit.Error || !strings.Contains(stderr, "no pod default/web") {
		t.Errorf("after prune: %d %s", code, stderr)
	}
}

// TestWhyOfDrift checks that a container that was removed outside podctl is a decision.
func TestWhyOfDrift(t *testing.T) {
	l := newLab(t)
	web := l.Write("web", "  containers: [{name: a, image: 'i:1'}]\n")
	l.Must("apply", web)
	l.Exit("a", 137)
	if e := explained(t, l, "web"); !strings.Contains(e.Subjects[0].Causes[0].Message, "stopped outside podctl") {
		t.Errorf("before the pass: %+v", e.Subjects)
	}
	l.Must("apply", web)
	e := explained(t, l, "web")
	if got := kinds(e, ""); !slices.Contains(got, state.Drift+" ") {
		t.Errorf("%v", got)
	}
	// The pass found it before it started the container again.
	if last := e.Decisions[len(e.Decisions)-1]; last.Kind != "StartContainer" {
		t.Errorf("the last decision is %+v", last)
	}
}

// TestWhyWithAnAgent checks that the explanation has the next pass of the agent, and why a pod waits for its name.
func TestWhyWithAnAgent(t *testing.T) {
	l := newLab(t)
	l.Clock.Stop()
	l.Must("apply", l.Write("web", "  containers: [{name: a, image: 'i:1'}]\n"))
	e := explained(t, l, "web")
	at := l.Clock.Now().Add(time.Minute)
	l.ServeAgent(api.Pod{PodRef: e.Pod, NextPass: at, BlockedBy: "other-uid", Error: "the disk is full"})
	e = explained(t, l, "web")
	if e.Next.By != why.ByAgent || e.Next.At == nil || !e.Next.At.Equal(at) {
		t.Errorf("%+v", e.Next)
	}
	causes := e.Subjects[0].Causes
	if len(causes) != 2 || !strings.Contains(causes[0].Message, "other-uid") || !strings.Contains(causes[1].Message, "disk is full") {
		t.Errorf("%+v", causes)
	}
	if stdout, _ := l.Must("why", "web"); !strings.Contains(stdout, "by the agent in 1m0s") {
		t.Errorf("%s", stdout)
	}
}

// TestWhyOfUnknowns checks the errors for a pod and a container that do not exist.
func TestWhyOfUnknowns(t *testing.T) {
	l := newLab(t)
	l.Must("apply", l.Write("web", "  containers: [{name: a, image: 'i:1'}]\n"))
	if code, _, stderr := l.Call("why", "other"); code != exit.Error || !strings.Contains(stderr, "no pod default/other") {
		t.Errorf("%d %s", code, stderr)
	}
	if code, _, stderr := l.Call("why", "web", "x"); code != exit.Error || !strings.Contains(stderr, `no container "x"; it has a`) {
		t.Errorf("%d %s", code, stderr)
	}
}
