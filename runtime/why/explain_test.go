package why_test

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/podstatus"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/why"
)

var noon = modeltest.Noon()

const onePod = `apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default, uid: u}
spec:
  containers: [{name: a, image: 'i:1', readinessProbe: {tcpSocket: {port: 1}}}]
`

// input returns the input for a running pod of an owner.
func input(t *testing.T, owner string) *why.Input {
	t.Helper()
	d := modeltest.Load(t, onePod)
	d.Source, d.Owner, d.Pod.Generation = "/pods/web.yaml", owner, 3
	status := d.Pod.DeepCopy()
	status.Status = v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{{
		Name: "a", ContainerID: "containerd://id", Ready: true,
		State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(noon.Add(-time.Hour))}},
	}}}
	return &why.Input{
		Now: noon, Pod: model.RefOf(d.Pod), Desired: d, Status: status, Memory: &model.Memory{}, History: &state.History{},
		Plan: &plan.Plan{},
	}
}

// waits sets the state of the container to waiting.
func waits(in *why.Input, reason, message string) {
	in.Status.Status.ContainerStatuses[0] = v1.ContainerStatus{
		Name: "a", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason, Message: message}},
	}
}

// text joins the causes of an explanation.
func text(e *why.Explanation) string {
	var lines []string
	for _, s := range e.Subjects {
		for _, c := range s.Causes {
			lines = append(lines, s.Container+"|"+string(c.Reason)+": "+c.Message+" > "+strings.Join(c.Changes, "; "))
		}
	}
	return strings.Join(lines, "\n")
}

// TestCauses checks the cause and what would change it for each state of a pod.
func TestCauses(t *testing.T) {
	until := noon.Add(10 * time.Second)
	for name, c := range map[string]struct {
		owner string
		set   func(*why.Input)
		want  string
	}{
		"started": {set: func(in *why.Input) {
			in.History.Decide(state.Decision{Kind: "StartContainer", Container: "a", Reason: model.SpecChanged, Message: "image: i:0 → i:1"})
		}, want: "a|SpecChanged: it was started: image: i:0 → i:1 > "},
		"a failed start is no start": {set: func(in *why.Input) {
			in.History.Decide(state.Decision{Kind: "StartContainer", Container: "a", Reason: model.NotCreated, Message: "x", Error: "no"})
		}},
		"the previous run": {set: func(in *why.Input) {
			in.Status.Status.ContainerStatuses[0].LastTerminationState.Terminated = &v1.ContainerStateTerminated{
				ExitCode: 137, Reason: "OOMKilled", FinishedAt: metav1.NewTime(noon),
			}
		}, want: "a|OOMKilled: its previous run ended at 2026-05-04T12:00:00Z with exit code 137 (SIGKILL): OOMKilled > "},
		"not ready": {set: func(in *why.Input) {
			in.Status.Status.ContainerStatuses[0].Ready = false
			in.Memory.Probes = map[string]map[model.ProbeType]model.ProbeRecord{"id": {
				model.Readiness: {Result: model.ProbeFailure, Message: "refused"},
			}}
		}, want: "a|: it is not ready: readiness probe failed: refused > podctl probe default/web repeats the probe"},
		"not probed": {set: func(in *why.Input) {
			in.Status.Status.ContainerStatuses[0].Ready, in.Agent = false, &api.Pod{}
		}, want: "a|: it is not ready: its readiness probe has not passed yet > the agent repeats the probe at its period"},
		"restart delay": {set: func(in *why.Input) {
			waits(in, "CrashLoopBackOff", "")
			in.Plan.Holds = []plan.Hold{{
				Container: "a", Reason: model.CrashLoopBackOff, Message: "back-off 10s", Until: &until, Delay: &podstatus.Delay{},
			}}
		}, want: "a|CrashLoopBackOff: back-off 10s > the end of the delay; podctl restart default/web a, which starts it at once; " +
			"podctl apply of an edited manifest"},
		"image": {set: func(in *why.Input) {
			waits(in, "ErrImagePull", "not found")
			in.Memory.StartErrors = map[string]model.StartError{"a": {Reason: model.ErrImagePull}}
		}, want: "a|ErrImagePull: the last start failed: not found > the next try; " +
			"an image on disk: podctl image pull or podctl image load; podctl apply of an edited manifest"},
		"image that may not be pulled": {owner: podspec.OwnerAPI, set: func(in *why.Input) {
			waits(in, "ErrImageNeverPull", "")
			in.Plan.Holds = []plan.Hold{{Container: "a", Reason: model.ErrImageNeverPull, Message: "absent"}}
		}, want: "a|ErrImageNeverPull: absent > an image on disk: podctl image pull or podctl image load; " +
			"an edit of the pod, or of its workload, in the API server"},
		"missing object": {owner: podspec.OwnerAPI, set: func(in *why.Input) {
			waits(in, "CreateContainerConfigError", "")
			in.Plan.Holds = []plan.Hold{{Container: "a", Reason: model.CreateContainerConfigError, Message: "no cm", MissingObject: true}}
		}, want: "a|CreateContainerConfigError: no cm > the missing object: kubectl apply; " +
			"an edit of the pod, or of its workload, in the API server"},
		"network": {set: func(in *why.Input) {
			in.Plan.Holds = []plan.Hold{{Reason: model.NetworkNotReady, Message: "cni"}}
		}, want: "|NetworkNotReady: cni > a ready network of the runtime: podctl doctor shows its state; hostNetwork: true in the manifest"},
		"port": {set: func(in *why.Input) {
			in.Plan.Holds = []plan.Hold{{Reason: model.HostPortConflict, Message: "80"}}
		}, want: "|HostPortConflict: 80 > a free port: stop the other user of the port; podctl apply of an edited manifest"},
		"rejected": {owner: podspec.OwnerAPI, set: func(in *why.Input) {
			in.Memory.Rejection = &model.Rejection{Reason: "OutOfcpu", Message: "no cpu"}
			in.Plan.Rejection = in.Memory.Rejection
			in.Plan.Holds = []plan.Hold{{Reason: "OutOfcpu", Message: "no cpu", Admission: true}}
		}, want: "|OutOfcpu: Pod was rejected: no cpu > kubectl delete pod -n default web; until then it stays Failed"},
		"refused edit": {set: func(in *why.Input) {
			in.Plan.Holds = []plan.Hold{{Reason: "OutOfcpu", Message: "no cpu", Admission: true}}
		}, want: "|OutOfcpu: no cpu > enough free resources on the node; podctl apply of an edited manifest"},
		"evicted": {set: func(in *why.Input) {
			in.Memory.Eviction = &model.Eviction{Message: "low memory"}
			in.Plan.Holds = []plan.Hold{{Reason: model.Evicted, Message: "evicted", Evicted: true}}
		}, want: "|Evicted: low memory > podctl apply of an edited manifest; podctl restart default/web"},
		"finished": {owner: podspec.OwnerAPI, set: func(in *why.Input) {
			in.Memory.Completion = &model.Completion{Phase: v1.PodSucceeded}
			in.Status.Status.Phase = v1.PodSucceeded
		}, want: "|Completed: the pod has finished: Succeeded > nothing: it never runs again, and its controller creates another pod"},
		"deleting": {owner: podspec.OwnerAPI, set: func(in *why.Input) {
			(&model.Deletion{At: noon.Add(-13 * time.Second), GracePeriodSeconds: 30}).Mark(in.Status)
		}, want: "|Deleted: the pod is being deleted: 17 s of 30 s are left > " +
			"a shorter grace period ends it earlier: kubectl delete pod -n default web --grace-period=1"},
		"deleted with a finalizer": {owner: podspec.OwnerAPI, set: func(in *why.Input) {
			(&model.Deletion{At: noon.Add(-40 * time.Second), GracePeriodSeconds: 30}).Mark(in.Status)
			in.Status.Status.Phase = v1.PodFailed
			in.Agent = &api.Pod{Waiting: []string{"finalizers in the API server: a/x"}}
		}, want: "|Deleted: the pod is being deleted, and its object waits for finalizers in the API server: a/x > " +
			"the removal of the object from the API server"},
		"a deletion has begun": {set: func(in *why.Input) {
			in.Plan.Holds = []plan.Hold{{Reason: model.Deleted, Message: "not finished"}}
		}, want: "|Deleted: not finished > podctl delete default/web, which finishes the deletion"},
		"a deletion of the API server has begun": {owner: podspec.OwnerAPI, set: func(in *why.Input) {
			in.Plan.Holds = []plan.Hold{{Reason: model.Deleted, Message: "the agent finishes it"}}
		}, want: "|Deleted: the agent finishes it > the next pass of the agent, which finishes the deletion"},
		"to be replaced": {set: func(in *why.Input) {
			in.Plan.Objects = []plan.Object{{Container: "a", Action: plan.Replaced, Reason: model.SpecChanged, Message: "image"}}
			in.Agent = &api.Pod{}
		}, want: "a|SpecChanged: it is outdated: image > the next pass of the agent replaces it"},
		"first others": {set: func(in *why.Input) {
			waits(in, "PodInitializing", "")
			in.Plan.WaitingFor = []string{"init container x to finish"}
		}, want: "a|: it starts later: the pod waits for init container x to finish > init container x to finish"},
		"stopped": {set: func(in *why.Input) {
			in.Status.Status.ContainerStatuses[0].State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}
			in.History.Decide(state.Decision{Kind: "StopContainer", Container: "a", Reason: model.LivenessFailed, Message: "liveness", Last: noon})
		}, want: "a|LivenessFailed: it was stopped: liveness > "},
		"ended": {set: func(in *why.Input) {
			in.Status.Spec.RestartPolicy = v1.RestartPolicyNever
			in.Status.Status.ContainerStatuses[0].State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
				Reason: "Completed", FinishedAt: metav1.NewTime(noon),
			}}
			in.Plan.Objects = []plan.Object{{Container: "a", Action: plan.Kept}}
		}, want: "a|Completed: it ended at 2026-05-04T12:00:00Z with exit code 0 > " +
			"podctl restart default/web a, because restartPolicy Never does not restart it"},
		"ended init container": {set: func(in *why.Input) {
			in.Status.Spec = modeltest.Load(t, onePod+"  initContainers: [{name: i, image: i}]\n").Pod.Spec
			in.Status.Status.InitContainerStatuses = []v1.ContainerStatus{{
				Name: "i", State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
					Reason: "Completed", FinishedAt: metav1.NewTime(noon),
				}},
			}}
			in.Plan.Objects = []plan.Object{{Container: "i", Action: plan.Kept}}
		}, want: "i|Completed: it ended at 2026-05-04T12:00:00Z with exit code 0 > " +
			"a new sandbox, in which all init containers run again"},
		"drift": {set: func(in *why.Input) {
			in.Plan.Drift = []string{"container a is gone"}
		}, want: "|: changed outside podctl: container a is gone > "},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t, c.owner)
			c.set(in)
			if got := text(why.Explain(in)); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

// TestObject checks that an explanation has the names and generations of the source.
func TestObject(t *testing.T) {
	if o := why.Explain(input(t, podspec.OwnerAPI)).Object; o.Source != podspec.OwnerAPI || o.ObservedGeneration != 3 {
		t.Errorf("%+v", o)
	}
	if o := why.Explain(input(t, "")).Object; o.Source != "/pods/web.yaml" || o.ObservedGeneration != 0 {
		t.Errorf("%+v", o)
	}
}

// TestRecords checks which records of a history belong to an explanation.
func TestRecords(t *testing.T) {
	in := input(t, "")
	in.Container = "a"
	in.History.Add(state.PodEvent{Reason: "Started", Container: "a"}, state.PodEvent{Reason: "Unhealthy", Container: "a"},
		state.PodEvent{Reason: "Unhealthy", Container: "b"})
	if e := why.Explain(in); len(e.Events) != 1 {
		t.Errorf("without decisions: %+v", e.Events)
	}
	in.History.Decide(state.Decision{Kind: "StartContainer", Container: "b"})
	in.History.Decide(state.Decision{Kind: "RunSandbox"})
	if e := why.Explain(in); len(e.Events) != 1 || e.Events[0].Container != "a" || len(e.Decisions) != 1 {
		t.Errorf("%+v %+v", e.Events, e.Decisions)
	}
}
