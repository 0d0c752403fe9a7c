package agent

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/podworkers"
	"github.com/podctl/podctl/runtime/agent/probers"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/podstatus"
)

// TestStatusHasVerdicts checks that the status of a pod contains the results of its probes and their times.
func TestStatusHasVerdicts(t *testing.T) {
	l := newStill(t)
	d := l.manifest("one", "a", "a1", 1)
	d.Pod.Spec.Containers[0].ReadinessProbe = &v1.Probe{PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 1}
	l.wants["one"]["a"] = d
	l.deliverNow("one")
	counted := l.now.Add(-time.Minute)
	record := model.ProbeRecord{Result: model.ProbeSuccess, Last: model.ProbeSuccess, Run: 1, CountedAt: counted, Message: "it is ready"}
	l.agent.probes.set.Sync(l.now, probers.Observation{Desired: d, Running: []probers.Running{{
		Name:      d.Pod.Spec.Containers[0].Name,
		ID:        "id",
		StartedAt: counted,
		Records:   map[model.ProbeType]model.ProbeRecord{model.Readiness: record},
	}}})
	pods := l.agent.status().Pods
	if len(pods) != 1 || len(pods[0].Probes) != 1 {
		t.Fatalf("pods: %+v", pods)
	}
	p := pods[0].Probes[0]
	if p.ContainerID != "id" || p.Type != model.Readiness || p.Result != model.ProbeSuccess ||
		!p.Since.Equal(counted) || !p.LastProbeTime.Equal(counted) || p.Message != record.Message {
		t.Errorf("probe status %+v", p)
	}
}

// asApplied lists pods as they are, with an error for one that cannot be observed.
type asApplied struct{}

func (asApplied) List(_ context.Context, pods []*podspec.Desired) (list []*v1.Pod, err error) {
	for _, d := range pods {
		list = append(list, d.Pod)
	}
	return list, errors.New("one cannot be observed")
}

// TestPods checks that the list contains the kept pods in the version that was applied last, even if one of them cannot
// be observed.
func TestPods(t *testing.T) {
	l := newStill(t)
	l.agent.world.Lister = asApplied{}
	l.has(l.manifest("one", "a", "a1", 1))
	l.wants["one"]["a"], l.wants["one"]["b"] = l.manifest("one", "a", "a1", 2), l.manifest("one", "b", "b1", 1)
	if err := l.agent.reader.readAll(); err != nil {
		t.Fatal(err)
	}
	l.deliverNow("one")
	go func() { (<-l.agent.inbox)() }()
	list, err := l.agent.Pods(t.Context())
	if err != nil || list.Kind != "PodList" || len(list.Items) != 2 ||
		list.Items[0].Spec.Containers[0].Image != "i:1" || list.Items[1].Name != "b" {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestOperationsOfPasses checks that a pass is counted by its purpose, and that a pod is timed once if the agent has
// seen it before it ran.
func TestOperationsOfPasses(t *testing.T) {
	l := newStill(t)
	d, edited := l.manifest("one", "a", "a1", 1), l.manifest("one", "a", "a1", 2)
	l.wants["one"]["a"] = d
	l.deliverNow("one")
	for _, uid := range []types.UID{"api", "over"} {
		l.agent.reconciler.kept[uid] = podspec.NewFromCluster(&v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}})
	}
	l.agent.reconciler.ending = map[types.UID]*podspec.Desired{"ends": {}}
	l.agent.last["over"] = lastPass{idle: true}
	l.agent.countWanted()
	runs := &executor.Outcome{
		Input: &plan.Input{
			Input: podstatus.Input{
				Observed: model.Observed{Containers: []model.Container{{Name: "a", StartedAt: l.now}}},
			},
		},
	}
	for _, p := range []passResult{
		{pass: podworkers.Pass{Kind: podworkers.Sync, Pod: d}, outcome: &executor.Outcome{Input: &plan.Input{}}},
		{pass: podworkers.Pass{Kind: podworkers.Sync, Pod: d}, outcome: runs},
		{pass: podworkers.Pass{Kind: podworkers.Sync, Pod: edited}, outcome: runs},
		{pass: podworkers.Pass{Kind: podworkers.Terminate}},
	} {
		p.pass.Ref = model.RefOf(d.Pod)
		l.agent.metrics.countPass(&p, l.agent.last)
		l.agent.last[p.pass.Ref.UID] = lastPass{at: l.now, pod: p.pass.Pod}
	}
	l.agent.world.Client.RuntimeServiceClient = silent{}
	w := httptest.NewRecorder()
	l.agent.Metrics().Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	for _, line := range []string{
		`kubelet_pod_worker_duration_seconds_count{operation_type="create"} 1`,
		`kubelet_pod_worker_duration_seconds_count{operation_type="sync"} 1`,
		`kubelet_pod_worker_duration_seconds_count{operation_type="update"} 1`,
		`kubelet_pod_worker_duration_seconds_count{operation_type="kill"} 1`,
		`kubelet_pod_start_duration_seconds_count 1`, `kubelet_desired_pods{static="true"} 1`,
		`kubelet_desired_pods{static=""} 3`, `kubelet_active_pods{static=""} 2`, `kubelet_active_pods{static="true"} 1`,
	} {
		if !strings.Contains(w.Body.String(), line+"\n") {
			t.Errorf("no %s in\n%s", line, w.Body)
		}
	}
}

// TestStartsOfUserNamespaces checks that a pass with the sandbox of a pod with its own user namespace counts as a start,
// and as an error if any step of it failed.
func TestStartsOfUserNamespaces(t *testing.T) {
	l := newStill(t)
	shared, own := l.manifest("one", "a", "a1", 1), l.manifest("one", "b", "b1", 1)
	own.Pod.Spec.HostUsers = new(bool)
	sandbox := plan.Step{Kind: plan.RunSandbox}
	made := &plan.Plan{Steps: []plan.Step{sandbox, {Kind: plan.StartContainer}}}
	failed := []executor.StepError{{}}
	for _, p := range []passResult{
		{pass: podworkers.Pass{Pod: own}, outcome: &executor.Outcome{Plan: made}},
		{pass: podworkers.Pass{Pod: own}, outcome: &executor.Outcome{Plan: made, Failed: failed}},
		{pass: podworkers.Pass{Pod: own}, outcome: &executor.Outcome{Plan: &plan.Plan{}, Failed: failed}},
		{pass: podworkers.Pass{Pod: own}, outcome: &executor.Outcome{Plan: made, Skipped: []*plan.Step{&sandbox}}},
		{pass: podworkers.Pass{Pod: own}},
		{pass: podworkers.Pass{Pod: shared}, outcome: &executor.Outcome{Plan: made, Failed: failed}},
	} {
		l.agent.metrics.countPass(&p, l.agent.last)
	}
	l.agent.world.Client.RuntimeServiceClient = silent{}
	w := httptest.NewRecorder()
	l.agent.Metrics().Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	for _, line := range []string{
		"kubelet_started_user_namespaced_pods_total 2", "kubelet_started_user_namespaced_pods_errors_total 1",
	} {
		if !strings.Contains(w.Body.String(), line+"\n") {
			t.Errorf("no %s in\n%s", line, w.Body)
		}
	}
}

// silent is a runtime that does not answer.
type silent struct {
	runtimeapi.RuntimeServiceClient
}

func (silent) ListPodSandbox(
	context.Context, *runtimeapi.ListPodSandboxRequest, ...grpc.CallOption,
) (*runtimeapi.ListPodSandboxResponse, error) {
	return nil, errFault
}
