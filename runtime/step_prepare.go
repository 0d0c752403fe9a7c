package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/image"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/volume"
)

// applyCgroup creates the pod's own cgroup with its limits, or brings the limits
// up to date. A machine without writable cgroups runs pods without it.
func (x *execution) applyCgroup() error {
	pod, node := x.e.layout.Pod(x.desired.Pod.UID), x.e.node()
	name := criconfig.CgroupParent(x.desired.Pod, node)
	if !x.e.cgroups.Exists(name) {
		// A kill before it has all its limits would leave one that looks complete.
		if err := pod.MarkCgroup(); err != nil {
			return because(model.FailedCreatePodContainer, err)
		}
	}
	err := x.e.cgroups.Ensure(name, cgroup.Resources(criconfig.PodCgroup(x.desired.Pod, node)))
	if unavailable := (*cgroup.UnavailableError)(nil); errors.As(err, &unavailable) {
		x.warn("the pod runs without a cgroup of its own: " + err.Error())
		err = nil
	}
	if err == nil {
		err = pod.UnmarkCgroup()
	}
	return because(model.FailedCreatePodContainer, err)
}

func (x *execution) removeCgroup() error {
	var errs []error
	own := ""
	if applied := x.journal.Applied; applied != nil {
		own = criconfig.CgroupParent(applied.Pod, x.e.node())
	}
	for _, name := range criconfig.CgroupParents(x.plan.Pod.UID, x.e.node()) {
		// What was not finished does not exist in full, and goes as well.
		if name == own || x.e.cgroups.Exists(name) {
			errs = append(errs, x.e.cgroups.Remove(name))
		}
	}
	return errors.Join(errs...)
}

func (x *execution) prepareVolume(ctx context.Context, s *plan.Step) error {
	return because(model.FailedMount, volume.Prepare(ctx, x.e.volumeContext(x.desired), s.Volume))
}

func (x *execution) removeVolumes(ctx context.Context, s *plan.Step) error {
	err := volume.RemoveAll(x.e.layout.Pod(x.plan.Pod.UID))
	if err != nil || !x.opts.RemoveVolumes || x.journal.Applied == nil {
		return err
	}
	refused, err := x.removeClaims(ctx)
	if refused != nil {
		x.refuse(s, refused)
	}
	return err
}

// refuse notes what podctl does not do, now or ever: the pass goes on, and the pod that is
// deleted is forgotten all the same.
func (x *execution) refuse(s *plan.Step, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.refused = append(x.refused, StepError{Pod: x.plan.Pod, Step: s, Reason: reasonOf(err, model.Reason(s.Kind)), Err: err})
}

func (x *execution) archiveLogs() error {
	pod, ref := x.e.layout.Pod(x.plan.Pod.UID), x.plan.Pod
	err := pod.SetAsideLogs(ref.Namespace, ref.Name, x.e.now())
	if errors.Is(err, unix.ENOSPC) {
		x.warn(fmt.Sprintf("%v; they are removed", err))
		return pod.RemoveAllLogs(ref.Namespace, ref.Name)
	}
	return err
}

// pullImage pulls one image with the pod's own credentials first, and looks up
// the user it runs as. A pull that is interrupted leaves nothing behind.
func (x *execution) pullImage(ctx context.Context, s *plan.Step) (string, error) {
	config, err := x.sandboxConfig(x.plan.Attempt)
	if err != nil {
		return "", because(model.CreatePodSandboxError, err)
	}
	_, err = x.e.puller.Pull(ctx, x.e.client.Images, image.Request{
		Image: s.Image, Annotations: x.desired.Pod.Annotations, SandboxConfig: config, Secrets: pullSecrets(x.desired),
	})
	if err != nil {
		err = pullReason(err)
		x.noteFailure(s.Container, err)
		return "", err
	}
	info, err := x.e.pulledImage(ctx, s.Image)
	if err != nil {
		return "", because(model.ImageInspectError, err)
	}
	x.mu.Lock()
	x.yield.images[s.Image] = (&snapshot.Image{ID: info.ID, User: info.User}).Observed()
	x.mu.Unlock()
	return info.ID, nil
}

// pullReason carries on the kubelet's name for the failure of a pull.
func pullReason(err error) error {
	if failure := (*image.Error)(nil); errors.As(err, &failure) {
		return because(model.Reason(failure.Reason), err)
	}
	return because(model.ErrImagePull, err)
}

// pullSecrets are the pod's imagePullSecrets that the manifests supply.
func pullSecrets(d *podspec.Desired) []*v1.Secret {
	var secrets []*v1.Secret
	for _, ref := range d.Pod.Spec.ImagePullSecrets {
		if secret := d.Objects.Secrets[ref.Name]; secret != nil {
			secrets = append(secrets, secret)
		}
	}
	return secrets
}

// checkContainer proves that a container can be configured: its references
// resolve, its image is there and its user may run. Nothing is changed.
func (x *execution) checkContainer(_ context.Context, s *plan.Step) error {
	ref, err := x.container(s)
	if err != nil {
		return err
	}
	sandbox, err := x.currentSandbox()
	if err == nil {
		var config *runtimeapi.ContainerConfig
		if config, err = x.containerConfig(ref, s.Attempt, knownOr(sandbox.podIPs, x.desired.Pod), mountsForProof); err == nil {
			err = checkStartable(config)
		}
	}
	if err != nil {
		x.noteFailure(ref.Name, because(model.CreateContainerConfigError, err))
	}
	return because(model.CreateContainerConfigError, err)
}

// checkStartable finds what a runtime would refuse, and only after the container that is
// replaced has been stopped.
func checkStartable(config *runtimeapi.ContainerConfig) error {
	if dir := config.GetWorkingDir(); dir != "" && !filepath.IsAbs(dir) {
		return fmt.Errorf("workingDir %q is not an absolute path", dir)
	}
	for _, m := range config.GetMounts() {
		if err := checkPropagation(m); err != nil {
			return fmt.Errorf("mount at %s: %w", m.GetContainerPath(), err)
		}
	}
	profile := config.GetLinux().GetSecurityContext().GetSeccomp()
	if profile.GetProfileType() != runtimeapi.SecurityProfile_Localhost {
		return nil
	}
	if _, err := os.Stat(profile.GetLocalhostRef()); err != nil {
		return fmt.Errorf("securityContext.seccompProfile: %w", err)
	}
	return nil
}

// checkPropagation looks at a mount whose path is known: a part of a volume is bound when
// its container starts, and shared then.
func checkPropagation(m *runtimeapi.Mount) error {
	mode, asked := map[runtimeapi.MountPropagation]v1.MountPropagationMode{
		runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER: v1.MountPropagationHostToContainer,
		runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL:     v1.MountPropagationBidirectional,
	}[m.GetPropagation()]
	if !asked || !filepath.IsAbs(m.GetHostPath()) {
		return nil
	}
	return volume.CheckPropagation(m.GetHostPath(), mode)
}

// knownOr stands in for addresses that the sandbox will get: a proof must not
// depend on them.
func knownOr(ips []string, pod *v1.Pod) []string {
	if len(ips) > 0 || pod.Spec.HostNetwork {
		return ips
	}
	return []string{"192.0.2.1"}
}

// mountMode says whether a container's mounts are made, or only looked at.
type mountMode int

const (
	mountsForProof mountMode = iota
	mountsForReal
)

// containerConfig is the message a container is created with.
func (x *execution) containerConfig(ref podspec.ContainerRef, attempt uint32, ips []string, mode mountMode) (*runtimeapi.ContainerConfig, error) {
	img, err := x.image(ref.Image)
	if err != nil {
		return nil, err
	}
	in := criconfig.ContainerInput{
		Desired:   x.desired,
		Container: ref,
		Node:      x.e.node(),
		Attempt:   attempt,
		ImageRef:  img.ID,
		Image:     criconfig.ImageUser{UID: img.UID, Username: img.Username},
		PodIPs:    ips,

		VolumeImages: x.volumeImages(),
	}
	if in.Files, err = x.envFiles(ref, mode); err != nil {
		return nil, err
	}
	// A subPathExpr may name a variable from a file.
	if in.Paths, err = x.containerPaths(&in, mode); err != nil {
		return nil, err
	}
	if in.TargetID, err = x.targetID(ref, mode); err != nil {
		return nil, err
	}
	return criconfig.Container(in)
}

// image is what is known now of an image: from the observation, or from this
// plan's own pull.
func (x *execution) image(name string) (model.Image, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	img := x.yield.images[name]
	if img.ID == "" {
		return img, fmt.Errorf("image %s is not present; pull it, or apply with --pull missing", name)
	}
	return img, nil
}

// volumeImages are the ids of the images that are mounted as volumes.
func (x *execution) volumeImages() map[string]string {
	x.mu.Lock()
	defer x.mu.Unlock()
	ids := map[string]string{}
	for i := range x.desired.Pod.Spec.Volumes {
		if source := x.desired.Pod.Spec.Volumes[i].Image; source != nil {
			ids[source.Reference] = x.yield.images[source.Reference].ID
		}
	}
	return ids
}

// targetID is the container whose processes an ephemeral container sees: one
// that was started in this pass, or that ran before. For a proof it is enough
// that this pass will start it.
func (x *execution) targetID(ref podspec.ContainerRef, mode mountMode) (string, error) {
	if ref.Target == "" {
		return "", nil
	}
	x.mu.Lock()
	id := x.yield.started[ref.Target]
	x.mu.Unlock()
	starts := slices.ContainsFunc(x.plan.Steps, func(s plan.Step) bool {
		return s.Kind == plan.StartContainer && s.Container == ref.Target
	})
	if id != "" || (starts && mode == mountsForProof) {
		return id, nil
	}
	for _, c := range x.snapshot.Containers {
		if c.Status.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING && c.Status.GetLabels()[criconfig.LabelContainerName] == ref.Target {
			return c.Status.GetId(), nil
		}
	}
	return "", fmt.Errorf("container %s, whose processes it joins, does not run", ref.Target)
}
