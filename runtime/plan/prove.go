package plan

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// proof has the steps that check whether the rest of the plan can succeed. They run before any container is stopped for
// a new sandbox.
type proof struct {
	// volumes are the steps that prepare volumes.
	volumes []string
	// all are these steps, the allocations of devices, the pulls and the checks.
	all []string
	// checks has the step that checks the configuration, by container.
	checks map[string]string
}

// prover lays out the steps that can fail.
type prover struct {
	*layout
	proof
	// devices are the steps that allocate devices.
	devices []string
	// pulls maps an image to the step that pulls it.
	pulls map[string]string
}

// prove adds the steps that check whether the rest of the plan can succeed.
func (l *layout) prove() *proof {
	devices := l.allocateDevices()
	if exists := l.Observed.CgroupExists; l.createSandbox && exists != nil && !*exists {
		l.steps.add(Step{
			ID: "create-cgroup", Kind: CreateCgroup, OnFailure: Abort, Needs: after(devices),
			Reason: model.CgroupMissing, Message: "the pod has no cgroup yet",
		})
	}
	p := &prover{
		layout: l, proof: proof{all: devices, checks: map[string]string{}},
		devices: devices, pulls: map[string]string{},
	}
	p.prepareVolumes()
	p.all = append(p.all, p.volumes...)
	for _, ref := range l.proven {
		p.pull(ref)
	}
	for _, ref := range l.proven {
		p.check(ref)
	}
	return &p.proof
}

// prepareVolumes prepares the volumes before any container starts. It also updates changed content if none starts.
func (p *prover) prepareVolumes() {
	// Files on the host come last: another volume may create the directory of such a file, as in the example of the
	// Kubernetes documentation.
	volumes := slices.Clone(podspec.UsedVolumes(p.Manifest))
	slices.SortStableFunc(volumes, func(a, b *v1.Volume) int { return order(isFile(a), isFile(b)) })
	var dirs []string
	for _, vol := range volumes {
		state, known := p.Observed.Volumes[vol.Name]
		switch {
		case p.terminal && p.Desired.FromCluster():
			// They are removed.
		case known && state.Prepared && state.Digest != state.Wanted:
			p.volumes = append(p.volumes, p.steps.add(Step{
				ID: "update-volume/" + vol.Name, Kind: UpdateVolume, Volume: vol.Name, OnFailure: Abort,
				Needs: after(p.devices), Reason: model.ContentChanged, Message: "its content changed",
			}))
		case known && state.Prepared, len(p.proven) == 0:
		default:
			id := p.prepareVolume(vol, dirs)
			if podspec.HostPathType(vol.HostPath) == v1.HostPathDirectoryOrCreate {
				dirs = append(dirs, id)
			}
		}
	}
}

// prepareVolume prepares a volume. A file comes after the directories it may be in.
func (p *prover) prepareVolume(vol *v1.Volume, dirs []string) string {
	step := Step{
		ID: "prepare-volume/" + vol.Name, Kind: PrepareVolume, Volume: vol.Name, OnFailure: Abort,
		Needs: after(p.devices), Reason: model.VolumeMissing, Message: "not prepared yet",
	}
	if isFile(vol) {
		step.Needs = after(p.devices, dirs)
	}
	p.volumes = append(p.volumes, p.steps.add(step))
	return step.ID
}

// isFile reports whether a volume is a file that podctl creates on the host.
func isFile(vol *v1.Volume) bool {
	return podspec.HostPathType(vol.HostPath) == v1.HostPathFileOrCreate
}

// pull adds the pulls that a container needs: its own image and those it mounts.
func (p *prover) pull(ref podspec.ContainerRef) {
	for _, image := range p.opts.images(p.Manifest, ref) {
		reason, message := p.pullReason(image)
		if reason == "" || p.pulls[image.name] != "" {
			continue
		}
		id := "pull-" + ref.Name
		if image.volume != "" {
			id = "pull-volume/" + image.volume
		}
		p.pulls[image.name] = p.steps.add(Step{
			ID:            id,
			Kind:          PullImage,
			Image:         image.name,
			Container:     ref.Name,
			ContainerType: ref.Type,
			Needs:         after(p.devices),
			OnFailure:     SkipContainer,
			Reason:        reason,
			Message:       message,
		})
		p.all = append(p.all, p.pulls[image.name])
	}
}

// pullReason returns why an image is pulled; empty if it is not.
func (p *prover) pullReason(image neededImage) (reason model.Reason, message string) {
	state, known := p.Observed.Images[image.name]
	switch {
	case image.policy == v1.PullAlways:
		return model.PullAlways, "the pull policy is Always"
	case image.policy == v1.PullNever || !known || !lacks(state):
		return "", ""
	case state.ID == "":
		return model.ImageAbsent, "absent"
	}
	return model.ImageUnverified, "present, but the registry must accept the credentials of this pod"
}

// check adds the check of a container's configuration. If the pod can use an image and this container's pull policy
// accepts it, the check does not wait for another container's pull of it.
func (p *prover) check(ref podspec.ContainerRef) {
	var pulls []string
	for _, image := range p.opts.images(p.Manifest, ref) {
		if reason, _ := p.pullReason(image); reason != "" {
			pulls = append(pulls, p.pulls[image.name])
		}
	}
	id := p.steps.add(Step{
		ID: "check-" + ref.Name, Kind: CheckContainer, OnFailure: SkipContainer,
		Needs:     after(p.devices, p.volumes, pulls),
		Container: ref.Name, ContainerType: ref.Type, Image: ref.Image,
		Reason: model.BeforeStart, Message: "configuration, user and references of " + ref.Name,
	})
	p.checks[ref.Name] = id
	p.all = append(p.all, id)
}

// allocateDevices adds the steps that allocate devices: for all containers of the pod, one after the other, before
// anything else is prepared (kubelet: admitPolicyNone). Containers that start in later passes then find theirs.
func (l *layout) allocateDevices() (ids []string) {
	if len(l.proven) == 0 && !l.createSandbox || l.terminal {
		return nil
	}
	for _, ref := range podspec.Containers(l.Manifest) {
		sets := l.Observed.Devices.Unallocated(ref.Name)
		if _, held := l.Observed.Faults[ref.Name]; held || len(sets) == 0 {
			continue
		}
		ids = append(ids, l.steps.add(Step{
			ID: "allocate-" + ref.Name, Kind: AllocateDevices, Needs: after(ids), OnFailure: l.allocationFailure(),
			Container: ref.Name, ContainerType: ref.Type, Devices: sets,
			Reason: model.DevicesNeeded, Message: ref.Name + " has no devices yet",
		}))
	}
	return ids
}

// allocationFailure follows the kubelet for a new pod of the API server. Any other pod tries again.
func (l *layout) allocationFailure() OnFailure {
	if l.Desired.FromCluster() && len(l.Sandboxes) == 0 && len(l.Containers) == 0 {
		return Reject
	}
	return Abort
}
