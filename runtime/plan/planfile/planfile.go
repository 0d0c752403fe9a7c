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

// Make makes a plan that says what it was made of: as digests, and in full if the options
// ask for it.
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

// StaleError says that a saved plan no longer fits, and what changed.
type StaleError struct {
	Pod     model.PodRef
	Changes []string
}

// Error lists the changes, a line each.
func (e *StaleError) Error() string {
	return fmt.Sprintf("the saved plan of pod %s no longer fits: make a new one\n  %s", e.Pod, strings.Join(e.Changes, "\n  "))
}

// ErrNotThisPod says that a saved plan is of another pod.
var ErrNotThisPod = errors.New("the saved plan is of another pod")

// MakeAgain makes the plan again that was saved: from the same input, and only
// with the steps that the saved one has. It is a *StaleError when the manifest or
// the world is not what it was, when a step would not be made any more, or when one
// that belongs to the plan is not in the file. A hold that ran out since then makes no
// step. So a file that somebody changed can neither add a step nor keep one from
// being done.
func MakeAgain(in *plan.Input, saved *plan.Plan) (*plan.Plan, error) {
	if saved.Pod != in.Pod {
		return nil, fmt.Errorf("%w: %s (uid %s), not %s (uid %s)", ErrNotThisPod, saved.Pod, saved.Pod.UID, in.Pod, in.Pod.UID)
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
		return nil, &StaleError{Pod: in.Pod, Changes: changes}
	}
	p.Basis = nil
	p.Only(func(s *plan.Step) bool {
		return slices.ContainsFunc(saved.Steps, func(o plan.Step) bool { return o.ID == s.ID })
	})
	return p, nil
}

// changesSince names what is not as it was when the plan was saved.
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

// added names the steps of a saved plan that would not be made now.
func added(saved, now *plan.Plan) []string {
	return missing(saved.Steps, now.Steps, "would not be made now (was the plan made with other flags, or long ago?)")
}

// leftOut names the steps that the plan had when it was saved and the file has not. It
// was made at its own time, with or without a heed to delays.
func leftOut(saved *plan.Plan, in *plan.Input) []string {
	then := *in
	then.Now = saved.ObservedAt
	var shortest []string
	for i, ignore := range []bool{false, true} {
		then.Options.IgnoreBackoff = ignore
		gone := missing(plan.Make(&then).Steps, saved.Steps, "is not in the saved plan (was it made with other flags, or was the file changed?)")
		if i == 0 || len(gone) < len(shortest) {
			shortest = gone
		}
	}
	return shortest
}

// missing says of the steps that other steps lack what that means.
func missing(steps, others []plan.Step, meaning string) []string {
	var texts []string
	for i := range steps {
		if s := &steps[i]; !slices.ContainsFunc(others, func(o plan.Step) bool { return same(s, &o) }) {
			texts = append(texts, fmt.Sprintf("step %s %s", s.ID, meaning))
		}
	}
	return texts
}

// same reports whether two steps do the same, whatever is said about them.
func same(s, o *plan.Step) bool {
	return s.ID == o.ID && s.Kind == o.Kind && s.Container == o.Container && s.ContainerID == o.ContainerID &&
		s.SandboxID == o.SandboxID && s.Attempt == o.Attempt && s.Image == o.Image && s.Volume == o.Volume
}

func desiredChanges(saved, now *plan.Plan) []string {
	if saved.Basis == nil || saved.Basis.Desired == nil || saved.Basis.Desired.Pod == nil {
		return []string{"the manifest changed"}
	}
	if digest.Compare(saved.DesiredDigest, now.DesiredDigest) == digest.Unknown {
		return []string{"manifest: the values of its Secrets cannot be compared, as the plan was saved with another key for their digests"}
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
		return []string{"what is observed changed"}
	}
	return facts(saved.Basis.Observed).changesTo(now.Basis.Observed)
}
