package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/imageaccess"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
)

// preparer creates the prerequisites of containers: the cgroup, volumes, images and the sandbox.
type preparer struct{ *subject }

// applyCgroup creates the pod's own cgroup with its limits, or updates the limits. A machine without writable cgroups
// runs pods without it.
func (x *preparer) applyCgroup() error {
	node := x.node()
	name := criconfig.CgroupParent(x.desired.Pod, node)
	if !x.cgroups.Exists(name) {
		// If podctl is killed before all limits are set, the cgroup would look complete.
		if err := x.pod.CgroupMark().Set(); err != nil {
			return model.WithReason(model.FailedCreatePodContainer, err)
		}
	}
	err := x.cgroups.Ensure(name, cgroup.Resources(criconfig.PodCgroup(x.desired.Pod, node)))
	if unavailable := (*cgroup.UnavailableError)(nil); errors.As(err, &unavailable) {
		x.report.warn("the pod runs without a cgroup of its own: " + err.Error())
		err = nil
	}
	if err == nil {
		err = x.pod.CgroupMark().Clear()
	}
	if err == nil {
		x.checkpoint.note(func(c *state.Checkpoint) {
			if c.Actuated != nil {
				c.Actuated.Cgroup = new(podspec.Totals(x.desired.Pod))
			}
		})
	}
	return model.WithReason(model.FailedCreatePodContainer, err)
}

// pullImage pulls one image, first with the pod's own credentials, and looks up the user it runs as. An interrupted
// pull leaves only its mark.
func (x *preparer) pullImage(ctx context.Context, s *plan.Step) (string, error) {
	config, err := x.sandboxConfig(x.plan.Attempt)
	if err != nil {
		return "", model.WithReason(model.CreatePodSandboxError, err)
	}
	if x.opts.Downloads {
		defer images.WatchPull(ctx, x.client, func(p images.PullProgress) { x.report.pulled(s, p) })()
	}
	info, err := x.pull(ctx, s, config)
	if err != nil {
		return "", err
	}
	x.notePulled(s.Image, info.ID)
	x.outputs.setImage(s.Image, (&snapshot.Image{ID: info.ID, User: info.User, Digests: info.RepoDigests}).Observed())
	return info.ID, nil
}

// pull pulls the image, records with which credentials, and waits until the pass may continue.
func (x *preparer) pull(
	ctx context.Context, s *plan.Step, config *runtimeapi.PodSandboxConfig,
) (info images.Info, err error) {
	if err = x.pulls.Begin(s.Image); err != nil {
		return info, model.WithReason(model.ErrImagePull, err)
	}
	ended := func(context.Context) error { return nil }
	if x.opts.Pulling != nil {
		ended = x.opts.Pulling()
	}
	reply, err := x.puller.Pull(ctx, x.client.Images, images.Request{
		Image:         s.Image,
		Annotations:   x.desired.Pod.Annotations,
		SandboxConfig: config,
		Secrets:       images.PullSecrets(x.desired),
	})
	if err != nil {
		err = pullReason(err)
		end := state.PullFailed
		if ctx.Err() == nil {
			x.checkpoint.noteFailure(s.Container, err)
		} else {
			// The error does not concern the image, which the runtime may just have stored.
			end = state.PullUnrecorded
		}
		x.endPull(s.Image, end)
	} else {
		info, err = x.recordPull(ctx, s.Image, reply.Secret)
	}
	return info, cmp.Or(err, ended(ctx))
}

// recordPull looks up an image that was pulled, and records that pods with this pull secret may use it; nil stands for
// all pods. The image is present, so that this ignores cancellation.
func (x *preparer) recordPull(ctx context.Context, image string, from *imageaccess.Secret) (images.Info, error) {
	info, err := images.Pulled(context.WithoutCancel(ctx), x.client.Images, image)
	if err != nil {
		x.endPull(image, state.PullUnrecorded)
		return info, model.WithReason(model.ImageInspectError, err)
	}
	end := state.PullRecorded
	if err = x.pulls.Add(image, info.ID, imageaccess.Of(from), x.now()); err != nil {
		x.report.warn("pods of the API server have to pull the image again: " + err.Error())
		end = state.PullUnrecorded
	}
	x.endPull(image, end)
	return info, nil
}

// endPull removes the mark of a pull. If it stays, pods of the API server have to pull the image.
func (x *preparer) endPull(image string, end state.PullEnd) {
	if err := x.pulls.End(image, end); err != nil {
		x.report.warn("the end of the pull was not recorded: " + err.Error())
	}
}

// notePulled records an image that was absent until podctl pulled it. Only such images are removed when the disk is
// full.
func (x *preparer) notePulled(name, id string) {
	if before, _ := x.snapshot.Image(name); before.ID == id {
		return
	}
	if err := x.pulled.Add(id); err != nil {
		x.report.warn("the pull was not recorded, so the image is not removed when the disk is full: " + err.Error())
	}
}

// pullReason adds the kubelet's name for the failure of a pull.
func pullReason(err error) error {
	if failure := (*images.Error)(nil); errors.As(err, &failure) {
		return model.WithReason(model.Reason(failure.Reason), err)
	}
	return model.WithReason(model.ErrImagePull, err)
}

// warnOfDNS records the events for the resolver configuration of a pod of the API server.
func (x *preparer) warnOfDNS() {
	if !x.desired.FromCluster() {
		return
	}
	for _, w := range criconfig.DNSWarnings(x.desired.Pod, x.node()) {
		x.report.record(w.Reason, "", w.Text)
	}
}

// warnOfPullSecrets records the event for missing pull secrets of a pod of the API server that has not ended (kubelet:
// getPullSecretsForPod). Pulls continue without them.
func (x *preparer) warnOfPullSecrets() {
	d := x.desired
	if d == nil || !d.FromCluster() || x.plan.End != nil || x.snapshot.Checkpoint.Completion != nil {
		return
	}
	if missing := podspec.MissingPullSecrets(d); len(missing) > 0 {
		x.report.recordOften("FailedToRetrieveImagePullSecret", fmt.Sprintf(
			"Unable to retrieve some image pull secrets (%s); attempting to pull the image may not succeed.",
			strings.Join(missing, ", ")))
	}
}

// runSandbox creates and starts the pod's sandbox. It ignores cancellation, because an incomplete sandbox is useless.
func (x *preparer) runSandbox(ctx context.Context, s *plan.Step) (string, error) {
	if criconfig.OwnUsers(x.desired.Pod) {
		if _, err := x.pod.IDs().Allocate(ctx); err != nil {
			return "", model.WithReason(model.CreatePodSandboxError, err)
		}
	}
	ctx = context.WithoutCancel(ctx)
	config, err := x.sandboxConfig(s.Attempt)
	if err != nil {
		return "", model.WithReason(model.CreatePodSandboxError, err)
	}
	x.warnOfDNS()
	if err = x.logs().Make(""); err != nil {
		return "", model.WithReason(model.CreatePodSandboxError, err)
	}
	node := x.node()
	handler, err := node.HandlerOf(x.desired)
	if err != nil {
		return "", model.WithReason(model.CreatePodSandboxError, err)
	}
	reply, err := x.client.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: config, RuntimeHandler: handler})
	if err != nil {
		return "", model.WithReason(model.CreatePodSandboxError, reservedOr(err, "", s.Attempt))
	}
	status, err := x.client.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{
		PodSandboxId: reply.GetPodSandboxId(),
	})
	if err != nil {
		return "", model.WithReason(model.CreatePodSandboxError, err)
	}
	observed := snapshot.ObservedSandbox(status.GetStatus())
	observed.ID = reply.GetPodSandboxId()
	x.outputs.setSandbox(sandboxOutput{Sandbox: observed, config: config})
	x.checkpoint.note(func(c *state.Checkpoint) { c.MarkCreated(state.ThePod) })
	return strings.Join(observed.IPs, ","), nil
}
