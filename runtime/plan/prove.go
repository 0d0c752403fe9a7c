package plan

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// holdStarts takes out of the decision what cannot start now: a container in
// CrashLoopBackOff, and one whose references or image are missing. A running
// container that would be replaced by one that cannot start is left running.
func (b *builder) holdStarts() {
	for _, list := range [][]start{b.d.initStart, b.d.regularStart, b.d.ephemeralStart} {
		for _, s := range list {
			if hold, ok := b.holdOf(s); ok {
				b.p.Holds = append(b.p.Holds, hold)
				continue
			}
			b.starts = append(b.starts, s)
		}
	}
	b.spareBlocked()
}

func (b *builder) holdOf(s start) (Hold, bool) {
	if hold, ok := b.missing(s); ok {
		b.blocked[s.ref.Name] = true
		return hold, true
	}
	return b.v.backoffHold(s)
}

// missing tells what a container lacks that no pass can give it: an object the
// manifests do not supply, or an image that may not be pulled.
func (b *builder) missing(s start) (Hold, bool) {
	for _, ref := range b.v.desired.Unresolved() {
		if ref.Container == s.ref.Name {
			return Hold{Container: s.ref.Name, Reason: model.CreateContainerConfigError, Message: ref.Detail}, true
		}
		if ref.Volume != "" && ref.Container == "" {
			return Hold{Container: s.ref.Name, Reason: model.FailedMount, Message: ref.Detail}, true
		}
	}
	if text := b.v.imageVolumeFault(s.ref); text != "" {
		return Hold{Container: s.ref.Name, Reason: model.CreateContainerConfigError, Message: text}, true
	}
	if text := b.neverPulled(s.ref); text != "" {
		return Hold{Container: s.ref.Name, Reason: model.ErrImageNeverPull, Message: text + " is absent and the pull policy is Never"}, true
	}
	return Hold{}, false
}

// neverPulled names an image that is absent and may not be pulled: the container's own, or
// one that it mounts. Without one it is empty.
func (b *builder) neverPulled(ref podspec.ContainerRef) string {
	lacks := func(image string, own v1.PullPolicy) bool {
		state, known := b.v.obs.Images[image]
		return known && state.ID == "" && b.pullPolicy(own) == v1.PullNever
	}
	if lacks(ref.Image, ref.ImagePullPolicy) {
		return "image " + ref.Image
	}
	for _, vol := range b.v.imageVolumes(ref) {
		if lacks(vol.Image.Reference, vol.Image.PullPolicy) {
			return fmt.Sprintf("image %s of volume %s", vol.Image.Reference, vol.Name)
		}
	}
	return ""
}

func (b *builder) pullPolicy(own v1.PullPolicy) v1.PullPolicy {
	if b.v.opts.PullPolicy != "" {
		return b.v.opts.PullPolicy
	}
	return own
}

// spareBlocked keeps a running container whose replacement cannot start.
func (b *builder) spareBlocked() {
	if b.d.killPod {
		return
	}
	var kills []kill
	for _, k := range b.d.kills {
		if b.blocked[k.ref.Name] && k.container.State == model.Running {
			b.d.keeps = append(b.d.keeps, b.v.keepOf(k.ref, k.container))
			continue
		}
		kills = append(kills, k)
	}
	b.d.kills = kills
}

// networkHeld holds the whole pod while the runtime says that its network is
// not ready, unless the pod does not use it (kubelet: SyncPod, step 2).
func (b *builder) networkHeld() bool {
	ready := b.v.obs.Runtime.NetworkReady
	if ready == nil || *ready || b.v.pod.Spec.HostNetwork || b.d.terminal {
		return false
	}
	if !b.d.createSandbox && len(b.starts) == 0 {
		return false
	}
	message := firstOf(b.v.obs.Runtime.NetworkMessage, "the runtime's network is not ready")
	b.p.Holds = append(b.p.Holds, Hold{Reason: model.NetworkNotReady, Message: message})
	return true
}

// recreationHeld leaves a running pod alone whose sandbox should be replaced
// while some container could not be started again.
func (b *builder) recreationHeld() bool {
	if !b.d.createSandbox || !b.v.anyRunning() {
		return false
	}
	held := false
	for _, s := range b.allStarts() {
		if b.blocked[s.ref.Name] {
			held = true
			continue
		}
		if hold, ok := b.missing(s); ok {
			b.p.Holds = append(b.p.Holds, hold)
			held = true
		}
	}
	return held
}

func (v *view) anyRunning() bool {
	return v.find(func(c *model.Container) bool { return c.State == model.Running }) != nil
}

// allStarts are the containers that a new sandbox will start, in this pass and
// in later ones: everything initialises anew.
func (b *builder) allStarts() []start {
	var starts []start
	for _, ref := range runsInPod(b.v.pod) {
		if ref.Type != podspec.Regular || !b.v.succeededOnce(ref) {
			starts = append(starts, start{ref: ref})
		}
	}
	return starts
}

// provenStarts are the containers whose images and configuration are proven in
// this pass. When running containers are stopped for a new sandbox these are
// all of the pod, also those that start in later passes.
func (b *builder) provenStarts() []start {
	if b.d.createSandbox && b.v.anyRunning() {
		return b.allStarts()
	}
	return b.starts
}

// prepareVolumes makes the volumes ready before any container starts, and
// brings content that changed up to date even when none does.
func (b *builder) prepareVolumes(starting bool) {
	var dirs []string
	for _, vol := range directoriesFirst(podspec.UsedVolumes(b.v.pod)) {
		state, known := b.v.obs.Volumes[vol.Name]
		switch {
		case known && state.Prepared && state.Digest != state.Wanted:
			b.volumes = append(b.volumes, b.add(Step{
				ID: "update-volume/" + vol.Name, Kind: UpdateVolume, Volume: vol.Name, OnFailure: Abort,
				Reason: model.ContentChanged, Message: "its content changed",
			}))
		case known && state.Prepared, !starting:
		default:
			step := Step{
				ID: "prepare-volume/" + vol.Name, Kind: PrepareVolume, Volume: vol.Name, OnFailure: Abort,
				Reason: model.VolumeMissing, Message: "not prepared yet",
			}
			if podspec.HostPathType(vol.HostPath) == v1.HostPathFileOrCreate {
				step.After = dirs
			}
			b.volumes = append(b.volumes, b.add(step))
			if podspec.HostPathType(vol.HostPath) == v1.HostPathDirectoryOrCreate {
				dirs = append(dirs, step.ID)
			}
		}
	}
	b.proofs = append(b.proofs, b.volumes...)
}

// directoriesFirst puts the files that are made on the host last: the directory
// they lie in may be another volume's to make, as Kubernetes' own example has it.
func directoriesFirst(volumes []*v1.Volume) []*v1.Volume {
	var first, files []*v1.Volume
	for _, vol := range volumes {
		if podspec.HostPathType(vol.HostPath) == v1.HostPathFileOrCreate {
			files = append(files, vol)
		} else {
			first = append(first, vol)
		}
	}
	return append(first, files...)
}

// pull adds the pulls a container needs: its own image and those it mounts.
func (b *builder) pull(s start) {
	b.pullImage(s.ref, s.ref.Image, s.ref.ImagePullPolicy, "pull-"+s.ref.Name)
	for _, vol := range b.v.imageVolumes(s.ref) {
		b.pullImage(s.ref, vol.Image.Reference, vol.Image.PullPolicy, "pull-volume/"+vol.Name)
	}
}

// imageVolumes are the volumes with an image that a container mounts.
func (v *view) imageVolumes(ref podspec.ContainerRef) []*v1.Volume {
	var volumes []*v1.Volume
	for i := range v.pod.Spec.Volumes {
		if vol := &v.pod.Spec.Volumes[i]; vol.Image != nil && mounts(ref, vol.Name) {
			volumes = append(volumes, vol)
		}
	}
	return volumes
}

func mounts(ref podspec.ContainerRef, volume string) bool {
	for i := range ref.VolumeMounts {
		if ref.VolumeMounts[i].Name == volume {
			return true
		}
	}
	return false
}

func (b *builder) pullImage(ref podspec.ContainerRef, image string, own v1.PullPolicy, id string) {
	reason, message := b.pullReason(image, own)
	if reason == "" || b.pulls[image] != "" {
		return
	}
	b.pulls[image] = b.add(Step{
		ID: id, Kind: PullImage, Image: image, Container: ref.Name, ContainerType: ref.Type, OnFailure: SkipContainer,
		Reason: reason, Message: message,
	})
	b.proofs = append(b.proofs, b.pulls[image])
}

// pullReason is why an image is pulled for somebody with a pull policy; empty when it need
// not be.
func (b *builder) pullReason(image string, own v1.PullPolicy) (model.Reason, string) {
	state, known := b.v.obs.Images[image]
	switch policy := b.pullPolicy(own); {
	case policy == v1.PullAlways:
		return model.PullAlways, "the pull policy is Always"
	case policy != v1.PullNever && known && state.ID == "":
		return model.ImageAbsent, "absent"
	}
	return "", ""
}

// pullFor is the step that a container, or an image volume of its, waits for: another one
// may pull an image again that is good enough for it.
func (b *builder) pullFor(image string, own v1.PullPolicy) string {
	if reason, _ := b.pullReason(image, own); reason == "" {
		return ""
	}
	return b.pulls[image]
}

// check adds the proof that a container can be configured.
func (b *builder) check(s start) {
	pulls := []string{b.pullFor(s.ref.Image, s.ref.ImagePullPolicy)}
	for _, vol := range b.v.imageVolumes(s.ref) {
		pulls = append(pulls, b.pullFor(vol.Image.Reference, vol.Image.PullPolicy))
	}
	id := b.add(Step{
		ID: "check-" + s.ref.Name, Kind: CheckContainer, After: after(b.volumes, pulls), OnFailure: SkipContainer,
		Container: s.ref.Name, ContainerType: s.ref.Type, Image: s.ref.Image,
		Reason: model.BeforeStart, Message: strings.TrimSpace("configuration, user and references of " + s.ref.Name),
	})
	b.checks[s.ref.Name] = id
	b.proofs = append(b.proofs, id)
}
