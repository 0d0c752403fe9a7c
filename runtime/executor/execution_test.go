package executor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// TestKubeletPreventsStarts checks that nothing is done if a kubelet would kill what starts, unless the user
// allows it or the plan starts nothing.
func TestKubeletPreventsStarts(t *testing.T) {
	l := newLab(t, "i:1")
	l.kubelet = errors.New("a kubelet runs")
	p := l.plan(model.PodRef{}, onePod())
	if outcome, err := p.run(Options{}); !errors.Is(err, l.kubelet) || outcome != nil || len(l.server.Calls()) > 0 {
		t.Errorf("%v after %v", err, l.server.Calls())
	}
	if j := l.checkpoint(p.in.Pod); j.Applied != nil {
		t.Error("the pass wrote a checkpoint")
	}
	if outcome, err := p.run(Options{AllowKubelet: true}); err != nil || outcome.Err() != nil {
		t.Error(err, outcome.Err())
	}
	p = l.plan(model.PodRef{}, onePod())
	p.plan.Steps = nil
	if _, err := p.run(Options{}); err != nil {
		t.Errorf("empty plan beside a kubelet: %v", err)
	}
	if outcome, err := l.plan(p.in.Pod, "").run(Options{}); err != nil || outcome.Err() != nil {
		t.Errorf("deletion beside a kubelet: %v, %v", err, outcome.Err())
	}
}

// TestOrderOfAPass checks the order: report the plan, record the intended changes, call Begun, execute the steps.
func TestOrderOfAPass(t *testing.T) {
	l := newLab(t, "i:1")
	p := l.plan(model.PodRef{}, onePod())
	var order []string
	note := func(what string) {
		if l.checkpoint(p.in.Pod).Applied != nil {
			what += ", recorded"
		}
		if len(l.server.Calls()) > 0 {
			what += ", something happened"
		}
		order = append(order, what)
	}
	opts := Options{Planned: func(of *plan.Plan) {
		if of != p.plan {
			t.Error("Planned got another plan")
		}
		note("planned")
	}, Begun: func() { note("begun") }}
	outcome, err := p.run(opts)
	if err != nil || outcome.Plan != p.plan {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"planned", "begun, recorded"}, order); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	begun := map[string]bool{}
	for _, ev := range l.events {
		if ev.Pod != p.in.Pod {
			t.Errorf("event of another pod %v", ev.Pod)
		}
		if ev.Kind == StepStarted {
			begun[ev.Step.ID] = true
		}
		if ev.Kind == StepDone && !begun[ev.Step.ID] {
			t.Errorf("step %s was done before it started", ev.Step.ID)
		}
	}
	if len(begun) != len(p.plan.Steps) {
		t.Errorf("%d steps started, want %d", len(begun), len(p.plan.Steps))
	}
}

// TestInterruptedPassNamesSteps checks that the error names the interrupted steps, and that the skipped ones are
// reported.
func TestInterruptedPassNamesSteps(t *testing.T) {
	l := newLab(t, "i:1")
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := errors.New("interrupted")
	l.server.Fail(runtimetest.Fault{
		Method: "StopContainer",
		Times:  1,
		Err:    errors.New("cut off"),
		Only:   func(any) bool { cancel(ended); return true },
	})
	p := l.plan(l.apply(onePod()).in.Pod, "")
	outcome, err := p.executor.Run(ctx, p.in, p.plan, p.snapshot, Options{})
	stop := p.step(plan.StopContainer, "")
	if !errors.Is(err, ended) || !strings.HasPrefix(err.Error(), "pod default/web: interrupted during: ") ||
		!strings.HasSuffix(err.Error(), stop.Kind.Verb()+" "+stop.Object()) {
		t.Errorf("error %v", err)
	}
	if len(outcome.Skipped) == 0 || l.checkpoint(p.in.Pod).Applied == nil {
		t.Errorf("skipped %v", outcome.Skipped)
	}
	x := l.plan(p.in.Pod, "").execution(Options{})
	if err := x.cutOff(ended); err.Error() != "pod default/web: interrupted" {
		t.Errorf("interruption without a running step: %v", err)
	}
}

// TestChangedStateEndsThePass checks that finished steps are recorded, and that the error names the pod and contains no
// Secret.
func TestChangedStateEndsThePass(t *testing.T) {
	l := newLab(t, "i:1")
	text := pod(
		"  containers: [{name: a, image: 'i:1'}, {name: b, image: 'i:1', env: [{name: P, "+
			"valueFrom: {secretKeyRef: {name: s, key: p}}}]}]\n") +
		"---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {p: correct horse}\n"
	l.server.Fail(runtimetest.Fault{
		Method: "CreateContainer",
		Times:  1,
		Err:    errors.New(`name "correct horse" is reserved for "y"`),
		Only: func(request any) bool {
			return request.(*runtimeapi.CreateContainerRequest).GetConfig().GetMetadata().GetName() == "b"
		},
	})
	p := l.plan(model.PodRef{}, text)
	_, err := p.run(Options{})
	changed := (*StateChangedError)(nil)
	if !errors.As(err, &changed) ||
		!strings.HasPrefix(err.Error(), "pod default/web: the state of the runtime has changed since the plan was made") ||
		strings.Contains(err.Error(), "correct horse") {
		t.Errorf("error %v", err)
	}
	if j := l.checkpoint(p.in.Pod); j.LastRun == nil || j.LastRun.Sandbox == "" {
		t.Errorf("LastRun %+v after a changed state", j.LastRun)
	}
}

// TestUnknownSteps checks that an unknown kind of step is an error.
func TestUnknownSteps(t *testing.T) {
	l := newLab(t, "i:1")
	x := l.plan(model.PodRef{}, onePod()).execution(Options{})
	if _, err := x.do(t.Context(), &plan.Step{Kind: "Invent"}); err == nil || !strings.Contains(err.Error(), `"Invent"`) {
		t.Errorf("error %v", err)
	}
}

// TestEventsOfAPass checks the kubelet's events for a pod that was started, crashed and deleted.
func TestEventsOfAPass(t *testing.T) {
	l := newLab(t)
	ref := l.apply(onePod()).in.Pod
	l.server.Exit("a", 1)
	l.apply(onePod())
	if outcome, err := l.plan(ref, "").run(Options{}); err != nil || outcome.Err() != nil {
		t.Fatal(err, outcome.Err())
	}
	history := l.history(ref)
	for _, want := range []string{
		"Normal Pulling a: ",
		"Normal Pulled a: ",
		"Normal SandboxCreated: ",
		"Normal Created a: Container created",
		"Normal Started a: ",
		"Normal Killing a: ",
	} {
		if !slices.ContainsFunc(history, func(e string) bool { return strings.HasPrefix(e, want) }) {
			t.Errorf("no %q in:\n%s", want, strings.Join(history, "\n"))
		}
	}
}
