package runtime

import (
	"context"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/node"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
)

// runSandbox creates and starts the pod's sandbox. Once begun it is finished,
// whatever the user presses: half a sandbox helps nobody.
func (x *execution) runSandbox(ctx context.Context, s *plan.Step) (string, error) {
	if criconfig.OwnUsers(x.desired.Pod) {
		if _, err := x.e.layout.Pod(x.plan.Pod.UID).GiveIDs(ctx); err != nil {
			return "", because(model.CreatePodSandboxError, err)
		}
	}
	ctx = context.WithoutCancel(ctx)
	config, err := x.sandboxConfig(s.Attempt)
	if err != nil {
		return "", because(model.CreatePodSandboxError, err)
	}
	if err = x.e.layout.Pod(x.plan.Pod.UID).MakeLogDir(x.plan.Pod.Namespace, x.plan.Pod.Name, ""); err != nil {
		return "", because(model.CreatePodSandboxError, err)
	}
	reply, err := x.e.client.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{
		Config: config, RuntimeHandler: podspec.RuntimeHandler(x.desired.Pod),
	})
	if err != nil {
		return "", because(model.CreatePodSandboxError, x.reservedOr(err, "", s.Attempt))
	}
	status, err := x.e.client.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: reply.GetPodSandboxId()})
	if err != nil {
		return "", because(model.CreatePodSandboxError, err)
	}
	observed := snapshot.ObservedSandbox(status.GetStatus())
	x.mu.Lock()
	x.yield.sandboxID, x.yield.podIPs, x.yield.config = reply.GetPodSandboxId(), observed.IPs, config
	x.journal.Settle(state.BegunPod)
	x.mu.Unlock()
	return strings.Join(observed.IPs, ","), nil
}

// sandboxConfig is the message the sandbox was, or will be, created with.
func (x *execution) sandboxConfig(attempt uint32) (*runtimeapi.PodSandboxConfig, error) {
	paths, err := x.e.sandboxPaths(x.desired)
	if err != nil {
		return nil, err
	}
	return criconfig.Sandbox(x.desired, x.e.node(), paths, attempt)
}

// currentSandbox is the sandbox in which containers of this pass start.
func (x *execution) currentSandbox() (yield, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.yield.config == nil {
		config, err := x.sandboxConfig(x.plan.Attempt)
		if err != nil {
			return yield{}, err
		}
		x.yield.config = config
	}
	return x.yield, nil
}

func (x *execution) stopSandbox(ctx context.Context, s *plan.Step) error {
	return because(model.KillPodSandboxError, x.e.stopPodSandbox(ctx, s.SandboxID))
}

// stopPodSandbox stops a sandbox. One whose shim ends while it is asked to is stopped
// again, as the CRI allows: only then are its network and its mounts cleared up.
func (e *Engine) stopPodSandbox(ctx context.Context, id string) error {
	busy, cancel := context.WithTimeout(ctx, busyTimeout)
	defer cancel()
	for {
		_, err := e.client.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id})
		if !node.IsBusy(err) || sleep(busy, busyPause) != nil {
			return ignoreNotFound(err)
		}
	}
}

func (x *execution) removeSandbox(ctx context.Context, s *plan.Step) error {
	return x.e.removePodSandbox(context.WithoutCancel(ctx), s.SandboxID)
}

// removePodSandbox removes a sandbox. One that is not there is no error.
func (e *Engine) removePodSandbox(ctx context.Context, id string) error {
	_, err := e.client.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id})
	if isNotFound(err) {
		return e.stillListed(ctx, id, err)
	}
	return err
}

// reservedOr turns "this name is taken" into a surprise: the executor does not
// choose another attempt, the next plan does.
func (x *execution) reservedOr(err error, name string, attempt uint32) error {
	if strings.Contains(err.Error(), "is reserved for") {
		return &surpriseError{name: name, attempt: attempt, reserved: true, err: err}
	}
	return err
}
