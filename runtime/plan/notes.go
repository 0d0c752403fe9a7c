package plan

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// finish ends the life of a pod that has completed: what still runs is stopped,
// and nothing starts.
func (d *decision) finish(v *view) {
	d.terminal, d.createSandbox = true, false
	d.killPod = v.anyRunning() || v.active != ""
	d.reason, d.message = model.Completed, fmt.Sprintf("the pod has finished: %s", v.phase)
	if v.deadlineExceeded() && v.phase != v1.PodSucceeded && v.phase != v1.PodFailed {
		d.reason = model.DeadlineExceeded
		d.message = fmt.Sprintf("active for longer than its activeDeadlineSeconds, %d", *v.pod.Spec.ActiveDeadlineSeconds)
	}
	for _, ref := range podspec.Containers(v.pod) {
		if c := v.newest(ref.Name); c != nil && c.State == model.Exited {
			d.keeps = append(d.keeps, v.keepOf(ref, c))
		}
	}
}

// addNotes says what is worth knowing and needs no step.
func (b *builder) addNotes() {
	if b.d.terminal && b.editedAfterEnd() {
		b.note("Completed; delete it first to run the change.")
	}
	for _, ref := range podspec.Containers(b.v.pod) {
		b.noteNewImage(ref)
		b.noteUnknownSecrets(ref)
	}
	b.noteEdits()
	b.noteCapacity()
}

func (b *builder) note(text string) { b.p.Notes = append(b.p.Notes, text) }

// editedAfterEnd tells that a finished pod's manifest no longer is the one that
// ran.
func (b *builder) editedAfterEnd() bool {
	if done := b.v.obs.Memory.Completion; done != nil && done.DesiredDigest != "" {
		return podspec.Compare(done.DesiredDigest, b.v.desired.Digest()) == podspec.Different
	}
	for _, ref := range runsInPod(b.v.pod) {
		c := b.v.newest(ref.Name)
		if c == nil {
			continue
		}
		if changed, _ := b.v.editedSince(ref.Container, c); changed {
			return true
		}
	}
	return false
}

// noteUnknownSecrets says that nobody can tell whether a running container has the values
// of Secrets that the manifest has now: the digests that it bears were made with another
// key than podctl has, and not knowing is no reason to stop it.
func (b *builder) noteUnknownSecrets(ref podspec.ContainerRef) {
	c := b.v.newest(ref.Name)
	if c == nil || c.State != model.Running || b.stopsContainer(c.ID) {
		return
	}
	if podspec.Compare(c.SpecHash, b.v.desired.ContainerSpecHash(ref.Container)) == podspec.Unknown {
		b.note(fmt.Sprintf("container %s: it is unknown whether the Secrets in its environment have changed, because their digests were made with another key; `podctl restart %s %s` gives it the values of the manifest",
			ref.Name, b.v.pod.Name, ref.Name))
	}
}

// noteNewImage says when a tag names another image than the one that runs.
func (b *builder) noteNewImage(ref podspec.ContainerRef) {
	c := b.v.newest(ref.Name)
	image := b.v.obs.Images[ref.Image]
	if c == nil || c.State != model.Running || c.ImageID == "" || image.ID == "" || c.ImageID == image.ID {
		return
	}
	if b.stopsContainer(c.ID) {
		return
	}
	b.note(fmt.Sprintf("%s runs image %s, while %s now names %s: podctl restart %s %s takes the new one",
		ref.Name, shortDigest(c.ImageID), ref.Image, shortDigest(image.ID), b.v.pod.Name, ref.Name))
}

func shortDigest(id string) string { return model.ShortID(strings.TrimPrefix(id, "sha256:")) }

// addLater says what later passes will come to, when it is certain: the init
// containers after the one that runs or starts now, then the regular ones.
func (b *builder) addLater() {
	at, ok := b.initInProgress()
	if !ok {
		return
	}
	var parts []string
	for _, ref := range podspec.InitContainers(b.v.pod)[at+1:] {
		parts = append(parts, string(ref.Type)+" "+ref.Name)
	}
	if names := b.regularLater(); len(names) > 0 {
		parts = append(parts, strings.Join(names, ", "))
	}
	if len(parts) == 0 {
		return
	}
	gate := podspec.InitContainers(b.v.pod)[at]
	b.p.Later = append(b.p.Later, fmt.Sprintf("%s (when %s)", strings.Join(parts, ", then "), gateText(gate)))
}

func gateText(gate podspec.ContainerRef) string {
	if gate.Type == podspec.Init {
		return gate.Name + " has exited 0"
	}
	if gate.StartupProbe != nil {
		return gate.Name + " has passed its startup probe"
	}
	return gate.Name + " has started"
}

// initInProgress is the index of the last init container that starts, runs or
// is held in this pass while the regular ones have to wait.
func (b *builder) initInProgress() (int, bool) {
	if b.d.terminal || len(b.d.regularStart) > 0 {
		return 0, false
	}
	busy := map[string]bool{}
	for _, s := range b.d.initStart {
		busy[s.ref.Name] = true
	}
	for _, ref := range podspec.InitContainers(b.v.pod) {
		c := b.v.current(ref.Name)
		if c != nil && c.State == model.Running && !b.d.createSandbox && b.waitsFor(ref) {
			busy[ref.Name] = true
		}
	}
	at, found := 0, false
	for _, ref := range podspec.InitContainers(b.v.pod) {
		if busy[ref.Name] {
			at, found = ref.Index, true
		}
	}
	if b.v.initialisedBefore() && !b.d.createSandbox {
		return 0, false
	}
	return at, found
}

// waitsFor tells that the pass waits for that init container or sidecar.
func (b *builder) waitsFor(ref podspec.ContainerRef) bool {
	for _, text := range b.d.waiting {
		if strings.Contains(text, " "+ref.Name+" to ") {
			return true
		}
	}
	return false
}

func (b *builder) regularLater() []string {
	var names []string
	for _, ref := range podspec.RegularContainers(b.v.pod) {
		if !b.v.succeededOnce(ref) {
			names = append(names, ref.Name)
		}
	}
	return names
}
