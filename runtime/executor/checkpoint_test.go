package executor

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/state"
)

// TestCheckpointBeforeTheSteps checks that the manifest and the intended resources are recorded before anything
// happens. Another manifest increases the generation, the same one does not.
func TestCheckpointBeforeTheSteps(t *testing.T) {
	l := newLab(t, "i:1", "i:2")
	p := l.plan(model.PodRef{}, onePod())
	if err := p.execution(Options{}).checkpoint.begin(); err != nil {
		t.Fatal(err)
	}
	j := l.checkpoint(p.in.Pod)
	if len(l.server.Calls()) > 0 || !j.Applied.SameAs(p.in.Desired) || j.Generation != 1 ||
		!j.StartTime.Equal(l.clock.Now()) || j.Endpoint != l.client.Endpoint.Address {
		t.Errorf("after %v: generation %d, started %v, at %s", l.server.Calls(), j.Generation, j.StartTime, j.Endpoint)
	}
	if _, sandbox := j.InFlight[state.ThePod]; !sandbox || len(j.InFlight) != 2 || j.InFlight["a"].Resources == nil || j.Backoffs == nil {
		t.Errorf("InFlight %+v, back-offs %v", j.InFlight, j.Backoffs)
	}
	started := l.clock.Now()
	l.apply(onePod())
	if j = l.checkpoint(p.in.Pod); j.Generation != 1 {
		t.Errorf("generation %d after the same manifest was applied again", j.Generation)
	}
	l.clock.Advance(time.Hour)
	l.apply(strings.Replace(onePod(), "i:1", "i:2", 1))
	if j = l.checkpoint(p.in.Pod); j.Generation != 2 || !j.StartTime.Equal(started) || !j.AppliedAt.Equal(l.clock.Now()) {
		t.Errorf("after another manifest: generation %d, started %v, applied %v", j.Generation, j.StartTime, j.AppliedAt)
	}
}

// TestAdoptedPodKeepsItsAge checks that a running pod without a checkpoint, which a kubelet may have left, is as old as
// its sandbox.
func TestAdoptedPodKeepsItsAge(t *testing.T) {
	l := newLab(t, "i:1")
	ref := l.apply(onePod()).in.Pod
	started := l.clock.Now()
	if err := os.Remove(l.layout.Pod(ref.UID).Checkpoint().Path()); err != nil {
		t.Fatal(err)
	}
	l.clock.Advance(time.Hour)
	if outcome, err := l.plan(ref, onePod()).run(Options{}); err != nil || outcome.Err() != nil {
		t.Fatal(err, outcome.Err())
	}
	if j := l.checkpoint(ref); j.StartTime.Sub(started).Abs() > time.Minute || !j.AppliedAt.Equal(l.clock.Now()) {
		t.Errorf("started %v, applied %v; want %v and now", j.StartTime, j.AppliedAt, started)
	}
}

// TestPodMovesToAnotherRuntime checks that the same manifest on another runtime is recorded there, even if there
// is nothing to do.
func TestPodMovesToAnotherRuntime(t *testing.T) {
	l := newLab(t, "i:1")
	ref := l.apply(onePod()).plan.Pod
	for elsewhere, here := range map[bool]string{true: "another", false: l.client.Endpoint.Address} {
		p := l.plan(ref, onePod())
		x := p.execution(Options{}).checkpoint
		x.record.Endpoint = "another"
		x.plan.Steps = nil
		if !elsewhere {
			x.snapshot.Sandboxes, x.snapshot.Containers = nil, nil
		}
		if err := x.begin(); err != nil {
			t.Fatal(err)
		}
		if x.record.Endpoint != here || x.record.Generation != 1 {
			t.Errorf("records in this runtime %t: endpoint %s, generation %d", elsewhere, x.record.Endpoint, x.record.Generation)
		}
	}
}

// TestTheSourceAppliedLastIsKept checks that the file that was applied last is recorded, even if its content is the
// same.
func TestTheSourceAppliedLastIsKept(t *testing.T) {
	l := newLab(t, "i:1")
	ref := l.apply(onePod()).plan.Pod
	x := l.plan(ref, onePod()).execution(Options{}).checkpoint
	x.plan.Steps, x.desired.Source = nil, "/elsewhere.yaml"
	if err := x.begin(); err != nil {
		t.Fatal(err)
	}
	if j := l.checkpoint(ref); j.Source != "/elsewhere.yaml" || j.Generation != 1 {
		t.Errorf("source %q, generation %d", j.Source, j.Generation)
	}
}

// TestUnrecordableStepsDoNotRun checks that a full disk prevents the start of a pod. A deletion, which frees
// disk space, continues with a warning.
func TestUnrecordableStepsDoNotRun(t *testing.T) {
	l := newLab(t, "i:1")
	p := l.plan(model.PodRef{}, onePod())
	path := l.layout.Pod(p.in.Pod.UID).Checkpoint().Path()
	restore := blocked(t, path)
	if _, err := p.run(Options{}); err == nil || !strings.Contains(err.Error(), "pod default/web") || len(l.server.Calls()) > 0 {
		t.Errorf("error %v after %v", err, l.server.Calls())
	}
	restore()
	l.apply(onePod())
	p = l.plan(p.in.Pod, "")
	blocked(t, path)
	_, err := p.run(Options{})
	if warned := l.warnings(); l.count("RemovePodSandbox") != 1 || len(warned) == 0 ||
		!strings.Contains(warned[0], "could not be marked as being deleted") {
		t.Errorf("deletion: %v, warnings %q, calls %v", err, warned, l.server.Calls())
	}
}

// TestUnrecordableEvictions checks that a pod ends although this cannot be recorded, because a full disk must not prevent
// what frees it. The pass fails, so that it is repeated.
func TestUnrecordableEvictions(t *testing.T) {
	for name, opts := range map[string]plan.Options{
		"eviction": {Evict: &model.Eviction{Signal: "nodefs.available"}},
		"deletion": {End: true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, "i:1")
			p := l.apply(onePod())
			p.in.Options = opts
			p.plan = plan.Make(p.in)
			blocked(t, l.layout.Pod(p.in.Pod.UID).Checkpoint().Path())
			outcome, err := p.run(Options{})
			if err == nil {
				err = outcome.Err()
			}
			if warned := l.warnings(); err == nil || l.count("StopPodSandbox") != 1 || len(warned) == 0 ||
				!strings.Contains(warned[0], "could not be recorded") {
				t.Errorf("%v, warnings %q, calls %v", err, warned, l.server.Calls())
			}
		})
	}
}

// blocked replaces a file by a directory that is not empty.
func blocked(t *testing.T, path string) (restore func()) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(path), os.MkdirAll(path+"/in the way", 0o700)); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDeletionIsRecordedUntilDone checks that a deletion is recorded with the longest grace period before anything
// stops, and that the checkpoint is removed only after every step was done.
func TestDeletionIsRecordedUntilDone(t *testing.T) {
	l := newLab(t, "i:1")
	ref := l.apply(onePod()).in.Pod
	l.server.Fail(runtimetest.Fault{Method: "RemovePodSandbox", Times: 1, Err: errors.New("injected failure")})
	p := l.plan(ref, "")
	marked := (*model.Deletion)(nil)
	outcome, err := p.run(Options{Begun: func() { marked = l.checkpoint(ref).Deletion }})
	if err != nil || outcome.Err() == nil {
		t.Fatal(err, outcome.Err())
	}
	if marked == nil || !marked.At.Equal(l.clock.Now()) || marked.GracePeriodSeconds != p.plan.LongestGrace() {
		t.Errorf("deletion mark %+v", marked)
	}
	if j := l.checkpoint(ref); j.Applied == nil || j.Deletion == nil {
		t.Errorf("no deletion mark after a failed deletion: %+v", j)
	}
	if outcome, err = l.plan(ref, "").run(Options{}); err != nil || outcome.Err() != nil {
		t.Fatal(err, outcome.Err())
	}
	if j := l.checkpoint(ref); j.Applied != nil || j.Generation != 0 {
		t.Errorf("a deleted pod still has a checkpoint: %+v", j)
	}
	l.plan(ref, "").run(Options{}) //nolint:errcheck // it has nothing to do
	if j := l.checkpoint(ref); j.Deletion != nil {
		t.Error("a pod that does not exist has a deletion mark")
	}
}

// TestApplyCancelsDeletion checks that applying a pod cancels an unfinished deletion with a new generation, although
// the manifest is the same.
func TestApplyCancelsDeletion(t *testing.T) {
	l := newLab(t, "i:1")
	p := l.apply(onePod())
	if err := l.plan(p.in.Pod, "").execution(Options{}).checkpoint.begin(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.plan(model.PodRef{}, onePod()).run(Options{}); err != nil {
		t.Fatal(err)
	}
	if j := l.checkpoint(p.in.Pod); j.Deletion != nil || j.Generation != 2 {
		t.Errorf("deletion %+v, generation %d", j.Deletion, j.Generation)
	}
}

// TestStartsAreRecorded checks that a failure is recorded with the kubelet's reason until the container starts, and
// that each start after an exit increases the restart delay.
func TestStartsAreRecorded(t *testing.T) {
	l := newLab(t, "i:1")
	l.server.Behave("a", runtimetest.Behaviour{After: time.Second, ExitCode: 1}, runtimetest.Behaviour{StartError: "no such program"})
	ref := l.apply(onePod()).in.Pod
	if j := l.checkpoint(ref); len(j.Backoffs) > 0 || len(j.StartErrors) > 0 {
		t.Errorf("after the first start: %+v, %+v", j.Backoffs, j.StartErrors)
	}
	l.clock.Advance(2 * time.Second)
	outcome, err := l.plan(model.PodRef{}, onePod()).run(Options{})
	if err != nil || outcome.Err() == nil {
		t.Fatal(err, outcome.Err())
	}
	j := l.checkpoint(ref)
	if e := j.StartErrors["a"]; e.Reason != "RunContainerError" || !strings.Contains(e.Message, "no such program") ||
		!e.At.Equal(l.clock.Now()) {
		t.Errorf("recorded failure %+v", e)
	}
	if b := j.Backoffs["a"]; b.Duration != model.BackoffInitial || !b.LastUpdate.Equal(l.clock.Now()) || b.Key == "" {
		t.Errorf("restart delay %+v", b)
	}
	l.clock.Advance(time.Minute)
	l.apply(onePod())
	if j = l.checkpoint(ref); len(j.StartErrors) > 0 || j.Backoffs["a"].Duration != 2*model.BackoffInitial {
		t.Errorf("after a successful start: failures %+v, restart delays %+v", j.StartErrors, j.Backoffs)
	}
	// Another definition resets the delay.
	x := l.plan(model.PodRef{}, strings.Replace(onePod(), "i:1", "i:2", 1)).execution(Options{})
	other, _ := podspec.FindContainer(x.desired.Pod, "a")
	x.start.noteTry(other)
	if b := x.checkpoint.record.Backoffs["a"]; b.Duration != model.BackoffInitial {
		t.Errorf("restart delay of an edited container %+v", b)
	}
}

// TestRecordedFailuresContainNoSecrets checks that recorded failures contain no values of Secrets.
func TestRecordedFailuresContainNoSecrets(t *testing.T) {
	l := newLab(t, "i:1")
	text := pod("  containers: [{name: a, image: 'i:1', env: [{name: P, valueFrom: {secretKeyRef: {name: s, key: p}}}]}]\n") +
		"---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {p: correct horse}\n"
	x := l.plan(model.PodRef{}, text).execution(Options{})
	x.checkpoint.noteFailure("a", model.WithReason("X", errors.New("failed with correct horse")))
	if e := x.checkpoint.record.StartErrors["a"]; e.Reason != "X" || strings.Contains(e.Message, "correct horse") ||
		!strings.Contains(e.Message, "failed with") {
		t.Errorf("recorded: %+v", e)
	}
}

// TestHoldsAreRecordedOnce checks that the same hold is recorded once, and that holds that end by time are not
// recorded.
func TestHoldsAreRecordedOnce(t *testing.T) {
	l := newLab(t, "i:1")
	x := l.plan(model.PodRef{}, onePod()).execution(Options{})
	x.plan.Holds = []plan.Hold{
		{Container: "a", Reason: model.ErrImageNeverPull, Message: "image i:1 is not present", Unstartable: true},
		{Container: "b", Reason: model.CrashLoopBackOff, Message: "back-off 10s"},
	}
	if !x.checkpoint.noteHolds() || x.checkpoint.noteHolds() {
		t.Error("noteHolds must report a change only for a new hold")
	}
	if errs := x.checkpoint.record.StartErrors; len(errs) != 1 || errs["a"].Reason != model.ErrImageNeverPull {
		t.Errorf("recorded: %+v", errs)
	}
	x.plan.Holds[0].Message = "another"
	if !x.checkpoint.noteHolds() {
		t.Error("noteHolds does not report a new message as a change")
	}
	x.plan.Holds[0].Status = "as a kubelet says it"
	if !x.checkpoint.noteHolds() || x.checkpoint.noteHolds() || x.checkpoint.record.StartErrors["a"].Message != "as a kubelet says it" {
		t.Errorf("recorded: %+v", x.checkpoint.record.StartErrors)
	}
}

// TestCompletionIsRecorded checks that a finished pod stays finished if the runtime loses its records, also if a pass
// had nothing else to do.
func TestCompletionIsRecorded(t *testing.T) {
	l := newLab(t, "i:1")
	l.server.Behave("a", runtimetest.Behaviour{After: time.Second, ExitCode: 3})
	never := strings.Replace(onePod(), "spec:\n", "spec:\n  restartPolicy: Never\n", 1)
	p := l.plan(model.PodRef{}, never)
	if _, err := p.run(Options{}); err != nil {
		t.Fatal(err)
	}
	if j := l.checkpoint(p.in.Pod); j.Completion != nil {
		t.Errorf("a running pod has a recorded completion: %+v", j.Completion)
	}
	l.clock.Advance(time.Minute)
	p = l.plan(model.PodRef{}, never)
	p.plan.Steps = nil
	if _, err := p.run(Options{}); err != nil {
		t.Fatal(err)
	}
	c := l.checkpoint(p.in.Pod).Completion
	if c == nil || c.Phase != v1.PodFailed || c.DesiredDigest != p.in.Desired.Digest() || !c.At.Equal(l.clock.Now()) {
		t.Fatalf("recorded: %+v", c)
	}
	if end := c.Containers["a"]; len(c.Containers) != 1 || end.ExitCode != 3 || end.Reason != "Error" || end.ID == "" ||
		end.FinishedAt.IsZero() {
		t.Errorf("recorded ends of containers: %+v", c.Containers)
	}
	l.clock.Advance(time.Minute)
	l.apply(never)
	if again := l.checkpoint(p.in.Pod).Completion; !again.At.Equal(c.At) {
		t.Errorf("the time of completion has changed to %v", again.At)
	}
}

// TestCompletionIsRecordedBeforeTheTeardown checks that the resources of a finished pod are free before its sandbox
// is stopped, so that no other pod is rejected.
func TestCompletionIsRecordedBeforeTheTeardown(t *testing.T) {
	l := newLab(t, "i:1")
	l.server.Behave("a", runtimetest.Behaviour{After: time.Second})
	never := strings.Replace(onePod(), "spec:\n", "spec:\n  restartPolicy: Never\n", 1)
	if _, err := l.plan(model.PodRef{}, never).run(Options{}); err != nil {
		t.Fatal(err)
	}
	l.clock.Advance(time.Minute)
	p := l.plan(model.PodRef{}, never)
	if len(p.plan.Steps) == 0 {
		t.Fatal("the plan stops nothing")
	}
	x := p.execution(Options{})
	if err := x.checkpoint.begin(); err != nil {
		t.Fatal(err)
	}
	if c := l.checkpoint(p.in.Pod).Completion; c == nil || c.Phase != v1.PodSucceeded {
		t.Errorf("completion recorded before the first step: %+v", c)
	}
}

// TestLastRunIsRecorded checks that containers that run after a pass are recorded by ID, and that containers that the
// pass stopped are not reported as missing.
func TestLastRunIsRecorded(t *testing.T) {
	l := newLab(t, "i:1", "i:2")
	two := pod("  containers: [{name: a, image: 'i:1'}, {name: b, image: 'i:1'}]\n")
	ref := l.apply(two).in.Pod
	first := l.checkpoint(ref).LastRun
	if first == nil || first.Sandbox == "" || len(first.Containers) != 2 {
		t.Fatalf("after the first pass: %+v", first)
	}
	l.apply(strings.Replace(two, "name: b, image: 'i:1'", "name: b, image: 'i:2'", 1))
	second := l.checkpoint(ref).LastRun
	if second.Sandbox != first.Sandbox || second.Containers["a"] != first.Containers["a"] ||
		second.Containers["b"] == first.Containers["b"] {
		t.Errorf("after b was replaced: %+v, before %+v", second, first)
	}
	removed := pod("  containers: [{name: a, image: 'i:1'}]\n")
	l.apply(removed)
	if third := l.checkpoint(ref).LastRun; len(third.Containers) != 1 || third.Containers["a"] != first.Containers["a"] {
		t.Errorf("after b was removed: %+v", third)
	}
	l.apply(strings.Replace(removed, "spec:\n", "spec:\n  hostname: other\n", 1))
	if fourth := l.checkpoint(ref).LastRun; fourth.Sandbox == first.Sandbox || fourth.Containers["a"] == first.Containers["a"] {
		t.Errorf("after the sandbox was replaced: %+v", fourth)
	}
}

// TestLastRunOfStepsThatFailed checks that a container whose stop failed counts as running, and that a stopped sandbox
// ends all its containers.
func TestLastRunOfStepsThatFailed(t *testing.T) {
	l := newLab(t, "i:1")
	p := l.apply(onePod())
	x := l.plan(model.PodRef{}, onePod()).execution(Options{})
	id := p.snapshot.Containers[0].Status.GetId()
	ips := p.in.Observed.Sandboxes[0].IPs
	x.plan.Steps = []plan.Step{
		{ID: "stop-a", Kind: plan.StopContainer, Container: "a", ContainerID: id},
		{ID: "stop-sandbox", Kind: plan.StopSandbox, SandboxID: p.plan.SandboxID},
	}
	stop, sandbox := &x.plan.Steps[0], &x.plan.Steps[1]
	for name, c := range map[string]struct {
		results results
		want    model.LastRun
	}{
		"nothing was done": {
			results{skipped: []*plan.Step{stop, sandbox}},
			model.LastRun{Sandbox: p.plan.SandboxID, IPs: ips, Containers: map[string]string{"a": id}},
		},
		"the stop failed": {
			results{failed: []StepError{{Step: stop}}, skipped: []*plan.Step{sandbox}},
			model.LastRun{Sandbox: p.plan.SandboxID, IPs: ips, Containers: map[string]string{"a": id}},
		},
		"only it was stopped": {
			results{failed: []StepError{{Step: sandbox}}},
			model.LastRun{Sandbox: p.plan.SandboxID, IPs: ips, Containers: map[string]string{}},
		},
		"all was stopped": {results{}, model.LastRun{IPs: ips, Stopped: []string{p.plan.SandboxID}}},
	} {
		x.checkpoint.record.LastRun = nil
		x.checkpoint.noteLastRun(&c.results)
		if diff := cmp.Diff(&c.want, x.checkpoint.record.LastRun); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
	// A sandbox that an earlier pass stopped stays recorded as stopped.
	stopped := []string{"gone", p.plan.SandboxID}
	x.checkpoint.record.LastRun = &model.LastRun{IPs: []string{"10.0.0.9"}, Stopped: stopped}
	x.plan.Steps = nil
	x.checkpoint.outputs.setSandbox(sandboxOutput{})
	x.checkpoint.noteLastRun(&results{})
	if got := x.checkpoint.record.LastRun; !slices.Equal(got.Stopped, []string{p.plan.SandboxID}) ||
		!slices.Equal(got.IPs, []string{"10.0.0.9"}) {
		t.Errorf("after another pass: %+v", got)
	}
}

// TestResetContainers checks that containers reset by a restart of all containers are recorded until they start, also
// over several passes.
func TestResetContainers(t *testing.T) {
	p := &plan.Plan{Steps: []plan.Step{
		{ID: "1", Kind: plan.RemoveContainer, Container: "a", RestartsAll: true},
		{ID: "2", Kind: plan.RemoveContainer, Container: "b", RestartsAll: true},
		{ID: "3", Kind: plan.RemoveContainer, Container: "c", Reason: model.Superseded},
		{ID: "4", Kind: plan.RemoveContainer, Container: "d", RestartsAll: true},
	}}
	before := &model.LastRun{Reset: []string{"e", "b", "f"}, AfterReset: []string{"b", "g"}}
	failed := &results{failed: []StepError{{Step: &p.Steps[3]}}}
	reset, since := resetContainers(p, failed, before, map[string]string{"a": "id", "c": "id", "f": "id"})
	if !slices.Equal(reset, []string{"b", "e"}) || !slices.Equal(since, []string{"a", "f", "g"}) {
		t.Errorf("reset %v, started since %v", reset, since)
	}
}

// TestPendingRestartsAreRecorded checks that a stopped container that must run again is recorded until it starts,
// also over several passes.
func TestPendingRestartsAreRecorded(t *testing.T) {
	l := newLab(t, "i:1", "i:2")
	p := l.apply(onePod())
	id, other := p.snapshot.Containers[0].Status.GetId(), strings.Replace(onePod(), "i:1", "i:2", 1)
	l.server.Fail(runtimetest.Fault{Method: "StartContainer", Times: 1, Err: errors.New("injected failure")})
	if outcome, err := l.plan(model.PodRef{}, other).run(Options{}); err != nil || outcome.Err() == nil {
		t.Fatal(err, outcome.Err())
	}
	if pending := l.checkpoint(p.in.Pod).PendingRestarts; pending["a"] != id {
		t.Errorf("pending restarts after a failed start: %v, want %s", pending, id)
	}
	x := l.plan(model.PodRef{}, other).execution(Options{})
	x.plan.Steps = nil
	x.checkpoint.notePendingRestarts()
	if pending := x.checkpoint.record.PendingRestarts; pending["a"] != id {
		t.Errorf("pending restarts after a pass without that step: %v", pending)
	}
	l.apply(other)
	if pending := l.checkpoint(p.in.Pod).PendingRestarts; len(pending) > 0 {
		t.Errorf("pending restarts after the start: %v", pending)
	}
}

// resourcePod has one container with a cpu limit.
func resourcePod(cpu string) string {
	return pod("  containers: [{name: a, image: 'i:1', resources: {limits: {cpu: " + cpu + "}}}]\n")
}

// TestRecordedResources checks that the recorded resources are those the container was started or resized with, not
// those of a manifest that is only desired.
func TestRecordedResources(t *testing.T) {
	l := newLab(t, "i:1", "i:2")
	p := l.apply(resourcePod("1"))
	inForce := func() string {
		t.Helper()
		limits := l.checkpoint(p.in.Pod).Actuated.Containers["a"].Limits
		return limits.Cpu().String()
	}
	if got := inForce(); got != "1" {
		t.Errorf("recorded resources after the start: %s", got)
	}
	l.server.Fail(runtimetest.Fault{Method: "UpdateContainerResources", Times: 1, Err: errors.New("injected failure")})
	outcome, err := l.plan(model.PodRef{}, resourcePod("2")).run(Options{})
	if err != nil || outcome.Err() == nil || outcome.Failed[0].Reason != "ResizePodInPlaceError" {
		t.Fatal(err, outcome.Err())
	}
	if got := inForce(); got != "1" {
		t.Errorf("recorded resources after a failed resize: %s", got)
	}
	l.apply(resourcePod("2"))
	if got := inForce(); got != "2" {
		t.Errorf("recorded resources after a resize: %s", got)
	}
	l.apply(strings.Replace(resourcePod("3"), "i:1", "i:2", 1))
	if got := inForce(); got != "3" {
		t.Errorf("recorded resources after a replacement: %s", got)
	}
}

// TestResourcesOfAdoptedPods checks that an adopted pod has its own resources, so that they are not seen as a resize.
func TestResourcesOfAdoptedPods(t *testing.T) {
	l := newLab(t, "i:1")
	x := l.plan(model.PodRef{}, onePod()).execution(Options{})
	x.desired.Pod.Spec.Resources = &v1.ResourceRequirements{}
	x.plan.Steps = []plan.Step{{ID: "a", Kind: plan.UpdateVolume}}
	x.checkpoint.noteInFlight(nil)
	if x.checkpoint.record.Actuated.Pod != x.desired.Pod.Spec.Resources {
		t.Error("the pod's own resources are not recorded")
	}
}

// TestResourcesOfPodsAreRecordedLast checks that the pod's own resources change after the whole plan is done.
func TestResourcesOfPodsAreRecordedLast(t *testing.T) {
	l := newLab(t, "i:1")
	x := l.plan(model.PodRef{}, onePod()).execution(Options{})
	wanted := &v1.ResourceRequirements{}
	x.desired.Pod.Spec.Resources = wanted
	x.plan.Steps = []plan.Step{{ID: "pod", Kind: plan.UpdatePod}, {ID: "a", Kind: plan.UpdateContainer}}
	x.checkpoint.noteInFlight(nil)
	x.checkpoint.noteResizedPod(&results{skipped: []*plan.Step{&x.plan.Steps[1]}})
	if x.checkpoint.record.Actuated.Pod != nil {
		t.Error("the pod's resources are recorded although a resize of a container failed")
	}
	x.checkpoint.noteResizedPod(&results{})
	if x.checkpoint.record.Actuated.Pod != wanted {
		t.Error("the resize of the pod is not recorded")
	}
}

// TestResourcesWithoutRecord checks that a container without a record has the resources of the previous manifest, or
// without one, of this manifest.
func TestResourcesWithoutRecord(t *testing.T) {
	before, now := loadPod(t, resourcePod("1")).Pod, loadPod(t, resourcePod("2")).Pod
	ref, _ := podspec.FindContainer(now, "a")
	for want, old := range map[string]*v1.Pod{"1": before, "2": {}} {
		if got := resourcesOf(old, ref); got.Limits.Cpu().String() != want {
			t.Errorf("recorded cpu limit %s, want %s", got.Limits.Cpu(), want)
		}
	}
	if got := resourcesOf(nil, ref); got.Limits.Cpu().String() != "2" {
		t.Errorf("recorded cpu limit without an earlier manifest: %s", got.Limits.Cpu())
	}
}
