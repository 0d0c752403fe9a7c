package runtime

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/podstatus"
	"github.com/podctl/podctl/runtime/state"
)

// begin writes down what is about to be applied, before anything happens: a
// crash in the middle leaves the manifest, so that the pod can be deleted
// properly.
func (x *execution) begin() error {
	j := x.journal
	if x.desired == nil {
		if len(x.plan.Steps) == 0 || j.Applied == nil {
			return nil
		}
		j.Deletion = &state.Deletion{At: x.e.now(), GracePeriodSeconds: x.plan.LongestGrace()}
		if err := x.write(); err != nil {
			// A full disk must not keep a pod from being deleted, which frees some of it.
			x.warn("the pod is not marked as one that goes: " + err.Error())
		}
		return nil
	}
	var before *v1.Pod
	if j.Applied != nil {
		before = j.Applied.Pod
	}
	starts := len(x.plan.Steps) > 0
	if starts {
		x.noteBegun(before)
		x.noteOwed()
	}
	if j.Applied != nil && j.Applied.SameAs(x.desired) && j.Deletion == nil {
		if starts {
			// Also where it says the same as before: it shows that there is room for what
			// comes of the pass.
			return x.write()
		}
		return nil
	}
	j.KeepEarlierSecrets(x.desired)
	j.Applied, j.AppliedAt, j.Source = x.desired, x.e.now(), x.desired.Source
	j.Generation++
	j.Deletion = nil
	j.Endpoint = x.e.client.Endpoint.Address
	if j.StartTime.IsZero() {
		j.StartTime = j.AppliedAt
	}
	if j.Backoffs == nil {
		j.Backoffs = map[string]model.Backoff{}
	}
	return x.write()
}

// noteOwed keeps what is about to be stopped so that it runs again, until it does: if the
// pass is cut off its end must not be taken for that of its work.
func (x *execution) noteOwed() {
	owes := x.plan.PendingRestarts()
	if before := x.journal.Owed; len(before) > 0 {
		observed := x.snapshot.Observed(x.plan.Pod, x.desired)
		for name, id := range before {
			if _, anew := owes[name]; !anew && observed.AwaitsRestart(name) {
				owes[name] = id
			}
		}
	}
	x.journal.Owed = owes
}

func (x *execution) write() error {
	if err := x.e.layout.Pod(x.plan.Pod.UID).WriteJournal(x.journal); err != nil {
		return fmt.Errorf("pod %s: %w", x.plan.Pod, err)
	}
	return nil
}

// remember writes down what only podctl knows after a pass. A deleted pod's
// journal goes with it.
func (x *execution) remember() error {
	if x.desired == nil {
		return x.forget()
	}
	if held := x.noteHolds(); len(x.plan.Steps) == 0 && !held && !x.completes() {
		return nil
	}
	x.noteCompletion()
	x.noteResizedPod()
	x.noteLeft()
	return x.write()
}

// chronicle writes down what happened in the pass. A pass does not fail for it.
func (x *execution) chronicle() {
	x.told.holds(x.e.now(), x.plan)
	if err := x.told.write(x.e.layout.Pod(x.plan.Pod.UID), x.plan.Pod, x.redactor); err != nil {
		x.warn(err.Error())
	}
}

// noteLeft keeps what runs after the pass: what is missing of it later was
// stopped by somebody else.
func (x *execution) noteLeft() {
	left := &model.LastRun{Sandbox: x.yield.sandboxID, Containers: map[string]string{}}
	stopped := map[string]bool{}
	for i := range x.plan.Steps {
		s := &x.plan.Steps[i]
		switch {
		case x.undone(s):
		case s.Kind == plan.StopContainer:
			stopped[s.ContainerID] = true
		case s.Kind == plan.StopSandbox:
			stopped[s.SandboxID] = true
		}
	}
	for _, c := range x.snapshot.Containers {
		if id := c.Status.GetId(); c.Status.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING && !stopped[id] {
			left.Containers[c.Status.GetLabels()[criconfig.LabelContainerName]] = id
		}
	}
	maps.Copy(left.Containers, x.yield.started)
	for _, s := range x.snapshot.Sandboxes {
		before := x.journal.Left != nil && slices.Contains(x.journal.Left.Stopped, s.GetId())
		if stopped[s.GetId()] || before {
			left.Stopped = append(left.Stopped, s.GetId())
		}
	}
	left.Reset = x.resetContainers()
	if stopped[left.Sandbox] {
		left.Sandbox, left.Containers, left.Reset = "", nil, nil
	}
	x.journal.Left = left
}

// resetContainers names those whose records a restart of all has taken away, in this pass
// or an earlier one, and which were not started since: nothing else shows that they ran.
func (x *execution) resetContainers() []string {
	var names []string
	if x.journal.Left != nil {
		names = slices.Clone(x.journal.Left.Reset)
	}
	for i := range x.plan.Steps {
		if s := &x.plan.Steps[i]; s.RestartsAll && !x.undone(s) {
			names = append(names, s.Container)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return x.yield.started[name] != "" })
	slices.Sort(names)
	return slices.Compact(names)
}

// undone tells that a step failed or was not begun.
func (x *execution) undone(s *plan.Step) bool {
	return slices.Contains(x.left, s) || slices.ContainsFunc(x.failed, func(f StepError) bool { return f.Step == s })
}

func (x *execution) forget() error {
	if len(x.failed) > 0 || len(x.left) > 0 || x.aborted {
		return nil
	}
	return x.e.layout.Pod(x.plan.Pod.UID).RemoveJournal()
}

// noteTry keeps the restart delay that one more start brings, whatever comes of it
// (kubelet: doBackOff).
func (x *execution) noteTry(ref podspec.ContainerRef) {
	x.mu.Lock()
	defer x.mu.Unlock()
	exited := x.newestExited(ref.Name)
	if exited == nil {
		return
	}
	if x.journal.Backoffs == nil {
		x.journal.Backoffs = map[string]model.Backoff{}
	}
	key := x.desired.ContainerSpecHash(ref.Container)
	b := x.journal.Backoffs[ref.Name]
	if podspec.Compare(b.Key, key) == podspec.Different {
		b = model.Backoff{}
	}
	b = b.Advance(exited.FinishedAt, x.e.now())
	b.Key = key
	x.journal.Backoffs[ref.Name] = b
}

// noteStart keeps that a container was started.
func (x *execution) noteStart(ref podspec.ContainerRef, id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.yield.started[ref.Name] = id
	x.journal.Settle(ref.Name)
	delete(x.journal.StartErrors, ref.Name)
	delete(x.journal.Owed, ref.Name)
}

// newestExited is the record a restart delay counts from.
func (x *execution) newestExited(name string) *model.Container {
	observed := x.snapshot.Observed(x.plan.Pod, nil)
	return observed.Newest(func(c *model.Container) bool { return c.Name == name && c.State == model.Exited })
}

func (x *execution) noteFailure(container string, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.journal.StartErrors == nil {
		x.journal.StartErrors = map[string]model.StartError{}
	}
	x.journal.StartErrors[container] = model.StartError{
		Reason: reasonOf(err, model.RunContainerError), Message: x.redactor.Text(err.Error()), At: x.e.now(),
	}
}

// noteHolds keeps why containers could not even be tried, which the pod's status
// shows as a kubelet's does. It tells whether there is anything new.
func (x *execution) noteHolds() bool {
	news := false
	for i := range x.plan.Holds {
		h := &x.plan.Holds[i]
		if !h.Unstartable {
			continue
		}
		if before := x.journal.StartErrors[h.Container]; before.Reason != h.Reason || before.Message != h.Message {
			x.noteFailure(h.Container, because(h.Reason, errors.New(h.Message)))
			news = true
		}
	}
	return news
}

// completes tells that the pod has finished and nobody has written it down.
func (x *execution) completes() bool {
	return x.journal.Completion == nil && x.terminalPhase() != ""
}

func (x *execution) terminalPhase() v1.PodPhase {
	status := podstatus.Of(x.snapshot.Input(x.plan.Pod, x.desired, plan.Options{}).State())
	if IsOver(&status) {
		return status.Phase
	}
	return ""
}

// noteCompletion remembers that the pod finished, so that the loss of the
// runtime's records does not make it run again.
func (x *execution) noteCompletion() {
	if phase := x.terminalPhase(); phase != "" && x.journal.Completion == nil {
		x.journal.Completion = &model.Completion{Phase: phase, At: x.e.now(), DesiredDigest: x.desired.Digest()}
	}
}
