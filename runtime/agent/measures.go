package agent

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/metrics"
	"github.com/podctl/podctl/runtime/agent/podworkers"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// agentMetrics updates the metrics of the agent.
type agentMetrics struct {
	*metrics.Metrics
	client *cri.Client
	now    func() time.Time
	// starting maps pods that were seen but do not run yet to the time when they were first seen.
	starting map[types.UID]time.Time
}

func newAgentMetrics(client *cri.Client, now func() time.Time) *agentMetrics {
	m := &agentMetrics{client: client, now: now, starting: map[types.UID]time.Time{}}
	m.Metrics = metrics.New(m.countRunning)
	client.Called = m.Called
	return m
}

// countEvent updates the metrics for an event.
func (s *loopState) countEvent(ctx context.Context, e *Event) {
	switch e.Kind {
	case Stepped:
		s.metrics.countStep(ctx, e.Step)
	case Passed:
		s.metrics.countPass(e.pass, s.last)
	case Ended:
		delete(s.metrics.starting, e.Pod.UID)
	case Planned, Probed:
	}
}

// countWanted counts the wanted pods, and records when pods are first seen.
func (s *loopState) countWanted() {
	m, kept := s.metrics, s.reconciler.kept
	var fromAPI, static metrics.Wanted
	count := func(uid types.UID, in *metrics.Wanted) {
		in.Desired++
		if !s.isIdle(uid) {
			in.Active++
		}
	}
	for uid := range s.reconciler.ending { // The API server deletes them.
		count(uid, &fromAPI)
	}
	maps.DeleteFunc(m.starting, func(uid types.UID, _ time.Time) bool { return kept[uid] == nil })
	for uid, d := range kept {
		if d.FromCluster() {
			count(uid, &fromAPI)
		} else {
			count(uid, &static)
		}
		if _, had := s.last[uid]; !had && m.starting[uid].IsZero() {
			m.starting[uid] = s.now()
		}
	}
	m.Wanted(fromAPI, static, len(s.reconciler.problems))
}

// countPass counts a pass under the kubelet's operation names (SyncPodType). A pod runs once a pass sees that all its
// regular containers have started. If the first pass already sees that, this agent has not started the pod.
func (m *agentMetrics) countPass(p *passResult, last map[types.UID]lastPass) {
	before, had := last[p.pass.Ref.UID]
	operation := "sync"
	switch {
	case p.pass.Kind != podworkers.Sync:
		operation = "kill"
	case !had:
		operation = "create"
		m.PodBegins(len(p.pass.Pod.Pod.Spec.Containers))
	case before.pod == p.pass.Pod:
	case before.pod == nil || !before.pod.SameManifest(p.pass.Pod):
		operation = "update"
	}
	m.Pass(operation, p.took)
	if o := p.outcome; createsSandbox(o) && criconfig.OwnUsers(p.pass.Pod.Pod) {
		m.UserPodStarted(o.Err())
	}
	if since, waits := m.starting[p.pass.Ref.UID]; waits && operation != "kill" && hasStarted(p) {
		delete(m.starting, p.pass.Ref.UID)
		if had {
			m.PodRuns(m.now().Sub(since))
		}
	}
}

// createsSandbox reports whether a pass has created a sandbox, or has tried to.
func createsSandbox(o *executor.Outcome) bool {
	if o == nil || o.Plan == nil {
		return false
	}
	skipped := func(s *plan.Step) bool { return s.Kind == plan.RunSandbox }
	return !slices.ContainsFunc(o.Skipped, skipped) &&
		slices.ContainsFunc(o.Plan.Steps, func(s plan.Step) bool { return s.Kind == plan.RunSandbox })
}

// hasStarted reports whether a pass has observed a start of each regular container.
func hasStarted(p *passResult) bool {
	if p.outcome == nil || p.outcome.Input == nil {
		return false
	}
	for _, ref := range podspec.RegularContainers(p.pass.Pod.Pod) {
		isStarted := func(c model.Container) bool { return c.Name == ref.Name && !c.StartedAt.IsZero() }
		if !slices.ContainsFunc(p.outcome.Input.Observed.Containers, isStarted) {
			return false
		}
	}
	return true
}

// countStep counts a step. The sizes of pulled images are read in another goroutine.
func (m *agentMetrics) countStep(ctx context.Context, e executor.Event) {
	failed := e.Kind == executor.StepFailed
	if e.Step == nil || !failed && e.Kind != executor.StepDone {
		return
	}
	switch kind := e.Step.Kind; {
	case kind == plan.RunSandbox:
		m.PodStarted(e.Err)
	case kind == plan.StartContainer:
		m.ContainerStarted(kindOf(e.Step.ContainerType), failureOf(e.Err))
	case kind == plan.PullImage && !failed:
		go m.countPull(context.WithoutCancel(ctx), e)
	}
}

// countPull records a pull by the size of its image.
func (m *agentMetrics) countPull(ctx context.Context, e executor.Event) {
	image := &runtimeapi.ImageSpec{Image: e.Step.Image}
	reply, err := m.client.Images.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: image})
	if err == nil && reply.GetImage() != nil {
		m.Pulled(reply.GetImage().GetSize(), e.Took)
	}
}

// kindOf returns the kubelet's name for a type of container.
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

// failureOf returns the kubelet's name for a failure. It is empty for none.
func failureOf(err error) string {
	if err == nil {
		return ""
	}
	if step := (*executor.StepError)(nil); errors.As(err, &step) {
		return string(step.Reason)
	}
	return "RunContainerError"
}

// countRunning counts running pods and containers (metrics.CountFunc). It includes all that the runtime has, as in a
// kubelet.
func (m *agentMetrics) countRunning(ctx context.Context) (pods int, states map[string]int, err error) {
	ready := &runtimeapi.PodSandboxFilter{
		State: &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY},
	}
	sandboxes, err := m.client.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{Filter: ready})
	if err != nil {
		return 0, nil, err
	}
	containers, err := m.client.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return 0, nil, err
	}
	states = map[string]int{}
	for _, c := range containers.GetContainers() {
		states[strings.ToLower(strings.TrimPrefix(c.GetState().String(), "CONTAINER_"))]++
	}
	return len(sandboxes.GetItems()), states, nil
}
