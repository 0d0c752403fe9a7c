package planfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// Make makes a plan with digests of its input, and with the full input if the options ask for it.
func Make(in *plan.Input) *plan.Plan {
	p := plan.Make(in)
	read := factsOf(&in.Observed)
	p.DesiredDigest, p.ObservedDigest = in.Desired.Digest(), digestOf(read)
	if in.Options.KeepBasis {
		p.Basis = &plan.Basis{Observed: read}
		if in.Desired != nil {
			p.Basis.Desired = in.Desired.WithoutSecrets()
		}
	}
	return p
}

// staleError reports that a saved plan no longer fits, and what changed.
type staleError struct {
	Pod     model.PodRef
	Changes []string
}

// Error lists the changes, one per line.
func (e *staleError) Error() string {
	changes := strings.Join(e.Changes, "\n  ")
	return fmt.Sprintf("the saved plan of pod %s is out of date: create a new one\n  %s", e.Pod, changes)
}

// errNotThisPod reports that a saved plan belongs to another pod.
var errNotThisPod = errors.New("the saved plan is for another pod")

// MakeAgain makes a saved plan again: from the current input, and only with the steps of the saved one. It returns an
// error with the changes if the manifest or the observed state has changed. It also does so if a saved step would not
// be made any more, or if a step is missing in the file. A hold that ended since then adds no step. A modified file can
// therefore neither add nor remove a step.
func MakeAgain(in *plan.Input, saved *plan.Plan) (*plan.Plan, error) {
	if saved.Pod != in.Pod {
		return nil, fmt.Errorf("%w: %s (uid %s), not %s (uid %s)",
			errNotThisPod, saved.Pod, saved.Pod.UID, in.Pod, in.Pod.UID)
	}
	again := *in
	again.Options.IgnoreBackoff, again.Options.KeepBasis = true, true
	p := Make(&again)
	changes := changesSince(saved, p)
	if len(changes) == 0 {
		changes = added(saved, p)
	}
	if len(changes) == 0 {
		changes = leftOut(saved, &again)
	}
	if len(changes) > 0 {
		return nil, &staleError{Pod: in.Pod, Changes: changes}
	}
	p.Basis = nil
	p.Only(func(s *plan.Step) bool {
		return slices.ContainsFunc(saved.Steps, func(o plan.Step) bool { return o.ID == s.ID })
	})
	return p, nil
}

// changesSince lists what changed since the plan was saved.
func changesSince(saved, now *plan.Plan) []string {
	var changes []string
	if saved.DesiredDigest != now.DesiredDigest {
		changes = append(changes, desiredChanges(saved, now)...)
	}
	if saved.ObservedDigest != now.ObservedDigest {
		changes = append(changes, observedChanges(saved, now)...)
	}
	return changes
}

// added lists the steps of a saved plan that would not be made now.
func added(saved, now *plan.Plan) []string {
	return missing(saved.Steps, now.Steps,
		"would not be planned now (was the plan created with other flags, or long ago?)")
}

// leftOut lists the steps that the plan had when it was saved and that the file lacks. It makes the plan again for its
// original time, with and without delays.
func leftOut(saved *plan.Plan, in *plan.Input) []string {
	then := *in
	then.Now = saved.ObservedAt
	var shortest []string
	for i, ignore := range []bool{false, true} {
		then.Options.IgnoreBackoff = ignore
		gone := missing(plan.Make(&then).Steps, saved.Steps,
			"is not in the saved plan (was it created with other flags, or was the file changed?)")
		if i == 0 || len(gone) < len(shortest) {
			shortest = gone
		}
	}
	return shortest
}

// missing adds the meaning to each step that the others lack.
func missing(steps, others []plan.Step, meaning string) []string {
	var texts []string
	for i := range steps {
		if s := &steps[i]; !slices.ContainsFunc(others, func(o plan.Step) bool { return same(s, &o) }) {
			texts = append(texts, fmt.Sprintf("step %s %s", s.ID, meaning))
		}
	}
	return texts
}

// same reports whether two steps do the same. Reasons and messages do not count.
func same(s, o *plan.Step) bool {
	return s.ID == o.ID && s.Kind == o.Kind && s.Container == o.Container && s.ContainerID == o.ContainerID &&
		s.SandboxID == o.SandboxID && s.Attempt == o.Attempt && s.Image == o.Image && s.Volume == o.Volume
}

func desiredChanges(saved, now *plan.Plan) []string {
	if saved.Basis == nil || saved.Basis.Desired == nil || saved.Basis.Desired.Pod == nil {
		return []string{"the manifest changed"}
	}
	if digest.Compare(saved.DesiredDigest, now.DesiredDigest) == digest.Unknown {
		return []string{"manifest: the values of its Secrets cannot be compared, " +
			"because the plan was saved with another key for their digests"}
	}
	var texts []string
	for _, c := range plan.Edited(saved.Basis.Desired, now.Basis.Desired) {
		texts = append(texts, "manifest: "+c.String())
	}
	if len(texts) == 0 {
		texts = append(texts, "the manifest changed")
	}
	return texts
}

func observedChanges(saved, now *plan.Plan) []string {
	if saved.Basis == nil {
		return []string{"the observed state changed"}
	}
	return facts(saved.Basis.Observed).changesTo(now.Basis.Observed)
}
