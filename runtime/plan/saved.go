package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/runtime/model"
)

// Basis is what a plan was made of: what was wanted, without the values of
// Secrets, and what was read of the world.
type Basis struct {
	Desired  *podspec.Desired  `json:"desired"`
	Observed map[string]string `json:"observed"`
}

func basisOf(desired *podspec.Desired, f facts) *Basis {
	b := &Basis{Observed: f}
	if desired != nil {
		b.Desired = desired.WithoutSecrets()
	}
	return b
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

// MakeSaved makes the plan again that was saved: from the same input, and only
// with the steps that the saved one has. It is a *StaleError when the manifest or
// the world is not what it was, when a step would not be made any more, or when one
// that belongs to the plan is not in the file. A hold that ran out since then makes no
// step. So a file that somebody changed can neither add a step nor keep one from
// being done.
func MakeSaved(in *Input, saved *Plan) (*Plan, error) {
	if saved.Pod != in.Pod {
		return nil, fmt.Errorf("%w: %s (uid %s), not %s (uid %s)", ErrNotThisPod, saved.Pod, saved.Pod.UID, in.Pod, in.Pod.UID)
	}
	again := *in
	again.Options.IgnoreBackoff, again.Options.KeepBasis = true, true
	p := Make(&again)
	changes := saved.changesTo(p)
	if len(changes) == 0 {
		changes = saved.leftOut(&again)
	}
	if len(changes) > 0 {
		return nil, &StaleError{Pod: in.Pod, Changes: changes}
	}
	p.Basis = nil
	p.restrictTo(saved.Steps)
	return p, nil
}

// changesTo names what is not as it was when the plan was saved.
func (p *Plan) changesTo(now *Plan) []string {
	var changes []string
	if p.DesiredDigest != now.DesiredDigest {
		changes = append(changes, p.desiredChanges(now)...)
	}
	if p.ObservedDigest != now.ObservedDigest {
		changes = append(changes, p.observedChanges(now)...)
	}
	if len(changes) > 0 {
		return changes
	}
	for i := range p.Steps {
		if !now.hasStep(&p.Steps[i]) {
			changes = append(changes, fmt.Sprintf("step %s would not be made now (was the plan made with other flags, or long ago?)", p.Steps[i].ID))
		}
	}
	return changes
}

// leftOut names the steps that the plan had when it was saved and the file has not. It
// was made at its own time, with or without a heed to delays.
func (p *Plan) leftOut(in *Input) []string {
	then := *in
	then.Now = p.ObservedAt
	var shortest []string
	for i, ignore := range []bool{false, true} {
		then.Options.IgnoreBackoff = ignore
		missing := p.missingOf(Make(&then))
		if len(missing) == 0 {
			return nil
		}
		if i == 0 || len(missing) < len(shortest) {
			shortest = missing
		}
	}
	return shortest
}

func (p *Plan) missingOf(whole *Plan) []string {
	var missing []string
	for i := range whole.Steps {
		if !p.hasStep(&whole.Steps[i]) {
			missing = append(missing, fmt.Sprintf("step %s is not in the saved plan (was it made with other flags, or was the file changed?)", whole.Steps[i].ID))
		}
	}
	return missing
}

func (p *Plan) desiredChanges(now *Plan) []string {
	if p.Basis == nil || p.Basis.Desired == nil || p.Basis.Desired.Pod == nil {
		return []string{"the manifest changed"}
	}
	if digest.Compare(p.DesiredDigest, now.DesiredDigest) == digest.Unknown {
		return []string{"manifest: the values of its Secrets cannot be compared, as the plan was saved with another key for their digests"}
	}
	var texts []string
	for _, c := range compareTrees(treeOf(p.Basis.Desired), treeOf(now.Basis.Desired)).changes {
		texts = append(texts, "manifest: "+c.String())
	}
	if len(texts) == 0 {
		texts = append(texts, "the manifest changed")
	}
	return texts
}

// treeOf is what is desired as a tree, its values of Secrets being digests.
func treeOf(d *podspec.Desired) map[string]any {
	return normalised(map[string]any{
		"metadata": map[string]any{"labels": d.Pod.Labels, "annotations": d.Pod.Annotations},
		"spec":     d.Pod.Spec, "configMaps": d.Objects.ConfigMaps, "secrets": secretDigests(d),
	})
}

// secretDigests are the digests that stand for the values of Secrets, as text.
func secretDigests(d *podspec.Desired) map[string]map[string]string {
	secrets := map[string]map[string]string{}
	for name, s := range d.Objects.Secrets {
		if s == nil {
			continue
		}
		secrets[name] = map[string]string{}
		for key, digest := range s.Data {
			secrets[name][key] = string(digest)
		}
	}
	return secrets
}

func (p *Plan) observedChanges(now *Plan) []string {
	if p.Basis == nil {
		return []string{"what is observed changed"}
	}
	return facts(p.Basis.Observed).changesTo(now.Basis.Observed)
}

// hasStep tells that a plan has the same step, whatever is said about it.
func (p *Plan) hasStep(s *Step) bool {
	return slices.ContainsFunc(p.Steps, func(own Step) bool { return own.sameAs(s) })
}

func (s *Step) sameAs(o *Step) bool {
	return s.ID == o.ID && s.Kind == o.Kind && s.Container == o.Container && s.ContainerID == o.ContainerID &&
		s.SandboxID == o.SandboxID && s.Attempt == o.Attempt && s.Image == o.Image && s.Volume == o.Volume
}

// MakeDebug makes the plan that starts one debug container, which the manifest has been
// given, and does nothing else of what there may be to do.
func MakeDebug(in *Input, container string) *Plan {
	p := Make(in)
	var steps []Step
	for i := range p.Steps {
		if p.Steps[i].Container == container && !p.KillPod && !p.CreateSandbox {
			steps = append(steps, p.Steps[i])
		}
	}
	p.restrictTo(steps)
	p.Holds = slices.DeleteFunc(p.Holds, func(h Hold) bool { return h.Container != container })
	return p
}

// restrictTo leaves out the steps that others do not have, and nothing waits for
// what is left out.
func (p *Plan) restrictTo(steps []Step) {
	kept := map[string]bool{}
	for i := range steps {
		kept[steps[i].ID] = true
	}
	p.Steps = slices.DeleteFunc(p.Steps, func(s Step) bool { return !kept[s.ID] })
	leftOut := func(id string) bool { return !kept[id] }
	for i := range p.Steps {
		s := &p.Steps[i]
		for _, list := range []*[]string{&s.After, &s.AfterExit, &s.StopAfter, &s.CreateAfter} {
			*list = slices.DeleteFunc(*list, leftOut)
		}
	}
	p.Summary = summarise(p)
}
