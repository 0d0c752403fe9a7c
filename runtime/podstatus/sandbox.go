package podstatus

import (
	"fmt"

	"github.com/podctl/podctl/podspec/spechash"
	"github.com/podctl/podctl/runtime/model"
)

// SandboxFault is why a pod needs a new sandbox.
type SandboxFault struct {
	Reason  model.Reason
	Message string
	// Edited reports whether the manifest asks for another sandbox, and OtherNetwork whether
	// for one in another network.
	Edited, OtherNetwork bool
}

// SandboxFault judges the latest sandbox; nil when it can stay (kubelet:
// PodSandboxChanged). To the kubelet's rules podctl adds one: a sandbox whose
// configuration no longer is what the manifest asks for is replaced.
func (p *Pod) SandboxFault() *SandboxFault {
	if len(p.Sandboxes) == 0 {
		return &SandboxFault{Reason: model.SandboxMissing, Message: "no sandbox yet"}
	}
	ready := 0
	for i := range p.Sandboxes {
		if p.Sandboxes[i].State == model.SandboxReady {
			ready++
		}
	}
	latest, host := &p.Sandboxes[0], p.Manifest.Spec.HostNetwork
	switch {
	case ready > 1:
		return &SandboxFault{Reason: model.MultipleSandboxes, Message: fmt.Sprintf("%d sandboxes are ready, one is wanted", ready)}
	case latest.State != model.SandboxReady:
		return &SandboxFault{Reason: model.SandboxNotReadyState, Message: "the sandbox is not ready"}
	case latest.HostNetwork != host:
		message := fmt.Sprintf("hostNetwork: %t -> %t", latest.HostNetwork, host)
		return &SandboxFault{Reason: model.NetworkModeChanged, Message: message, Edited: true, OtherNetwork: true}
	case !host && !latest.NoNetwork && len(latest.IPs) == 0:
		return &SandboxFault{Reason: model.NoIP, Message: "the sandbox has no address"}
	case latest.SpecHash != "" && latest.SpecHash != spechash.Sandbox(p.Desired):
		return &SandboxFault{Reason: model.SandboxConfigChanged, Message: "the pod's sandbox settings changed", Edited: true}
	}
	return nil
}
