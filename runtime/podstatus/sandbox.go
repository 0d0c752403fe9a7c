package podstatus

import (
	"fmt"
	"time"

	"github.com/podctl/podctl/podspec/spechash"
	"github.com/podctl/podctl/runtime/model"
)

// SandboxFault explains why a pod needs a new sandbox.
type SandboxFault struct {
	Reason  model.Reason
	Message string
	// Edited reports whether the manifest asks for another sandbox, and OtherNetwork whether for another network.
	Edited, OtherNetwork bool
}

// SandboxFault checks the latest sandbox; it returns nil if the sandbox can stay (kubelet: PodSandboxChanged). podctl
// adds two rules: it replaces a sandbox whose configuration differs from the manifest, and one that is older than a
// restart of its workload.
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
		return &SandboxFault{
			Reason:  model.MultipleSandboxes,
			Message: fmt.Sprintf("%d sandboxes are ready instead of one", ready),
		}
	case latest.State != model.SandboxReady:
		return &SandboxFault{Reason: model.SandboxNotReadyState, Message: "the sandbox is not ready"}
	case latest.HostNetwork != host:
		message := fmt.Sprintf("hostNetwork: %t -> %t", latest.HostNetwork, host)
		return &SandboxFault{Reason: model.NetworkModeChanged, Message: message, Edited: true, OtherNetwork: true}
	case !host && !latest.NoNetwork && len(latest.IPs) == 0:
		return &SandboxFault{Reason: model.NoIP, Message: "the sandbox has no address"}
	case latest.SpecHash != "" && latest.SpecHash != spechash.Sandbox(p.Desired):
		return &SandboxFault{
			Reason:  model.SandboxConfigChanged,
			Message: "the pod's sandbox settings changed",
			Edited:  true,
		}
	case p.outlived(latest):
		at := p.Desired.RestartedAt().UTC().Format(time.RFC3339)
		return &SandboxFault{Reason: model.RolloutRestart, Message: "its workload was restarted at " + at, Edited: true}
	}
	return nil
}

// outlived reports whether a sandbox is older than a restart of the pod's workload. A restart in the future counts as
// none, because every sandbox created until then would be older.
func (p *Pod) outlived(sandbox *model.Sandbox) bool {
	at := p.Desired.RestartedAt()
	return !at.After(p.Now) && !sandbox.CreatedAt.IsZero() && sandbox.CreatedAt.Before(at)
}
