package wait

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/podstatus"
)

// TestStarted checks that a container that has already succeeded counts as started, but not one that crashed or waits,
// including sidecars.
func TestStarted(t *testing.T) {
	ended := func(code int32) v1.ContainerStatus {
		return v1.ContainerStatus{Started: new(false), State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code}}}
	}
	runs, waits := v1.ContainerStatus{Started: new(true)}, v1.ContainerStatus{Started: new(false)}
	always := v1.ContainerRestartPolicyAlways
	pod := &v1.Pod{Spec: v1.PodSpec{
		InitContainers: []v1.Container{{Name: "init"}, {Name: "side", RestartPolicy: &always}},
		Containers:     []v1.Container{{Name: "a"}, {Name: "b"}},
	}}
	w := &podWait{goal: Started, desired: &podspec.Desired{Pod: pod}}
	for name, c := range map[string]struct {
		init, side, a, b v1.ContainerStatus
		want             bool
	}{
		"all run":                   {ended(0), runs, runs, runs, true},
		"one ended":                 {ended(0), runs, ended(0), runs, true},
		"one failed":                {ended(0), runs, ended(1), runs, false},
		"a sidecar crashed":         {ended(0), waits, runs, runs, false},
		"the record of one is gone": {waits, runs, runs, runs, true},
	} {
		c.init.Name, c.side.Name, c.a.Name, c.b.Name = "init", "side", "a", "b"
		status := &v1.PodStatus{
			Phase:                 v1.PodRunning,
			InitContainerStatuses: []v1.ContainerStatus{c.init, c.side},
			ContainerStatuses:     []v1.ContainerStatus{c.a, c.b},
		}
		if got := w.reached(status); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// conditions returns a pod's status with conditions.
func conditions(all ...v1.PodCondition) *v1.PodStatus {
	return &v1.PodStatus{Phase: v1.PodRunning, Conditions: all}
}

// TestGoals checks which phases and conditions reach which goal.
func TestGoals(t *testing.T) {
	ready := conditions(
		v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue},
		v1.PodCondition{Type: "Custom", Status: v1.ConditionFalse},
	)
	unready := conditions(v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse})
	succeeded, failed := &v1.PodStatus{Phase: v1.PodSucceeded}, &v1.PodStatus{Phase: v1.PodFailed}
	pending := &v1.PodStatus{Phase: v1.PodPending}
	for _, c := range []struct {
		goal   Goal
		status *v1.PodStatus
		want   bool
	}{
		{Ready, ready, true},
		{Ready, unready, false},
		{Ready, succeeded, true},
		{Ready, failed, false},
		{Completed, succeeded, true},
		{Completed, failed, true},
		{Completed, ready, false},
		{Started, ready, true},
		{Started, pending, false},
		{Started, succeeded, false},
		{Deleted, succeeded, false},
		{"condition=Ready", ready, true},
		{"condition=ready=TRUE", ready, true},
		{"condition=Ready", unready, false},
		{"condition=Ready=False", unready, true},
		{"condition=Custom=false", ready, true},
		{"condition=Custom", ready, false},
		{"condition=Other=False", ready, false},
	} {
		w := &podWait{goal: c.goal, desired: &podspec.Desired{Pod: &v1.Pod{}}}
		if got := w.reached(c.status); got != c.want {
			t.Errorf("%s of a pod that is %s %v: %t", c.goal, c.status.Phase, c.status.Conditions, got)
		}
	}
}

// TestHoldsThatEndAWait checks that a hold that time cannot end ends the wait, but not a network that is not ready or a
// probe that runs again.
func TestHoldsThatEndAWait(t *testing.T) {
	soon := time.Now().Add(time.Hour)
	for reason, c := range map[model.Reason]struct {
		until *time.Time
		ends  bool
	}{
		model.ErrImageNeverPull: {nil, true}, model.CreateContainerConfigError: {nil, true}, model.HostPortConflict: {nil, true},
		model.CrashLoopBackOff: {&soon, false}, model.NetworkNotReady: {nil, false}, model.ProbeStale: {nil, false},
	} {
		p := &plan.Plan{Holds: []plan.Hold{
			{Reason: model.NetworkNotReady},
			{Container: "a", Reason: reason, Until: c.until, Message: "so it is", Blocking: c.ends},
		}}
		w, _ := at(time.Now(), loadPod(t, onePod()), Ready)
		_, err := w.judge(&plan.Input{Input: podstatus.Input{Desired: w.desired}}, &v1.PodStatus{Phase: v1.PodPending}, p)
		blocked := (*BlockedError)(nil)
		if errors.As(err, &blocked) != c.ends {
			t.Errorf("%s: %v", reason, err)
		}
		if c.ends && err.Error() != "pod default/web cannot become ready: container a: "+string(reason)+": so it is" {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// TestWaitErrorNamesAllFailures checks that the error names each held container and other failures.
func TestWaitErrorNamesAllFailures(t *testing.T) {
	hold := func(name string) plan.Hold {
		return plan.Hold{Container: name, Reason: model.CreateContainerConfigError, Message: name + " lacks it", Blocking: true}
	}
	p := &plan.Plan{Holds: []plan.Hold{hold("a"), {Container: "c", Reason: model.ProbeStale}, hold("b")}}
	w, _ := at(time.Now(), loadPod(t, onePod()), Ready)
	w.trouble = []string{"pod default/web: container d: no"}
	_, err := w.judge(&plan.Input{Input: podstatus.Input{Desired: w.desired}}, &v1.PodStatus{Phase: v1.PodPending}, p)
	held := "container a: CreateContainerConfigError: a lacks it; container b: CreateContainerConfigError: b lacks it"
	if want := "pod default/web cannot become ready: " + held + "; container d: no"; err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
	outcome := &executor.Outcome{Plan: p, Failed: []executor.StepError{
		{Pod: model.RefOf(w.desired.Pod), Step: &plan.Step{Kind: plan.RunSandbox}, Reason: "R", Err: errors.New("no")},
	}}
	if err = w.failed(outcome); err == nil || !strings.HasSuffix(err.Error(), ": no; "+held) {
		t.Errorf("after a failure: %v", err)
	}
}

// TestReachedGoals checks that a goal counts once nothing is left to do.
func TestReachedGoals(t *testing.T) {
	over := &v1.PodStatus{Phase: v1.PodSucceeded}
	for pending, steps := range map[bool][]plan.Step{false: nil, true: {{ID: "stop-sandbox"}}} {
		w, _ := at(time.Now(), loadPod(t, onePod()), Completed)
		done, err := w.judge(&plan.Input{Input: podstatus.Input{Desired: w.desired}}, over, &plan.Plan{Steps: steps})
		if err != nil || done == pending || w.pending != pending || !w.over {
			t.Errorf("with %d steps to do: done %t, %v", len(steps), done, err)
		}
	}
}

// TestFailedPodsThatCompleted checks that a failed pod is a separate error, which names the containers and why they
// could not start.
func TestFailedPodsThatCompleted(t *testing.T) {
	ended := func(name, reason string, code int32) v1.ContainerStatus {
		return v1.ContainerStatus{Name: name, State: v1.ContainerState{
			Terminated: &v1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: "no such file"},
		}}
	}
	for want, status := range map[string]*v1.PodStatus{
		"": {Phase: v1.PodSucceeded},
		"pod default/web has ended as Failed: a exited 3, b exited 128 (StartError: no such file), c exited 137 (OOMKilled)": {
			Phase: v1.PodFailed, ContainerStatuses: []v1.ContainerStatus{
				ended("a", "Error", 3), ended("b", "StartError", 128), ended("c", "OOMKilled", 137),
				ended("d", "Completed", 0),
			},
		},
		"pod default/web has ended as Failed (DeadlineExceeded)": {Phase: v1.PodFailed, Reason: "DeadlineExceeded"},
	} {
		w, _ := at(time.Now(), loadPod(t, onePod()), Completed)
		done, err := w.judge(&plan.Input{Input: podstatus.Input{Desired: w.desired}}, status, &plan.Plan{})
		failed := (*FailedError)(nil)
		if !done || errors.As(err, &failed) != (want != "") || (want != "" && err.Error() != want) {
			t.Errorf("done %t, %v, want %q", done, err, want)
		}
		unfinished := &plan.Plan{Steps: []plan.Step{{ID: "stop-sandbox"}}}
		done, err = w.judge(&plan.Input{Input: podstatus.Input{Desired: w.desired}}, status, unfinished)
		if done || err != nil {
			t.Errorf("with something left to do: done %t, %v", done, err)
		}
	}
}

// TestPodsThatEnded checks that a failed pod becomes neither started nor ready, that a succeeded pod is not started,
// and that the error names the failed containers.
func TestPodsThatEnded(t *testing.T) {
	ended := func(name string, code int32) v1.ContainerStatus {
		return v1.ContainerStatus{Name: name, State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code}}}
	}
	failed := &v1.PodStatus{
		Phase:                 v1.PodFailed,
		InitContainerStatuses: []v1.ContainerStatus{ended("i", 2)},
		ContainerStatuses:     []v1.ContainerStatus{ended("a", 1), ended("b", 0), {Name: "c"}},
	}
	for _, c := range []struct {
		goal   Goal
		status *v1.PodStatus
		want   string
	}{
		{Ready, failed, "Failed: i exited 2, a exited 1"},
		{Started, failed, "Failed: i exited 2, a exited 1"},
		{Started, &v1.PodStatus{Phase: v1.PodSucceeded}, "Succeeded"},
		{"condition=Custom", failed, "Failed: i exited 2, a exited 1"},
	} {
		w, _ := at(time.Now(), loadPod(t, onePod()), c.goal)
		_, err := w.judge(&plan.Input{Input: podstatus.Input{Desired: w.desired}}, c.status, &plan.Plan{})
		if err == nil || !strings.HasSuffix(err.Error(), ": the pod has ended as "+c.want) {
			t.Errorf("%s: %v, want %q", c.goal, err, c.want)
		}
	}
}

// TestContainersThatEndedForGood checks that a failed container ends a wait. A succeeded one ends it if the pod can
// never succeed. Otherwise the wait is announced once.
func TestContainersThatEndedForGood(t *testing.T) {
	two := pod("  containers: [{name: a, image: 'i:1'}, {name: b, image: 'i:1'}]\n")
	always := strings.Replace(never(two), "{name: b, image: 'i:1'}", "{name: b, image: 'i:1', restartPolicy: Always}", 1)
	keeps := []plan.Keep{{Container: "a"}}
	for name, c := range map[string]struct {
		text     string
		goal     Goal
		code     int32
		keeps    []plan.Keep
		want     string
		reported int
	}{
		"the container failed":                        {never(two), Ready, 1, keeps, "container a has exited 1 and is not restarted", 0},
		"the container failed, and only has to start": {never(two), Started, 1, keeps, "container a has exited 1 and is not restarted", 0},
		"the container is started again":              {never(two), Ready, 1, nil, "", 0},
		"its end is waited for":                       {never(two), Completed, 1, keeps, "", 0},
		"the container has done its work":             {never(two), Ready, 0, keeps, "", 1},
		"the container was started":                   {never(two), Started, 0, keeps, "", 0},
		"the pod can never succeed":                   {always, Ready, 0, keeps, "container a has exited 0 and is not restarted", 0},
		"the pod only has to start":                   {always, Started, 0, keeps, "", 0},
	} {
		w, reported := at(time.Now(), loadPod(t, c.text), c.goal)
		status := &v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{
			{Name: "a", State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: c.code}}},
			{Name: "b", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}},
		}}
		for range 2 {
			err := w.finished(status, &plan.Plan{Keeps: c.keeps})
			if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		}
		if len(*reported) != c.reported || (c.reported > 0 &&
			!strings.HasPrefix((*reported)[0], "pod default/web: waiting: container a has exited 0")) {
			t.Errorf("%s: reported %q", name, *reported)
		}
		status.Conditions = []v1.PodCondition{{Type: v1.AllContainersRestarting}}
		if failed, done := endedForGood(status, &plan.Plan{Keeps: c.keeps}); len(failed)+len(done) > 0 {
			t.Errorf("%s: while all are restarted: %v, %v", name, failed, done)
		}
	}
}

// TestNextChangeOfAWait checks the first time at which something changes by itself, and the text of what is missing.
func TestNextChangeOfAWait(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.Local)
	in := func(d time.Duration) *time.Time { when := now.Add(d); return &when }
	w, _ := at(now, loadPod(t, strings.Replace(onePod(), "spec:\n", "spec:\n  activeDeadlineSeconds: 60\n", 1)), Ready)
	status := &v1.PodStatus{Phase: v1.PodRunning, StartTime: &metav1.Time{Time: now.Add(-10 * time.Second)}}
	p := &plan.Plan{WaitingFor: []string{"a to end"}, Holds: []plan.Hold{
		{Container: "a", Reason: model.CrashLoopBackOff, Until: in(40 * time.Second), Message: "back-off 40s"},
		{Reason: model.NetworkNotReady, Message: "the network is not ready"},
	}}
	if done, err := w.judge(&plan.Input{Input: podstatus.Input{Desired: w.desired}}, status, p); done || err != nil {
		t.Fatal(done, err)
	}
	want := []string{"a to end", "container a, held until 12:00:40 (back-off 40s)", "the network is not ready"}
	if diff := cmp.Diff(want, w.missing); diff != "" || !w.until.Equal(*in(40 * time.Second)) {
		t.Errorf("until %v; waiting for (-want +got)\n%s", w.until, diff)
	}
	// The deadline comes before the hold.
	status.StartTime.Time = now.Add(-50 * time.Second)
	if _, err := w.judge(&plan.Input{Input: podstatus.Input{Desired: w.desired}}, status, p); err != nil ||
		!w.until.Equal(*in(10 * time.Second)) {
		t.Errorf("until %v, %v", w.until, err)
	}
	// A failure that may go away is listed first, and retried first.
	w.trouble, w.retryAt = []string{"the registry is away"}, *in(time.Second)
	if _, err := w.judge(&plan.Input{Input: podstatus.Input{Desired: w.desired}}, status, p); err != nil ||
		!w.until.Equal(w.retryAt) || w.missing[0] != "the registry is away" {
		t.Errorf("until %v, waiting for %v, %v", w.until, w.missing, err)
	}
}

// TestProbeMessages checks that a pod without other obstacles shows the message of its condition, and those of the
// probes of its newest containers that have not passed.
func TestProbeMessages(t *testing.T) {
	w, _ := at(time.Now(), loadPod(t, onePod()), Ready)
	in := &plan.Input{Input: podstatus.Input{Desired: w.desired, Observed: model.Observed{
		Containers: []model.Container{{ID: "old", Name: "a", RestartCount: 0}, {ID: "new", Name: "a", RestartCount: 1}},
		Memory: model.Memory{Probes: map[string]map[model.ProbeType]model.ProbeRecord{
			"old": {model.Liveness: {Result: model.ProbeFailure, Message: "of an earlier run"}},
			"new": {
				model.Readiness: {Result: model.ProbeFailure, Message: "connection refused"},
				model.Liveness:  {Result: model.ProbeSuccess, Message: "ok"},
				model.Startup:   {Result: model.ProbeUnknown},
			},
		}},
	}}}
	status := conditions(v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse, Message: "containers with unready status: [a]"})
	want := []string{"containers with unready status: [a]", "readiness probe of a: connection refused"}
	if _, err := w.judge(in, status, &plan.Plan{}); err != nil || !slices.Equal(w.missing, want) {
		t.Errorf("waiting for %q, %v", w.missing, err)
	}
	if got := unready(in, &v1.PodStatus{Phase: v1.PodPending}); got[0] != "phase Pending" {
		t.Errorf("without a condition: %q", got)
	}
}
