package plan

import (
	"fmt"

	"github.com/podctl/podctl/runtime/model"
)

// judgeSandbox decides whether the pod needs a new sandbox, and with which
// attempt (kubelet: PodSandboxChanged). To the kubelet's rules podctl adds one:
// a sandbox whose configuration no longer is what the manifest asks for is
// replaced.
func judgeSandbox(v *view, d *decision) {
	if len(v.sandboxes) == 0 {
		d.replaceSandbox(model.SandboxMissing, "no sandbox yet")
		d.attempt = v.sandboxAttempt(0)
		return
	}
	latest := &v.sandboxes[0]
	d.sandboxID, d.attempt = latest.ID, latest.Attempt
	if reason, message := v.sandboxFault(latest); reason != "" {
		d.replaceSandbox(reason, message)
		d.attempt = v.sandboxAttempt(latest.Attempt + 1)
	}
	if d.reason == model.NetworkModeChanged {
		d.sandboxID = ""
	}
	if d.reason == model.SandboxConfigChanged {
		d.diff = v.sandboxChanges(latest)
	}
}

func (d *decision) replaceSandbox(reason model.Reason, message string) {
	d.killPod, d.createSandbox = true, true
	d.reason, d.message = reason, message
}

// sandboxFault returns why the latest sandbox cannot stay, or nothing.
func (v *view) sandboxFault(latest *model.Sandbox) (model.Reason, string) {
	ready := 0
	for i := range v.sandboxes {
		if v.sandboxes[i].State == model.SandboxReady {
			ready++
		}
	}
	switch {
	case ready > 1:
		return model.MultipleSandboxes, fmt.Sprintf("%d sandboxes are ready, one is wanted", ready)
	case latest.State != model.SandboxReady:
		return model.SandboxNotReadyState, "the sandbox is not ready"
	case latest.HostNetwork != v.pod.Spec.HostNetwork:
		return model.NetworkModeChanged, fmt.Sprintf("hostNetwork: %t -> %t", latest.HostNetwork, v.pod.Spec.HostNetwork)
	case !v.pod.Spec.HostNetwork && !latest.NoNetwork && len(latest.IPs) == 0:
		return model.NoIP, "the sandbox has no address"
	case latest.SpecHash != "" && latest.SpecHash != v.desired.SandboxSpecHash():
		return model.SandboxConfigChanged, "the pod's sandbox settings changed"
	}
	return "", ""
}

// sandboxAttempt is the attempt of a new sandbox, above any that turned out to
// be taken.
func (v *view) sandboxAttempt(attempt uint32) uint32 {
	if reserved, ok := v.obs.Memory.Reserved[""]; ok {
		return max(attempt, reserved+1)
	}
	return attempt
}
