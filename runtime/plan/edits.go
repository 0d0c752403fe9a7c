package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/podspec/fields"
	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/podspec/spechash"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan/diff"
	"github.com/podctl/podctl/runtime/podstatus"
)

// Effect is the time when an edit without a step takes effect.
type Effect string

// The effects of an edit.
const (
	// EffectLive is for fields that podctl reads again in each pass.
	EffectLive Effect = "live"
	// EffectNextStart is for fields that a container gets when it starts next.
	EffectNextStart Effect = "nextStart"
	// EffectNewSandbox is for fields that only a new sandbox gets.
	EffectNewSandbox Effect = "newSandbox"
	// EffectNewPod is for fields that take effect once the pod has been deleted.
	EffectNewPod Effect = "newPod"
	// EffectHeld is for fields whose step is held: see the holds of the plan.
	EffectHeld Effect = "held"
	// EffectNone is for fields that do not affect running containers.
	EffectNone Effect = "none"
)

// effectOf returns the effect of an edit by the class of its field.
func effectOf(class fields.ChangeClass) Effect {
	return cmp.Or(map[fields.ChangeClass]Effect{
		fields.Live:       EffectLive,
		fields.NextStart:  EffectNextStart,
		fields.Replace:    EffectNextStart,
		fields.InPlace:    EffectNextStart,
		fields.NewSandbox: EffectNewSandbox,
		fields.NewPod:     EffectNewPod,
	}[class], EffectNone)
}

// Edit is a field of the manifest that differs from the manifest applied last and that no step of the plan carries out.
// A pass writes it into podctl's record of the pod.
type Edit struct {
	diff.Change
	TakesEffect Effect `json:"takesEffect"`
}

// edits finds the differences between a manifest and the one applied last.
type edits struct {
	*podstatus.Pod
	*decision
	applied *podspec.Desired
	steps   steps
	classes fields.Edits
}

// recordEdits returns the edits that a pass only records. It returns nil if podctl has no applied manifest of the pod.
func recordEdits(pod *podstatus.Pod, d *decision, s steps) []Edit {
	e := edits{Pod: pod, decision: d, applied: appliedOf(pod), steps: s, classes: fields.NewEdits(pod.Manifest)}
	if e.applied == nil {
		return nil
	}
	list := e.deletion()
	for _, c := range Edited(e.applied, e.Desired) {
		if !e.done(c.Path) {
			list = append(list, Edit{Change: c, TakesEffect: e.effect(c.Path)})
		}
	}
	return list
}

// Edited returns the fields in which two versions of a pod differ, including its ConfigMaps and Secrets. It redacts the
// values of Secrets everywhere.
func Edited(before, after *podspec.Desired) []diff.Change {
	if before.SameAs(after) {
		return nil
	}
	classes := fields.NewEdits(after.Pod)
	divides := func(path string) bool {
		return isObject(path) || path == "metadata.labels" || path == "metadata.annotations" || classes.Divides(path)
	}
	changes := diff.Divided(diff.Plain(treeOf(before)), treeOf(after), divides).Changes
	redactor := redaction.New(slices.Concat(before.Objects.SecretValues(), after.Objects.SecretValues())...)
	for i := range changes {
		changes[i].Before, changes[i].After = redactor.Text(changes[i].Before), redactor.Text(changes[i].After)
	}
	return changes
}

// restartedAtPath is the annotation that restarts a pod of a workload.
const restartedAtPath = "metadata.annotations." + podspec.AnnotationRestartedAt

// The roots of the pod's ConfigMaps and Secrets in the tree of treeOf.
const (
	configMapsRoot = "configMaps"
	secretsRoot    = "secrets"
)

// treeOf returns the desired state as a tree, with digests in place of secret values.
func treeOf(d *podspec.Desired) map[string]any {
	tree := diff.Plain(map[string]any{"pod": d.Compared()})
	pod, _ := tree["pod"].(map[string]any)
	if pod == nil {
		pod = map[string]any{}
	}
	maps, secrets := map[string]any{}, map[string]any{}
	for name, m := range d.Objects.ConfigMaps {
		if m != nil {
			maps[name] = map[string]any{
				"data":        m.Data,
				"binaryData":  m.BinaryData,
				"immutable":   m.Immutable,
				"labels":      m.Labels,
				"annotations": m.Annotations,
			}
		}
	}
	for name, s := range d.Objects.Secrets {
		if s != nil {
			secrets[name] = map[string]any{
				"data":      digestsOf(d, name),
				"type":      cmp.Or(s.Type, v1.SecretTypeOpaque),
				"immutable": s.Immutable,
				"labels":    s.Labels,
			}
		}
	}
	pod[configMapsRoot], pod[secretsRoot] = maps, secrets
	return pod
}

// digestsOf returns the digests that replace the values of a Secret.
func digestsOf(d *podspec.Desired, secret string) map[string]string {
	digests := map[string]string{}
	for key, value := range d.Objects.Secrets[secret].Data {
		digests[key] = d.SecretDigest(digest.SecretRef{Name: secret, Key: key}, value)
	}
	return digests
}

// isObject reports whether a path belongs to a ConfigMap or a Secret.
func isObject(path string) bool {
	root, _, _ := strings.Cut(path, ".")
	return root == configMapsRoot || root == secretsRoot
}

// deletion returns an edit for the mark of an unfinished deletion, which applying the manifest cancels.
func (e edits) deletion() []Edit {
	mark := e.Observed.Memory.Deletion
	if mark == nil {
		return nil
	}
	change := diff.Change{Path: "metadata.deletionTimestamp", Before: mark.At.UTC().Format(time.RFC3339)}
	return []Edit{{Change: change, TakesEffect: EffectLive}}
}

// done reports whether steps of the plan carry out an edit.
func (e edits) done(path string) bool {
	if isObject(path) {
		return slices.ContainsFunc(e.steps, func(s Step) bool { return e.takesContent(&s, path) })
	}
	class := e.classes.Class(path)
	if path == restartedAtPath {
		class = fields.NewSandbox
	}
	switch class {
	case fields.Live:
		return e.updatesVolume(path)
	case fields.NewPod, fields.NoChange:
		return false
	case fields.NewSandbox:
		return len(e.steps.of(RunSandbox)) > 0
	case fields.Replace, fields.InPlace, fields.NextStart:
	}
	if name, ok := containerAt(path); ok {
		return slices.ContainsFunc(e.steps, func(s Step) bool {
			switch s.Kind { //nolint:exhaustive // the others change the container
			case CheckContainer, PullImage, RotateLog, AllocateDevices:
				return false
			}
			return s.Container == name
		})
	}
	if class == fields.NextStart {
		keepsRunning := slices.ContainsFunc(e.keeps, func(k Keep) bool { return k.State == string(model.Running) })
		return len(e.steps.of(StartContainer)) > 0 && !keepsRunning
	}
	return len(e.steps.of(StartContainer))+len(e.steps.of(UpdatePod)) > 0
}

// updatesVolume reports whether a step rewrites the volume that a path belongs to.
func (e edits) updatesVolume(path string) bool {
	return slices.ContainsFunc(e.steps, func(s Step) bool {
		return s.Kind == UpdateVolume && strings.HasPrefix(path, "spec.volumes["+s.Volume+"].")
	})
}

// writesNothing reports whether a path belongs to a volume that no step writes because its content is missing.
func (e edits) writesNothing(path string) bool {
	for i := range e.Manifest.Spec.Volumes {
		name := e.Manifest.Spec.Volumes[i].Name
		if !strings.HasPrefix(path, "spec.volumes["+name+"].") {
			continue
		}
		state, known := e.Observed.Volumes[name]
		written := slices.ContainsFunc(e.steps, func(s Step) bool {
			return s.Kind == PrepareVolume && s.Volume == name
		})
		return known && !state.Prepared && !written
	}
	return false
}

// takesContent reports whether a step gives the pod the current content of an object.
func (e edits) takesContent(s *Step, path string) bool {
	switch s.Kind { //nolint:exhaustive // the others read no content
	case UpdateVolume, PrepareVolume:
		vol := podspec.FindVolume(e.Manifest, s.Volume)
		return vol != nil && refersTo(podspec.VolumeReferences(vol, ""), path)
	case StartContainer:
		ref, ok := podspec.FindContainer(e.Manifest, s.Container)
		return ok && refersTo(podspec.EnvReferences(ref), path)
	}
	return false
}

// refersTo reports whether one of the references points to the object that a path belongs to.
func refersTo(refs []podspec.Reference, path string) bool {
	return slices.ContainsFunc(refs, func(r podspec.Reference) bool {
		root := configMapsRoot
		if r.Kind == podspec.KindSecret {
			root = secretsRoot
		}
		return path == root || path == root+"."+r.Name || strings.HasPrefix(path, root+"."+r.Name+".")
	})
}

// effect returns when an edit without a step takes effect.
func (e edits) effect(path string) Effect {
	if isObject(path) {
		return e.effectOfObject(path)
	}
	class := e.classes.Class(path)
	switch {
	case class == fields.NoChange:
		return EffectNone
	case e.terminal, class == fields.NewPod:
		return EffectNewPod
	case class == fields.Live && !e.writesNothing(path):
		return EffectLive
	case e.heldAt(path):
		return EffectHeld
	case class == fields.Live:
		return EffectNone
	}
	return effectOf(e.classWithoutStep(path, class))
}

// effectOfObject returns when the content of an object takes effect if no step carries it out: in the environment of a
// container that is held or does not start now, or with the next pull of an image.
func (e edits) effectOfObject(path string) Effect {
	for _, ref := range podspec.Containers(e.Manifest) {
		if refersTo(podspec.EnvReferences(ref), path) && e.redefined(ref) {
			if e.isHeld(ref.Name) {
				return EffectHeld
			}
			return effectOf(e.nextStart(ref))
		}
	}
	for _, s := range e.Manifest.Spec.ImagePullSecrets {
		if refersTo([]podspec.Reference{{Kind: podspec.KindSecret, Name: s.Name}}, path) {
			return EffectLive
		}
	}
	return EffectNone
}

// heldAt reports whether the container that a path belongs to is held, or for other paths, anything of the pod.
func (e edits) heldAt(path string) bool {
	if name, ok := containerAt(path); ok {
		return e.isHeld(name)
	}
	return len(e.holds) > 0
}

func (e edits) isHeld(container string) bool {
	return slices.ContainsFunc(e.holds, func(h Hold) bool { return h.Container == "" || h.Container == container })
}

// classWithoutStep returns the class that applies to a change whose own class usually causes a step. There is no step
// if the container has ended, or if it is not compared by its whole definition.
func (e edits) classWithoutStep(path string, class fields.ChangeClass) fields.ChangeClass {
	switch class {
	case fields.NewSandbox:
		if spechash.Sandbox(e.applied) == spechash.Sandbox(e.Desired) {
			return fields.NoChange
		}
		return class
	case fields.Replace:
		if !e.redefines(path) {
			return fields.NoChange
		}
	case fields.InPlace, fields.NextStart, fields.Live, fields.NewPod, fields.NoChange:
	}
	ref, _ := e.containerOf(path)
	return e.nextStart(ref)
}

// nextStart returns when a container can get a change: at its next start, in a new sandbox or in a new pod. An empty
// ref stands for the containers of the pod.
func (e edits) nextStart(ref podspec.ContainerRef) fields.ChangeClass {
	switch {
	case ref.Type == podspec.Ephemeral:
		// A debug container runs once in the life of its pod.
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

// redefines reports whether a change affects a container's definition. Another spelling of the same value does not.
func (e edits) redefines(path string) bool {
	one, isOne := e.containerOf(path)
	return slices.ContainsFunc(podspec.Containers(e.Manifest), func(ref podspec.ContainerRef) bool {
		return (!isOne || ref.Name == one.Name) && e.redefined(ref)
	})
}

// redefined reports whether a container would start with another definition or environment than the applied one.
func (e edits) redefined(ref podspec.ContainerRef) bool {
	before, ok := podspec.FindContainer(e.applied.Pod, ref.Name)
	if !ok {
		return true
	}
	applied := spechash.Start(e.applied, before.Container)
	return digest.Compare(applied, spechash.Start(e.Desired, ref.Container)) == digest.Different
}

// containerOf returns the container of the manifest that a field belongs to; false for a field of the pod.
func (e edits) containerOf(path string) (podspec.ContainerRef, bool) {
	name, ok := containerAt(path)
	if !ok {
		return podspec.ContainerRef{}, false
	}
	return podspec.FindContainer(e.Manifest, name)
}

// containerAt returns the name of the container in a path; false for a path of the pod.
func containerAt(path string) (string, bool) {
	list, rest, ok := strings.Cut(path, "[")
	if !ok || !slices.Contains([]string{"spec.containers", "spec.initContainers", "spec.ephemeralContainers"}, list) {
		return "", false
	}
	name, _, ok := strings.Cut(rest, "]")
	return name, ok
}
