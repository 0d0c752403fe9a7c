package observe

import (
	"errors"
	"io/fs"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
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

// examiner finds the errors with which the steps of a pass would fail, before anything of the pod is created.
type examiner struct {
	*proof.Prover
	snapshot *snapshot.Pod
	redactor *redaction.Redactor
	faults   map[string]model.Fault
}

// examine is called after everything else has been observed.
func examine(
	s *snapshot.Pod, volumes volume.Context, found []volume.State, redactor *redaction.Redactor,
) *snapshot.Faults {
	in, err := proof.Resolve(volumes, *s.Node)
	in.Images = map[string]model.Image{}
	for _, name := range podspec.ImageNames(volumes.Desired.Pod) {
		// Any image with a permitted user will do: the user of the present image is checked separately.
		in.Images[name] = model.Image{ID: "?", UID: ptr.To[int64](1)}
	}
	prover := &proof.Prover{
		ContainerInput: in,
		Volumes:        volumes,
		Runtime:        s.Runtime.Name,
		Unfinished:     map[string]bool{},
	}
	e := &examiner{Prover: prover, snapshot: s, redactor: redactor, faults: map[string]model.Fault{}}
	if err == nil {
		var config *runtimeapi.PodSandboxConfig
		if config, err = criconfig.Sandbox(in.Desired, in.Node, in.Paths, 0); err == nil {
			err = e.Sandbox(config)
		}
	}
	e.note("", model.Fault{Reason: model.CreatePodSandboxError}, err)
	for _, v := range found {
		if v.Fault != nil {
			e.noteVolume(v.Fault)
			return &snapshot.Faults{Desired: volumes.Desired.Digest(), Found: e.faults}
		}
		e.Unfinished[v.Name] = v.Unfinished
	}
	for _, ref := range podspec.Containers(volumes.Desired.Pod) {
		e.container(ref)
	}
	return &snapshot.Faults{Desired: volumes.Desired.Digest(), Found: e.faults}
}

// note records the result of a check. Files that podctl may not read are unknown and no fault.
func (e *examiner) note(name string, fault model.Fault, err error) {
	if err == nil || errors.Is(err, fs.ErrPermission) {
		return
	}
	fault.Reason, fault.Message = model.ReasonOf(err, fault.Reason), e.redactor.Text(err.Error())
	fault.Status = e.redactor.Text(model.KubeletText(err))
	e.faults[name] = fault
}

// noteVolume records that a volume cannot be prepared. Without its volumes the pod gets no sandbox and no container
// (kubelet: SyncPod, WaitForAttachAndMount).
func (e *examiner) noteVolume(err error) {
	fault := model.Fault{Reason: model.FailedMount, Volume: true}
	e.note("", fault, err)
	for _, ref := range podspec.Containers(e.Desired.Pod) {
		e.note(ref.Name, fault, err)
	}
}

// container checks one container. A fault that depends on the user of the present image does not apply to an image that
// is pulled.
func (e *examiner) container(ref podspec.ContainerRef) {
	if _, err := images.WithTag(ref.Image); err != nil {
		e.note(ref.Name, model.Fault{Reason: model.InvalidImageName}, err)
		return
	}
	fault := model.Fault{Reason: model.CreateContainerConfigError}
	err := e.Container(ref, 0, nil)
	if image, present := e.snapshot.Image(ref.Image); err == nil && present {
		fault.ImageUser = true
		err = criconfig.CheckUser(e.Desired.Pod, ref, image)
	}
	e.note(ref.Name, fault, err)
}
