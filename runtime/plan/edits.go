package plan

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/podspec/fields"
	"github.com/podctl/podctl/podspec/spechash"
	"github.com/podctl/podctl/runtime/model"
)

// noteEdits names what changed and needs no step, by when it takes effect: some is read
// from the manifest when it is needed, the rest waits for something new.
func (b *builder) noteEdits() {
	applied := b.v.obs.Memory.Applied
	if applied == nil || applied.Pod == nil || b.d.terminal || len(b.p.Steps)+len(b.p.Holds) > 0 {
		return
	}
	if equality.Semantic.DeepEqual(applied.Pod.Spec, b.v.pod.Spec) {
		return
	}
	paths := b.editedFields(applied.Pod)
	for _, when := range []struct {
		class fields.ChangeClass
		text  string
	}{
		{fields.Live, "takes effect without a step: "},
		{fields.NextStart, "takes effect only when a container starts next: "},
		{fields.NewSandbox, "takes effect only in a new sandbox: "},
		{fields.NewPod, "takes effect only in a new pod: "},
	} {
		if len(paths[when.class]) > 0 {
			b.note(when.text + strings.Join(paths[when.class], ", "))
		}
	}
}

// editedFields are the paths of what differs from the manifest that was applied, by when
// it takes effect, given that no step does it.
func (b *builder) editedFields(applied *v1.Pod) map[fields.ChangeClass][]string {
	edits := fields.NewEdits(b.v.pod)
	d := difference{divides: edits.Divides}
	d.compareMaps("", normalised(map[string]any{"spec": applied.Spec}), normalised(map[string]any{"spec": b.v.pod.Spec}))
	paths := map[fields.ChangeClass][]string{}
	for _, c := range d.changes {
		class := b.effect(c.Path, edits.Class(c.Path))
		paths[class] = append(paths[class], c.Path)
	}
	return paths
}

// effect is when a change takes effect that its class would have made a step of: such a
// container has ended, or is not judged by all of its definition.
func (b *builder) effect(path string, class fields.ChangeClass) fields.ChangeClass {
	applied := b.v.obs.Memory.Applied
	switch class {
	case fields.Live, fields.NewPod, fields.NoChange:
		return class
	case fields.NewSandbox:
		if spechash.Sandbox(applied) == spechash.Sandbox(b.v.desired) {
			return fields.NoChange
		}
		return class
	case fields.Replace:
		if !b.redefines(path) {
			return fields.NoChange
		}
	case fields.InPlace, fields.NextStart:
	}
	return b.nextStart(path)
}

// nextStart is what the container, or the containers, that a path belongs to wait for
// before they start again.
func (b *builder) nextStart(path string) fields.ChangeClass {
	ref, _ := b.containerOf(path)
	switch {
	case ref.Type == podspec.Ephemeral:
		// It runs once in the life of its pod.
		return fields.NewPod
	case ref.Type == podspec.Init && b.v.initOver(ref):
		return fields.NewSandbox
	}
	return fields.NextStart
}

// initOver tells that an init container does not run again in its sandbox.
func (v *view) initOver(ref podspec.ContainerRef) bool {
	c := v.current(ref.Name)
	return v.initialisedBefore() || (c != nil && c.State == model.Exited && !initFailed(c))
}

// redefines tells that a change makes a container's definition another one, and does not
// say the same in other words.
func (b *builder) redefines(path string) bool {
	one, isOne := b.containerOf(path)
	applied := b.v.obs.Memory.Applied
	for _, ref := range podspec.Containers(b.v.pod) {
		if isOne && ref.Name != one.Name {
			continue
		}
		before, ok := podspec.FindContainer(applied.Pod, ref.Name)
		if !ok || digest.Compare(spechash.Container(applied, before.Container), spechash.Container(b.v.desired, ref.Container)) == digest.Different {
			return true
		}
	}
	return false
}

// containerOf is the container that a field belongs to; false for a field of the pod.
func (b *builder) containerOf(path string) (podspec.ContainerRef, bool) {
	for _, ref := range podspec.Containers(b.v.pod) {
		list, _, _ := strings.Cut(ref.Path, "[")
		if strings.HasPrefix(path, list+"["+ref.Name+"]") {
			return ref, true
		}
	}
	return podspec.ContainerRef{}, false
}
