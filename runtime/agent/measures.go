package agent

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/podworkers"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// Metrics shows what the agent counts.
func (a *Agent) Metrics() http.Handler { return a.metrics.Handler() }

// measureWanted counts what is wanted, and notes when pods are seen for the first time.
func (a *Agent) measureWanted() {
	a.metrics.Desired(len(a.keeper.kept), len(a.keeper.problems))
	maps.DeleteFunc(a.starting, func(uid types.UID, _ time.Time) bool { return a.keeper.kept[uid] == nil })
	for uid := range a.keeper.kept {
		if _, had := a.last[uid]; !had && a.starting[uid].IsZero() {
			a.starting[uid] = a.settings.Now()
		}
	}
}

// measured makes a pass and takes its time.
func (a *Agent) measured(ctx context.Context, p podworkers.Pass) passed {
	began := a.settings.Now()
	done := a.makePass(ctx, p)
	done.took = a.settings.Now().Sub(began)
	return done
}

// measurePass counts a pass that has ended, in the kubelet's words (SyncPodType). A pod runs once a
// pass sees that all its regular containers have started; one that the first pass sees so was not
// started by this agent.
func (a *Agent) measurePass(p *passed) {
	before, had := a.last[p.pass.Ref.UID]
	operation := "sync"
	switch {
	case p.pass.Kind == podworkers.Terminate:
		operation = "kill"
	case !had:
		operation = "create"
	case before.pod == p.pass.Pod:
	case before.pod == nil || !before.pod.SameManifest(p.pass.Pod):
		operation = "update"
	}
	a.metrics.Pass(operation, p.took)
	if since, waits := a.starting[p.pass.Ref.UID]; waits && operation != "kill" && hasStarted(p) {
		delete(a.starting, p.pass.Ref.UID)
		if had {
			a.metrics.PodRuns(a.settings.Now().Sub(since))
		}
	}
}

// hasStarted reports whether a pass saw a record of a run of each regular container.
func hasStarted(p *passed) bool {
	if p.outcome == nil || p.outcome.Observed == nil {
		return false
	}
	for _, ref := range podspec.RegularContainers(p.pass.Pod.Pod) {
		if !slices.ContainsFunc(p.outcome.Observed.Containers, func(c model.Container) bool { return c.Name == ref.Name && !c.StartedAt.IsZero() }) {
			return false
		}
	}
	return true
}

// reported takes what a pass does.
func (a *Agent) reported(e executor.Event) {
	a.log.step(e)
	failed := e.Kind == executor.StepFailed
	if e.Step == nil || !failed && e.Kind != executor.StepDone {
		return
	}
	switch kind := e.Step.Kind; {
	case kind == plan.RunSandbox:
		a.metrics.PodStarted(e.Err)
	case kind == plan.StartContainer:
		a.metrics.ContainerStarted(kindOf(e.Step.ContainerType), failureOf(e.Err))
	case kind == plan.PullImage && !failed:
		go a.measurePull(e)
	}
}

// measurePull takes a pull, which is counted by the size of its image.
func (a *Agent) measurePull(e executor.Event) {
	reply, err := a.client.Images.ImageStatus(a.ctx, &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: e.Step.Image}})
	if err == nil && reply.GetImage() != nil {
		a.metrics.Pulled(reply.GetImage().GetSize(), e.Took)
	}
}

// kindOf is the kubelet's word for a kind of container.
func kindOf(t podspec.ContainerType) string {
	switch t {
	case podspec.Init, podspec.Sidecar:
		return "init_container"
	case podspec.Ephemeral:
		return "ephemeral_container"
	case podspec.Regular:
	}
	return "container"
}

// failureOf is the kubelet's word for a failure; empty for none.
func failureOf(err error) string {
	if err == nil {
		return ""
	}
	if step := (*executor.StepError)(nil); errors.As(err, &step) {
		return string(step.Reason)
	}
	return "RunContainerError"
}

// countRunning counts what runs (metrics.Look). All that the runtime has counts, as in a kubelet.
func (a *Agent) countRunning(ctx context.Context) (pods int, states map[string]int, err error) {
	ready := &runtimeapi.PodSandboxFilter{State: &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY}}
	sandboxes, err := a.client.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{Filter: ready})
	if err != nil {
		return 0, nil, err
	}
	containers, err := a.client.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return 0, nil, err
	}
	states = map[string]int{}
	for _, c := range containers.GetContainers() {
		states[strings.ToLower(strings.TrimPrefix(c.GetState().String(), "CONTAINER_"))]++
	}
	return len(sandboxes.GetItems()), states, nil
}
