package plan

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/podspec/fields"
	"github.com/podctl/podctl/podspec/spechash"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan/diff"
	"github.com/podctl/podctl/runtime/podstatus"
)

// edits are what differs of a manifest from the one that was applied last.
type edits struct {
	*podstatus.Pod
	applied *podspec.Desired
}

// editedFields are the paths of what differs from the manifest that was applied, by when
// it takes effect, given that no step does it.
func editedFields(pod *podstatus.Pod) map[fields.ChangeClass][]string {
	e := edits{Pod: pod, applied: appliedOf(pod)}
	if e.applied == nil || equality.Semantic.DeepEqual(e.applied.Pod.Spec, e.Manifest.Spec) {
		return nil
	}
	classes := fields.NewEdits(e.Manifest)
	before, after := diff.Plain(map[string]any{"spec": e.applied.Pod.Spec}), map[string]any{"spec": e.Manifest.Spec}
	paths := map[fields.ChangeClass][]string{}
	for _, c := range diff.Divided(before, after, classes.Divides).Changes {
		class := e.effect(c.Path, classes.Class(c.Path))
		paths[class] = append(paths[class], c.Path)
	}
	return paths
}

// effect is when a change takes effect that its class would have made a step of: such a
// container has ended, or is not judged by all of its definition.
func (e edits) effect(path string, class fields.ChangeClass) fields.ChangeClass {
	switch class {
	case fields.Live, fields.NewPod, fields.NoChange:
		return class
	case fields.NewSandbox:
		if spechash.Sandbox(e.applied) == spechash.Sandbox(e.Desired) {
			return fields.NoChange
		}
		return class
	case fields.Replace:
		if !e.redefines(path) {
			return fields.NoChange
		}
	case fields.InPlace, fields.NextStart:
	}
	return e.nextStart(path)
}

// nextStart is what the container, or the containers, that a path belongs to wait for
// before they start again.
func (e edits) nextStart(path string) fields.ChangeClass {
	ref, _ := e.containerOf(path)
	switch {
	case ref.Type == podspec.Ephemeral:
		// It runs once in the life of its pod.
		return fields.NewPod
	case ref.Type == podspec.Init && e.initOver(ref):
		return fields.NewSandbox
	}
	return fields.NextStart
}

// initOver reports whether an init container does not run again in its sandbox.
func (e edits) initOver(ref podspec.ContainerRef) bool {
	rec := e.Current(ref.Name)
	return e.Initialised() || (rec != nil && rec.State == model.Exited && !podstatus.InitFailed(rec))
}

// redefines reports whether a change makes a container's definition another one, and does not
// say the same in other words.
func (e edits) redefines(path string) bool {
	one, isOne := e.containerOf(path)
	return slices.ContainsFunc(podspec.Containers(e.Manifest), func(ref podspec.ContainerRef) bool {
		if isOne && ref.Name != one.Name {
			return false
		}
		before, ok := podspec.FindContainer(e.applied.Pod, ref.Name)
		return !ok || digest.Compare(spechash.Container(e.applied, before.Container), spechash.Container(e.Desired, ref.Container)) == digest.Different
	})
}

// containerOf is the container that a field belongs to; false for a field of the pod.
func (e edits) containerOf(path string) (podspec.ContainerRef, bool) {
	for _, ref := range podspec.Containers(e.Manifest) {
		list, _, _ := strings.Cut(ref.Path, "[")
		if strings.HasPrefix(path, list+"["+ref.Name+"]") {
			return ref, true
		}
	}
	return podspec.ContainerRef{}, false
}
