package executor

import (
	"cmp"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/podstatus"
)

// A pod's status and events use the kubelet's messages, because users and tools search for them. podctl's own output
// names the fix.

// kubeletText returns the kubelet's message for a failure.
func kubeletText(err error) string {
	if text := model.KubeletText(err); text != "" {
		return text
	}
	if image := (*images.Error)(nil); errors.As(err, &image) {
		return cri.PullMessage(image.Err)
	}
	return cri.MessageOf(err)
}

// statusText returns the text of a hold for the pod's status and events.
func statusText(h *plan.Hold) string { return cmp.Or(h.Status, h.Message) }

// hookFailure is a failed lifecycle hook.
type hookFailure struct {
	pod     model.PodRef
	ref     podspec.ContainerRef
	handler *v1.LifecycleHandler
	err     error
}

func (e *hookFailure) Error() string { return "postStart hook: " + e.err.Error() }

func (e *hookFailure) Unwrap() error { return e.err }

// KubeletText returns the kubelet's message, without the output of the command, which may contain secrets (kubelet:
// handlerRunner.Run).
func (e *hookFailure) KubeletText() string {
	what := ""
	switch {
	case e.handler.Exec != nil:
		what = fmt.Sprintf("Exec lifecycle hook (%v)", e.handler.Exec.Command)
	case e.handler.HTTPGet != nil:
		what = fmt.Sprintf("HTTP lifecycle hook (%s)", e.handler.HTTPGet.Path)
	case e.handler.Sleep != nil:
		what = fmt.Sprintf("Sleep lifecycle hook (%d)", e.handler.Sleep.Seconds)
	default:
		return "Cannot run handler: " + e.err.Error()
	}
	text := cmp.Or(model.KubeletText(e.err), cri.MessageOf(e.err))
	return fmt.Sprintf("%s for Container %q in Pod %q failed - error: %s", what, e.ref.Name, e.pod.Full(), text)
}

// killMessage explains why a container is stopped. A reason that no kubelet has follows the kubelet's text (kubelet:
// computePodActions, computeInitContainerActions, killContainer).
func killMessage(p *plan.Plan, manifest *v1.Pod, s *plan.Step) string {
	switch s.Reason { //nolint:exhaustive // a kubelet does not have the others
	case model.RestartAllContainers:
		return "killing"
	case model.RestartRequested, model.RemovedFromSpec, model.Superseded:
		return fmt.Sprintf("Stopping container %s: %s", s.Container, s.Message)
	case model.SpecChanged, model.LivenessFailed, model.StartupFailed, model.Resized, model.UnknownState:
		if !p.KillPod {
			return faultMessage(manifest, s)
		}
	}
	return "Stopping container " + s.Container
}

// faultMessage describes the problem of one container of a pod that stays.
func faultMessage(manifest *v1.Pod, s *plan.Step) string {
	kind, init := "Container", s.ContainerType == podspec.Init || s.ContainerType == podspec.Sidecar
	if init {
		kind = "Init container"
	}
	what := "definition changed"
	switch s.Reason { //nolint:exhaustive // see killMessage
	case model.UnknownState:
		return kind + ` is in "unknown" state, try killing it before restart`
	case model.Resized:
		return fmt.Sprintf("Container %s resize requires restart", s.Container)
	case model.LivenessFailed:
		what = "failed liveness probe"
	case model.StartupFailed:
		what = "failed startup probe"
	}
	text := fmt.Sprintf("%s %s %s", kind, s.Container, what)
	if !init && (s.Reason == model.SpecChanged || restartsWhenStopped(manifest, s.Container)) {
		text += ", will be restarted"
	}
	return text
}

// restartsWhenStopped reports whether a container runs again after a stop, at once or after its restart delay.
func restartsWhenStopped(manifest *v1.Pod, name string) bool {
	if manifest == nil {
		return false
	}
	ref, ok := podspec.FindContainer(manifest, name)
	return ok && podstatus.RestartsWhenStopped(manifest, ref.Container)
}
