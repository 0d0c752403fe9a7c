package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/podstatus"
)

// How long after a pass a caller should check whether a hold has ended. The network of a booting node is checked as
// often as a kubelet does (backOffOnTransientErrorPeriod). Other holds usually end with an event: a stored object, a
// path.
const (
	recheckNetwork = time.Second
	recheckRest    = 10 * time.Second
)

// restrainer finds the actions that cannot be done now.
type restrainer struct {
	*podstatus.Pod
	opts *Options
	choice
	// blocked are containers that cannot start because something that the manifest needs is missing.
	blocked map[string]bool
}

// restrain drops the actions of a choice that cannot be done now. A running container stays if its replacement cannot
// start. A running pod stays if its sandbox, or a container in it, cannot be recreated.
func restrain(pod *podstatus.Pod, opts *Options, c choice) *decision {
	r := &restrainer{Pod: pod, opts: opts, choice: c, blocked: map[string]bool{}}
	d := &decision{choice: c}
	d.starts, d.holds = r.holdStarts()
	d.kills, d.keeps = r.keepBlocked()
	d.keepsOld = len(d.keeps) > len(r.keeps)
	var holds []Hold
	holds, d.held = r.holdPod(d.starts)
	d.holds = slices.Concat(d.holds, holds, c.holds)
	d.proven = r.proven(d.starts)
	return d
}

// holdStarts divides starts into those of this pass and those that are held: a container in CrashLoopBackOff, and one
// whose references or image are missing.
func (r *restrainer) holdStarts() (starts []start, holds []Hold) {
	for _, s := range slices.Concat(r.inits, r.regulars, r.ephemerals) {
		if hold := r.missing(s.ref); hold != nil {
			r.blocked[s.ref.Name] = true
			holds = append(holds, *hold)
			continue
		}
		if hold := r.delayed(s); hold != nil {
			holds = append(holds, *hold)
			continue
		}
		if hold := r.pullDelayed(s.ref); hold != nil {
			r.blocked[s.ref.Name] = true
			holds = append(holds, *hold)
			continue
		}
		if hold := r.targetless(s.ref, starts); hold != nil {
			holds = append(holds, *hold)
			continue
		}
		starts = append(starts, s)
	}
	return starts, holds
}

// targetless holds a debug container while the container whose processes it joins has never run and does not start in
// this pass. A kubelet tries and fails (kubelet: getTargetID).
func (r *restrainer) targetless(ref podspec.ContainerRef, starts []start) *Hold {
	target := ref.Target
	if target == "" || slices.ContainsFunc(starts, func(s start) bool { return s.ref.Name == target }) {
		return nil
	}
	if r.Newest(target) != nil {
		return nil
	}
	return &Hold{
		Container: ref.Name, Reason: model.CreateContainerConfigError,
		Message: fmt.Sprintf("container %s, whose processes it joins, has not started yet", target),
	}
}

// keepBlocked keeps running containers whose replacement cannot start.
func (r *restrainer) keepBlocked() (kills []kill, keeps []Keep) {
	keeps = slices.Clone(r.keeps)
	for _, k := range r.kills {
		if !r.killPod && r.blocked[k.ref.Name] && k.container.State == model.Running {
			keeps = append(keeps, keepOf(r.Pod, k.ref, k.container))
		} else {
			kills = append(kills, k)
		}
	}
	return kills, keeps
}

// missing returns a hold for a prerequisite that no pass can provide: an object that the manifests do not contain, or
// an image that may not be pulled.
func (r *restrainer) missing(ref podspec.ContainerRef) *Hold {
	h := &Hold{
		Container:   ref.Name,
		Reason:      model.CreateContainerConfigError,
		Blocking:    true,
		Unstartable: true,
		Recheck:     recheckRest,
	}
	for _, missing := range r.Desired.Unresolved() {
		if missing.Container == ref.Name {
			h.Message, h.Status, h.MissingObject = missing.Detail, missing.Status, true
			return h
		}
		if r.lacksContent(missing) && (!r.createSandbox || !r.Desired.FromCluster()) {
			h.Reason, h.Message, h.Status = model.FailedMount, missing.Detail, missing.Status
			h.Unstartable, h.MissingObject = false, true
			return h
		}
	}
	if image, of := r.neverPulled(ref); image != "" {
		h.Reason, h.Message, h.Status = model.ErrImageNeverPull, notPulled(image, of), notPulled(image, "")
		return h
	}
	if h.Message = r.imageVolumeFault(ref); h.Message != "" {
		h.Reason = model.CreateContainerError
		return h
	}
	if fault, known := r.fault(ref); known {
		h.Reason, h.Message, h.Status, h.Unstartable = fault.Reason, fault.Message, fault.Status, !fault.Volume
		return h
	}
	return nil
}

// lacksContent reports whether no container can start because a volume has no content for a missing object. Once a
// volume of a pod of the API server was prepared, its containers start with the content that it has, as with a kubelet
// (kubelet: getUnmountedVolumes).
func (r *restrainer) lacksContent(missing podspec.MissingReference) bool {
	if missing.Volume == "" || missing.Container != "" {
		return false
	}
	return !r.Desired.FromCluster() || !r.Observed.Volumes[missing.Volume].Prepared
}

// fault returns the reason why a step of this pass, or the runtime, would reject a container.
func (r *restrainer) fault(ref podspec.ContainerRef) (model.Fault, bool) {
	fault, known := r.Observed.Faults[ref.Name]
	pulled := r.opts.pullPolicy(ref.ImagePullPolicy) == v1.PullAlways
	reported := fault.Volume && r.createSandbox // holdSandbox reports it for the whole pod.
	return fault, known && !reported && (!fault.ImageUser || !pulled)
}

// imageVolumeFault returns a message if the runtime cannot mount images as volumes. containerd can since 2.1.
func (r *restrainer) imageVolumeFault(ref podspec.ContainerRef) string {
	runtime := r.Observed.Runtime
	if runtime.Name != "containerd" || !olderThan(runtime.Version, 2, 1) {
		return ""
	}
	if mounted := imageVolumes(r.Manifest, ref); len(mounted) > 0 {
		return fmt.Sprintf("volume %s is an image volume, which containerd %s cannot mount (2.1 and newer can)",
			mounted[0].Name, runtime.Version)
	}
	return ""
}

// olderThan compares the first two numbers of a version. It returns false for a version that cannot be parsed.
func olderThan(text string, major, minor uint) bool {
	parsed, err := version.ParseGeneric(text)
	return err == nil && parsed.LessThan(version.MajorMinor(major, minor))
}

// notPulled returns the kubelet's message, with the volume that an image is for.
func notPulled(image, of string) string {
	return fmt.Sprintf("Container image %q%s is not present with pull policy of Never", image, of)
}

// neverPulled returns an image that the pod cannot use and that may not be pulled: the container's own, or one that it
// mounts. It returns an empty name if there is none. The message does not disclose an image of other pods.
func (r *restrainer) neverPulled(ref podspec.ContainerRef) (image, of string) {
	for _, image := range r.opts.images(r.Manifest, ref) {
		state, known := r.Observed.Images[image.name]
		if !known || !lacks(state) || image.policy != v1.PullNever {
			continue
		}
		if image.volume != "" {
			of = " of volume " + image.volume
		}
		return image.name, of
	}
	return "", ""
}

// lacks reports whether a pod cannot use an image without pulling it: the runtime does not have it, or only because of
// other pods' credentials (kubelet: MustAttemptImagePull).
func lacks(image model.Image) bool { return image.ID == "" || image.Unverified }

// neededImage is an image that a container needs, with its effective pull policy: the container's own image, or that of
// a volume that it mounts.
type neededImage struct {
	name   string
	policy v1.PullPolicy
	// volume is empty for the container's own image.
	volume string
}

// images returns the images that a container needs.
func (o *Options) images(pod *v1.Pod, ref podspec.ContainerRef) []neededImage {
	images := []neededImage{{name: ref.Image, policy: o.pullPolicy(ref.ImagePullPolicy)}}
	for _, vol := range imageVolumes(pod, ref) {
		images = append(images, neededImage{vol.Image.Reference, o.pullPolicy(vol.Image.PullPolicy), vol.Name})
	}
	return images
}

// imageVolumes returns the image volumes that a container mounts.
func imageVolumes(pod *v1.Pod, ref podspec.ContainerRef) []*v1.Volume {
	var volumes []*v1.Volume
	for i := range pod.Spec.Volumes {
		vol := &pod.Spec.Volumes[i]
		mounted := slices.ContainsFunc(ref.VolumeMounts, func(m v1.VolumeMount) bool { return m.Name == vol.Name })
		if vol.Image != nil && mounted {
			volumes = append(volumes, vol)
		}
	}
	return volumes
}

// delayed returns the CrashLoopBackOff that holds a start; nil if there is none.
func (r *restrainer) delayed(s start) *Hold {
	delay, held := r.Delay(s.ref)
	if !held || s.fresh || r.opts.restarts(s.ref.Name) {
		return nil
	}
	return &Hold{
		Container: s.ref.Name,
		Reason:    model.CrashLoopBackOff,
		Until:     &delay.Until,
		Estimated: delay.Estimated,
		Delay:     &delay,
		Message:   "back-off " + delay.String(),
	}
}

// pullDelayed returns the ImagePullBackOff that holds a start; nil if there is none. The back-off ends early if the
// pod can use the image, or if the manifest no longer names it.
func (r *restrainer) pullDelayed(ref podspec.ContainerRef) *Hold {
	if !r.opts.PullBackoff || len(r.Observed.Memory.StartErrors) == 0 {
		return nil
	}
	for _, image := range r.opts.images(r.Manifest, ref) {
		if !lacks(r.Observed.Images[image.name]) && image.policy != v1.PullAlways {
			continue
		}
		failure := model.PullFailure(r.Observed.Memory.StartErrors, image.name, r.Desired.PullDigest())
		if failure.Holds(r.Now) {
			return &Hold{
				Container: ref.Name, Reason: model.ImagePullBackOff, Until: &failure.Until,
				Message: fmt.Sprintf("Back-off pulling image %q", image.name),
			}
		}
	}
	return nil
}

// holdPod reports whether the whole pod is held, and why.
func (r *restrainer) holdPod(starts []start) (holds []Hold, held bool) {
	holds = r.holdSandbox()
	if len(holds) == 0 {
		holds = r.holdNetwork(starts)
	}
	if len(holds) > 0 {
		return holds, true
	}
	return r.holdRecreation()
}

// holdSandbox holds the whole pod while its sandbox cannot be created: the runtime does not have the handler, or a port
// of the node is in use.
func (r *restrainer) holdSandbox() []Hold {
	if !r.createSandbox {
		return nil
	}
	var holds []Hold
	if text := r.handlerFault(); text != "" {
		holds = append(holds, Hold{Reason: model.CreatePodSandboxError, Message: text})
	}
	if fault, known := r.Observed.Faults[""]; known {
		holds = append(holds, Hold{Reason: fault.Reason, Message: fault.Message, Status: fault.Status})
	}
	if r.Desired.FromCluster() {
		holds = append(holds, r.missingContent()...)
	}
	for _, port := range podspec.HostPorts(r.Manifest) {
		if owner, taken := r.Observed.Ports[port.String()]; taken {
			message := fmt.Sprintf("%s: hostPort %s is used by %s", port.Path, port, owner)
			holds = append(holds, Hold{Reason: model.HostPortConflict, Message: message})
		}
	}
	for i := range holds {
		holds[i].Blocking, holds[i].Recheck = true, recheckRest
	}
	return holds
}

// missingContent holds a pod of the API server while objects of its volumes are missing. Like a kubelet, podctl creates
// no sandbox before it has prepared all volumes (kubelet: SyncPod, WaitForAttachAndMount).
func (r *restrainer) missingContent() (holds []Hold) {
	for _, missing := range r.Desired.Unresolved() {
		if r.lacksContent(missing) {
			holds = append(holds, Hold{
				Reason: model.FailedMount, Message: missing.Detail, Status: missing.Status, MissingObject: true,
			})
		}
	}
	return holds
}

// handlerFault returns a message if the runtime does not have the handler that the pod asks for.
func (r *restrainer) handlerFault() string {
	name, has := r.Observed.Runtime.Handler, r.Observed.Runtime.Handlers
	if name == "" || has == nil || slices.Contains(has, name) {
		return ""
	}
	named := slices.DeleteFunc(slices.Clone(has), func(h string) bool { return h == "" })
	return fmt.Sprintf("spec.runtimeClassName: the runtime has no handler %q; it has %s",
		name, cmp.Or(strings.Join(named, ", "), "only its default one, which needs no runtimeClassName"))
}

// holdNetwork holds the whole pod while the runtime reports that its network is not ready, unless the pod does not use
// it (kubelet: SyncPod, step 2).
func (r *restrainer) holdNetwork(starts []start) []Hold {
	ready, needed := r.Observed.Runtime.NetworkReady, r.createSandbox || len(starts) > 0
	if ptr.Deref(ready, true) || r.Manifest.Spec.HostNetwork || !needed {
		return nil
	}
	message := cmp.Or(r.Observed.Runtime.NetworkMessage, "the runtime's network is not ready")
	return []Hold{{Reason: model.NetworkNotReady, Message: message, Recheck: recheckNetwork}}
}

// holdRecreation leaves a running pod as it is if its sandbox should be replaced but some container could not be
// started again.
func (r *restrainer) holdRecreation() (holds []Hold, held bool) {
	if !r.createSandbox || !r.AnyRunning() {
		return nil, false
	}
	for _, ref := range r.eventually() {
		if r.blocked[ref.Name] {
			held = true
		} else if hold := r.missing(ref); hold != nil {
			holds, held = append(holds, *hold), true
		}
	}
	return holds, held
}

// eventually returns the containers that a new sandbox starts, in this pass and in later ones. All init containers run
// again.
func (r *restrainer) eventually() []podspec.ContainerRef {
	return slices.DeleteFunc(podstatus.Lasting(r.Manifest), func(ref podspec.ContainerRef) bool {
		return ref.Type == podspec.Regular && r.SucceededForGood(ref)
	})
}

func (r *restrainer) proven(starts []start) []podspec.ContainerRef {
	if r.createSandbox && r.AnyRunning() {
		return r.eventually()
	}
	var refs []podspec.ContainerRef
	for _, s := range starts {
		refs = append(refs, s.ref)
	}
	return refs
}
