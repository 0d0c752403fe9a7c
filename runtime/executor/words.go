package executor

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// What a pod's status and events say is in the kubelet's words: users and tools search for them.
// What podctl itself prints says what to do.

// kubeletText is a failure as a kubelet tells it.
func kubeletText(err error) string {
	image, hook := (*images.Error)(nil), (*hookFailure)(nil)
	switch {
	case errors.As(err, &hook):
		return hook.text()
	case errors.As(err, &image) && image.Invalid:
		return image.Error()
	case errors.As(err, &image):
		return cri.Raw(image.Err)
	}
	return cri.Said(err)
}

// hookFailure is a lifecycle hook that failed.
type hookFailure struct {
	pod     model.PodRef
	ref     podspec.ContainerRef
	handler *v1.LifecycleHandler
	err     error
}

func (e *hookFailure) Error() string { return "postStart hook: " + e.err.Error() }

func (e *hookFailure) Unwrap() error { return e.err }

// text is what a kubelet says of it, without the output of the command, which may hold secrets
// (kubelet: handlerRunner.Run).
func (e *hookFailure) text() string {
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
	return fmt.Sprintf("%s for Container %q in Pod %q failed - error: %s", what, e.ref.Name, e.pod.Full(), cri.Said(e.err))
}

// killMessage says why a container is stopped. A reason that no kubelet has is told after the
// kubelet's words (kubelet: computePodActions).
func killMessage(p *plan.Plan, s *plan.Step) string {
	text := ""
	switch s.Reason { //nolint:exhaustive // the others are no reasons of a kubelet's
	case model.SpecChanged:
		text = "definition changed"
	case model.LivenessFailed:
		text = "failed liveness probe"
	case model.StartupFailed:
		text = "failed startup probe"
	case model.Resized:
		return fmt.Sprintf("Container %s resize requires restart", s.Container)
	case model.UnknownState:
		if s.ContainerType == podspec.Init || s.ContainerType == podspec.Sidecar {
			return `Init container is in "unknown" state, try killing it before restart`
		}
		return `Container is in "unknown" state, try killing it before restart`
	case model.RestartRequested, model.RemovedFromSpec, model.Superseded:
		return fmt.Sprintf("Stopping container %s: %s", s.Container, s.Message)
	default:
		return "Stopping container " + s.Container
	}
	text = fmt.Sprintf("Container %s %s", s.Container, text)
	if _, again := p.PendingRestarts()[s.Container]; again {
		text += ", will be restarted"
	}
	return text
}
