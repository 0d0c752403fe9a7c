package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
	"github.com/podctl/podctl/runtime/podstatus"
)

// critical returns a pod with a system-critical class that requests the given number of cores.
func critical(t *testing.T, name, cores string) *podspec.Desired {
	t.Helper()
	d := sized(t, name, cores)
	d.Pod.Spec.PriorityClassName = "system-node-critical"
	return d
}

// TestPreemption checks when a critical pod waits for the end of others, and which.
func TestPreemption(t *testing.T) {
	two, three := critical(t, "web", "2"), critical(t, "web", "3")
	one, other := sized(t, "one", "1"), sized(t, "other", "2")
	for name, c := range map[string]struct {
		bench  *bench
		change func(*bench)
		want   string
	}{
		"it fits":                    {newBench(two).others(other), nil, starts},
		"the smaller pod suffices":   {newBench(two).others(other, one), nil, "OutOfcpu refused unapplied: one"},
		"the larger pod must end":    {newBench(three).others(other, one), nil, "OutOfcpu refused unapplied: other"},
		"a pod that is not critical": {newBench(sized(t, "web", "3")).others(other), nil, "OutOfcpu rejected:"},
		"no agent ends pods": {
			newBench(three).others(other), func(b *bench) { b.how.Preempts = false }, "OutOfcpu rejected:",
		},
		"critical pods stay": {newBench(three).others(critical(t, "other", "2")), nil, "UnexpectedAdmissionError rejected:"},
		"a terminating pod suffices": {
			newBench(three).others(other, one), func(b *bench) { b.Others[0].Terminating = true }, "OutOfcpu refused unapplied:",
		},
		"a terminating pod does not suffice": {
			newBench(critical(t, "web", "4")).others(other, one),
			func(b *bench) { b.Others[0].Terminating = true },
			"OutOfcpu refused unapplied: one",
		},
		"earlier pods of lower priority do not count": {
			newBench(three), func(b *bench) { b.how.First = []*podspec.Desired{other} }, starts,
		},
		"earlier critical pods count": {
			newBench(three).others(one),
			func(b *bench) { b.how.First = []*podspec.Desired{critical(t, "first", "3")} },
			"UnexpectedAdmissionError rejected:",
		},
		"an edit preempts nothing": {newBench(three).others(other).runs(two), nil, "OutOfcpu refused unapplied:"},
	} {
		c.bench.how.Preempts = true
		if c.change != nil {
			c.change(c.bench)
		}
		p := Make(c.bench.input())
		got := result(p)
		if len(p.Holds) > 0 {
			got += ":"
			if preempts := p.Holds[0].Preempts; preempts != nil {
				for _, pod := range preempts.Pods {
					got += " " + pod.Name
				}
				if preempts.Resource != "cpu" || p.Recheck != time.Second || !strings.Contains(p.Holds[0].Message, "preempts default/"+preempts.Pods[0].Name) {
					t.Errorf("%s: %+v", name, p.Holds[0])
				}
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestPreempted checks that a preempted pod has its own grace period, and its reasons.
func TestPreempted(t *testing.T) {
	pod := sized(t, "a", "1")
	pod.Pod.Spec.TerminationGracePeriodSeconds = new(int64(40))
	in := newBench(pod).runs(pod).input()
	in.Options.Evict = (&model.Preemption{Resource: "cpu"}).Preempt(modeltest.Noon())
	p := Make(in)
	if len(p.Steps) == 0 || *p.Steps[0].GracePeriodSeconds != 40 || p.Steps[0].Reason != model.Preempting ||
		p.Steps[0].Message != "the pod is preempted: a critical pod needs its cpu" {
		t.Fatalf("%+v", p.Steps)
	}
	if h := p.Holds[0]; h.Reason != model.Preempting || h.Status != "Preempted in order to admit critical pod" {
		t.Errorf("%+v", h)
	}
	in.Observed.Memory.Eviction = in.Options.Evict
	if s := podstatus.Of(in.State()); s.Phase != "Failed" || s.Reason != "Preempting" ||
		s.Message != "Preempted in order to admit critical pod" {
		t.Errorf("%+v", s)
	}
}
