package proof

import (
	"errors"
	"io/fs"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/model"
)

// Faults returns the errors with which the steps of a pass would fail, before anything of the pod is created. They are
// by container, and that of the sandbox has the empty name.
func Faults(f Facts, redactor *redaction.Redactor) map[string]model.Fault {
	pod, found := f.Volumes.Desired.Pod, &faults{redactor: redactor, byName: map[string]model.Fault{}}
	for i := range f.States {
		if err := f.States[i].Fault; err != nil {
			found.noteVolume(pod, err)
			return found.byName
		}
	}
	present := f.Images
	f.Images = map[string]model.Image{}
	for name := range present {
		// A permitted user, because that of a present image is checked separately.
		f.Images[name] = model.Image{ID: "?", UID: ptr.To[int64](1)}
	}
	p, err := New(f)
	if err == nil {
		err = p.sandboxFault()
	}
	found.note("", model.Fault{Reason: model.CreatePodSandboxError}, err)
	for _, ref := range podspec.Containers(pod) {
		fault, err := p.containerFault(ref, present[ref.Image])
		found.note(ref.Name, fault, err)
	}
	return found.byName
}

type faults struct {
	redactor *redaction.Redactor
	byName   map[string]model.Fault
}

// note records the result of a check. Files that podctl may not read are unknown and no fault.
func (f *faults) note(name string, fault model.Fault, err error) {
	if err == nil || errors.Is(err, fs.ErrPermission) {
		return
	}
	fault.Reason, fault.Message = model.ReasonOf(err, fault.Reason), f.redactor.Text(err.Error())
	fault.Status = f.redactor.Text(model.KubeletText(err))
	f.byName[name] = fault
}

// noteVolume records that a volume cannot be prepared. Without its volumes the pod gets no sandbox and no container
// (kubelet: SyncPod, WaitForAttachAndMount).
func (f *faults) noteVolume(pod *v1.Pod, err error) {
	f.note("", model.Fault{Reason: model.FailedMount, Volume: true}, err)
	for _, ref := range podspec.Containers(pod) {
		f.byName[ref.Name] = f.byName[""]
	}
}

func (p *Prover) sandboxFault() error {
	config, err := criconfig.Sandbox(p.Desired, p.Node, p.Paths, 0)
	if err != nil {
		return err
	}
	return p.Sandbox(config)
}

// containerFault checks one container. A fault that depends on the user of the present image does not apply to an image
// that is pulled.
func (p *Prover) containerFault(ref podspec.ContainerRef, present model.Image) (model.Fault, error) {
	if _, err := images.WithTag(ref.Image); err != nil {
		return model.Fault{Reason: model.InvalidImageName}, err
	}
	fault := model.Fault{Reason: model.CreateContainerConfigError}
	if err := p.Container(ref, 0, nil); err != nil || present.ID == "" {
		return fault, err
	}
	fault.ImageUser = true
	return fault, criconfig.CheckUser(p.Desired.Pod, ref, present)
}
