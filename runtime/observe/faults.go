package observe

import (
	"errors"
	"io/fs"

	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/proof"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/volume"
)

// examiner finds what is known against a pod before anything of it is made: what the steps of a
// pass would fail with.
type examiner struct {
	desired  *podspec.Desired
	snapshot *snapshot.Pod
	prover   *proof.Prover
	redactor *redaction.Redactor
	faults   map[string]model.Fault
}

// examine is called when all else has been observed.
func (o *Observer) examine(s *snapshot.Pod, desired *podspec.Desired, redactor *redaction.Redactor) *snapshot.Faults {
	volumes := o.volumeContext(desired)
	source := observedSource{proof.Disk{Volumes: volumes, Unfinished: unfinished(s, volumes)}}
	e := &examiner{
		desired: desired, snapshot: s, redactor: redactor, faults: map[string]model.Fault{},
		prover: &proof.Prover{
			Builder: criconfig.Builder{Desired: desired, Node: *s.Node, Source: source}, Runtime: s.Runtime.Name, Unfinished: source.Unfinished,
		},
	}
	e.note("", model.Fault{Reason: model.CreatePodSandboxError}, e.sandbox(o, source))
	if bad := e.volumes(volumes); bad != nil {
		e.noteVolume(bad)
	} else {
		for _, ref := range podspec.Containers(desired.Pod) {
			e.container(ref)
		}
	}
	return &snapshot.Faults{Desired: desired.Digest(), Found: e.faults}
}

// note keeps what a proof found. What podctl may not see is not known.
func (e *examiner) note(name string, fault model.Fault, err error) {
	if err == nil || errors.Is(err, fs.ErrPermission) {
		return
	}
	fault.Reason, fault.Message = proof.ReasonOf(err, fault.Reason), e.redactor.Text(err.Error())
	fault.Status = e.redactor.Text(model.KubeletText(err))
	e.faults[name] = fault
}

// noteVolume keeps that a volume cannot be made ready. The pod gets no sandbox without its volumes,
// and no container (kubelet: SyncPod, WaitForAttachAndMount).
func (e *examiner) noteVolume(err error) {
	fault := model.Fault{Reason: model.FailedMount, Volume: true}
	e.note("", fault, err)
	for _, ref := range podspec.Containers(e.desired.Pod) {
		e.note(ref.Name, fault, err)
	}
}

func (e *examiner) sandbox(o *Observer, source observedSource) error {
	users, err := source.Users()
	if err != nil {
		return err
	}
	logs, err := o.layout.Pod(e.desired.Pod.UID).Logs(e.desired.Pod.Namespace, e.desired.Pod.Name).Dir()
	if err != nil {
		return err
	}
	config, err := criconfig.Sandbox(e.desired, e.prover.Node, criconfig.Paths{LogDir: logs, UserNS: users}, 0)
	if err != nil {
		return err
	}
	return e.prover.Sandbox(config)
}

// volumes is why the first volume that cannot be made ready cannot.
func (e *examiner) volumes(c volume.Context) error {
	for _, vol := range podspec.UsedVolumes(e.desired.Pod) {
		if err := volume.Fault(c, vol.Name); err != nil {
			return err
		}
	}
	return nil
}

// container looks at one container. What depends on the user of the image that is there does not
// hold for one that is pulled.
func (e *examiner) container(ref podspec.ContainerRef) {
	if _, err := images.WithTag(ref.Image); err != nil {
		e.note(ref.Name, model.Fault{Reason: model.InvalidImageName}, err)
		return
	}
	fault := model.Fault{Reason: model.CreateContainerConfigError}
	err := e.prover.Container(ref, 0, nil)
	if image, present := e.snapshot.Image(ref.Image); err == nil && present {
		fault.ImageUser = true
		err = criconfig.CheckUser(e.desired.Pod, ref, criconfig.ImageUser{UID: image.UID, Username: image.Username})
	}
	e.note(ref.Name, fault, err)
}

// unfinished are the volumes whose content the next pass will write.
func unfinished(s *snapshot.Pod, c volume.Context) map[string]bool {
	names := map[string]bool{}
	for _, vol := range podspec.UsedVolumes(c.Desired.Pod) {
		if !volume.HasContent(vol) {
			continue
		}
		wanted, err := volume.Wanted(c, vol.Name)
		names[vol.Name] = err != nil || s.Volumes[vol.Name].Digest != wanted
	}
	return names
}

// observedSource is the criconfig.Source of an observation: what is not there yet will be.
type observedSource struct{ proof.Disk }

// notYet stands for the id of something that is not there yet.
const notYet = "?"

// Image is any image with a user that may run: the user of the image that is there is checked beside that.
func (observedSource) Image(string) (string, criconfig.ImageUser, error) {
	return notYet, criconfig.ImageUser{UID: ptr.To[int64](1)}, nil
}

// VolumeImage is pulled if it is not there.
func (observedSource) VolumeImage(string) string { return notYet }

// Target is started before those that join its processes.
func (observedSource) Target(string) (string, error) { return "", nil }
