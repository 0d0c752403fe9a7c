package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/podspec/fields"
	"github.com/podctl/podctl/podspec/spechash"
	"github.com/podctl/podctl/runtime/admission"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/podstatus"
)

// addNotes adds the notes of the plan.
func (e *explainer) addNotes() {
	if e.terminal && e.editedAfterEnd() {
		e.notef("The pod has finished. Delete it first to run the change.")
	}
	for _, ref := range podspec.Containers(e.Manifest) {
		if rec := e.Newest(ref.Name); rec != nil && rec.State == model.Running && !e.steps.does(StopContainer, rec.ID) {
			e.noteNewImage(ref, rec)
			e.noteUnknownSecrets(ref, rec)
			e.noteFound(ref, rec)
		}
	}
	if e.Observed.Unrecorded && len(e.plan.Keeps) > 0 {
		e.notef("podctl has no record of this pod: apply creates one, and adopts its containers")
	}
	e.noteUnresolved()
	e.noteFaults()
	e.noteIneffective()
	e.plan.Notes = append(e.plan.Notes, admission.Notes(e.Manifest, &e.Observed.Machine)...)
	e.noteRuntime()
}

func (e *explainer) notef(format string, args ...any) {
	e.plan.Notes = append(e.plan.Notes, fmt.Sprintf(format, args...))
}

// noteIneffective notes the fields of a pod of the API server that have no effect on this node. For other pods, the
// loader notes them.
func (e *explainer) noteIneffective() {
	if !e.Desired.FromCluster() {
		return
	}
	_, ineffective := fields.InCluster(e.Manifest)
	for _, use := range ineffective {
		e.notef("%s has no effect: %s", use.Path, use.Note)
	}
}

// editedAfterEnd reports whether the manifest of a finished pod differs from the one that ran.
func (e *explainer) editedAfterEnd() bool {
	if done := e.Observed.Memory.Completion; done != nil && done.DesiredDigest != "" {
		return digest.Compare(done.DesiredDigest, e.Desired.Digest()) == digest.Different
	}
	return slices.ContainsFunc(podstatus.Lasting(e.Manifest), func(ref podspec.ContainerRef) bool {
		rec := e.Newest(ref.Name)
		if rec == nil {
			return false
		}
		changed, _ := editedSince(e.Pod, ref.Container, rec)
		return changed
	})
}

// noteUnknownSecrets adds a note if podctl cannot find out whether a running container has the current values of its
// Secrets: its digests were made with another key. podctl does not stop the container because of that.
func (e *explainer) noteUnknownSecrets(ref podspec.ContainerRef, rec *model.Container) {
	if digest.Compare(rec.SpecHash, spechash.Container(e.Desired, ref.Container)) == digest.Unknown {
		e.notef("container %s: it is unknown whether the Secrets in its environment have changed, "+
			"because their digests were made with another key; "+
			"`podctl restart %s %s` applies the values of the manifest",
			ref.Name, e.Manifest.Name, ref.Name)
	}
}

// noteFound adds notes about a container that podctl did not create: that its definition is unknown, and which
// resources differ from the manifest and stay.
func (e *explainer) noteFound(ref podspec.ContainerRef, rec *model.Container) {
	if unreadable(ref.Container, rec) && e.Observed.Memory.Adopted[rec.ID] == "" {
		e.notef("container %s has no hash that podctl can read (probably created by an older kubelet): "+
			"it is adopted as it is, and replaced when its manifest changes", ref.Name)
	}
	r := resizingOf(e.Pod, ref.Container, rec)
	for _, c := range r.changesOf(r.kept) {
		e.notef("container %s does not run with the resources of the manifest (%s), and no edit is recorded: "+
			"podctl restart %s %s applies them", ref.Name, c, e.Manifest.Name, ref.Name)
	}
}

// noteNewImage notes that a tag refers to another image than the running one.
func (e *explainer) noteNewImage(ref podspec.ContainerRef, rec *model.Container) {
	image := e.Observed.Images[ref.Image]
	if image.Other(rec.ImageID) {
		running, current := shortDigest(rec.ImageID), shortDigest(image.NameLike(rec.ImageID))
		e.notef("%s runs image %s, but %s now refers to %s: podctl restart %s %s uses the new image",
			ref.Name, running, ref.Image, current, e.Manifest.Name, ref.Name)
	}
}

func shortDigest(id string) string {
	return model.ShortID(strings.TrimPrefix(id[strings.Index(id, "@")+1:], "sha256:"))
}

// noteUnresolved notes that a volume of a running container keeps its content because the manifest's objects are
// missing. A container that is not running yet is held instead.
func (e *explainer) noteUnresolved() {
	keepsRunning := func(k Keep) bool { return k.Container != "" && k.State == string(model.Running) }
	if !slices.ContainsFunc(e.plan.Keeps, keepsRunning) {
		return
	}
	for _, missing := range e.Desired.Unresolved() {
		reported := slices.ContainsFunc(e.holds, func(h Hold) bool { return h.Message == missing.Detail })
		if missing.Volume != "" && missing.Container == "" && !reported {
			e.notef("volume %s keeps its content: %s", missing.Volume, missing.Detail)
		}
	}
}

// noteFaults notes the faults that would prevent a new start of a running container.
func (e *explainer) noteFaults() {
	for _, ref := range podspec.Containers(e.Manifest) {
		fault, known := e.Observed.Faults[ref.Name]
		rec := e.Newest(ref.Name)
		held := slices.ContainsFunc(e.holds, func(h Hold) bool { return h.Container == ref.Name || h.Container == "" })
		isRunning := rec != nil && rec.State == model.Running && !e.steps.does(StopContainer, rec.ID)
		if known && !held && !fault.ImageUser && isRunning {
			e.notef("container %s runs, but could not be started again: %s", ref.Name, fault.Message)
		}
	}
}

// noteRuntime notes which settings of the manifest the runtime or the kernel does not support.
func (e *explainer) noteRuntime() {
	for _, ref := range podspec.Containers(e.Manifest) {
		own := ref.SecurityContext
		if own != nil && own.SELinuxOptions != nil {
			e.noteNoSELinux(ref.Path + ".securityContext.seLinuxOptions")
		}
		runtime := e.Observed.Runtime
		setsSignal := ref.Lifecycle != nil && ref.Lifecycle.StopSignal != nil
		if setsSignal && runtime.Name == "containerd" && olderThan(runtime.Version, 2, 1) {
			e.notef("%s.lifecycle.stopSignal has no effect: "+
				"containerd %s does not support it, and sends the stop signal of the image, or SIGTERM",
				ref.Path, runtime.Version)
		}
	}
	if own := e.Manifest.Spec.SecurityContext; own != nil && own.SELinuxOptions != nil {
		e.noteNoSELinux("spec.securityContext.seLinuxOptions")
	}
}

func (e *explainer) noteNoSELinux(path string) {
	if on := e.Observed.SELinux; on != nil && !*on {
		e.notef("%s has no effect: SELinux is not enabled on this machine", path)
	}
}
