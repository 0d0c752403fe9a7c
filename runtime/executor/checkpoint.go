package executor

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/podspec/spechash"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/events"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/podstatus"
	"github.com/podctl/podctl/runtime/probe"
	"github.com/podctl/podctl/runtime/state"
)

// checkpointer writes down what only podctl can remember: before the steps, what is about to
// be done, and after them, what came of it. Steps tell it what they did at the same time.
type checkpointer struct {
	*subject
	outputs  *outputs
	report   *reporter
	now      func() time.Time
	endpoint string
	// pullBackoff keeps until when an image that could not be pulled is not tried again.
	pullBackoff bool
	// watched keeps when conditions change.
	watched bool
	// status is that of the pod as this pass has seen it.
	status v1.PodStatus

	mu         sync.Mutex
	checkpoint *state.Checkpoint
	// closed is set once no step runs any more.
	closed bool
}

// begin writes down what is about to be done, before anything happens.
func (x *checkpointer) begin() error {
	if x.plan.Unapplied() {
		return nil
	}
	if x.desired == nil {
		x.beginDeletion()
		return nil
	}
	if err := x.beginSync(); err != nil {
		return err
	}
	// What is remembered changes with each step, and what was observed does not.
	x.status = podstatus.Of(x.snapshot.Input(x.plan.Pod, x.desired, plan.Options{}).State())
	return nil
}

// beginDeletion marks a pod as one that goes. A full disk must not keep a pod from being deleted,
// which frees some of it.
func (x *checkpointer) beginDeletion() {
	j := x.checkpoint
	if len(x.plan.Steps) == 0 || j.Applied == nil {
		return
	}
	j.Deletion = &model.Deletion{At: x.now(), GracePeriodSeconds: x.plan.LongestGrace()}
	if err := x.write(); err != nil {
		x.report.warn("the pod is not marked as one that goes: " + err.Error())
	}
}

// beginSync writes down what is about to be applied: a crash in the middle leaves the manifest, so
// that the pod can be deleted properly.
func (x *checkpointer) beginSync() error {
	j := x.checkpoint
	evicted := j.Eviction != x.plan.Eviction
	if j.Eviction != nil && x.plan.Eviction == nil {
		// It begins anew.
		j.StartTime, j.Completion, j.Rejection = x.now(), nil, nil
	}
	j.Eviction = x.plan.Eviction
	var before *v1.Pod
	if j.Applied != nil {
		before = j.Applied.Pod
	}
	starts := len(x.plan.Steps) > 0
	if starts {
		x.noteInFlight(before)
		x.notePendingRestarts()
	}
	adopted, judged := !maps.Equal(j.Adopted, x.plan.Adopted), j.Rejection != x.plan.Rejection
	j.Adopted, j.Rejection = x.plan.Adopted, x.plan.Rejection
	if j.Applied != nil && j.Applied.SameAs(x.desired) && slices.Equal(j.Applied.Shared, x.desired.Shared) && j.Deletion == nil {
		// The file that was applied last is the one that plan and --all compare with, also if it says
		// the same as another one before.
		// A copy of podctl's own may be older than the set that the pod has been put into.
		set := x.desired.Set
		if x.desired.Stored {
			set = j.Applied.Set
		}
		elsewhere := j.Source != x.desired.Source || j.Applied.Keeper != x.desired.Keeper || j.Applied.Set != set
		if starts || adopted || judged || evicted || elsewhere || x.moves() {
			j.Endpoint, j.Source, j.Applied.Keeper, j.Applied.Set = x.endpoint, x.desired.Source, x.desired.Keeper, set
			// Also where it says the same as before: it shows that there is room for what
			// comes of the pass.
			return x.write()
		}
		return nil
	}
	j.KeepEarlierSecrets(x.desired)
	j.Applied, j.AppliedAt, j.Source = x.desired, x.now(), x.desired.Source
	j.Generation++
	j.Deletion = nil
	j.Endpoint = x.endpoint
	if j.StartTime.IsZero() {
		j.StartTime = x.firstStart()
	}
	if j.Backoffs == nil {
		j.Backoffs = map[string]model.Backoff{}
	}
	return x.write()
}

// firstStart is when a pod without a record of it began: with its oldest sandbox, if it runs
// already, as one that a kubelet has left or whose checkpoint was lost; else now.
func (x *checkpointer) firstStart() time.Time {
	first := x.checkpoint.AppliedAt
	for _, s := range x.snapshot.Sandboxes {
		if created := time.Unix(0, s.GetCreatedAt()); s.GetCreatedAt() > 0 && created.Before(first) {
			first = created
		}
	}
	return first
}

// moves reports whether the pod comes here from another runtime, of which nothing is here yet.
func (x *checkpointer) moves() bool {
	return x.checkpoint.Endpoint != x.endpoint && len(x.snapshot.Sandboxes)+len(x.snapshot.Containers) == 0
}

// notePendingRestarts keeps what is about to be stopped so that it runs again, until it does: if the
// pass is cut off its end must not be taken for that of its work.
func (x *checkpointer) notePendingRestarts() {
	owes := x.plan.PendingRestarts()
	if before := x.checkpoint.PendingRestarts; len(before) > 0 {
		observed := x.snapshot.Observed(x.plan.Pod, x.desired)
		for name, id := range before {
			if _, anew := owes[name]; !anew && observed.AwaitsRestart(name) {
				owes[name] = id
			}
		}
	}
	x.checkpoint.PendingRestarts = owes
}

func (x *checkpointer) write() error {
	if err := x.pod.Checkpoint().Write(x.checkpoint); err != nil {
		return fmt.Errorf("pod %s: %w", x.plan.Pod, err)
	}
	return nil
}

// take writes down what is to be kept of probes while steps run (probe.Held).
func (x *checkpointer) take(change probe.Change) (taken bool, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return false, nil
	}
	before := x.checkpoint.Probes
	// Who has observed the pod has the records of before.
	x.checkpoint.Probes = make(map[string]map[model.ProbeType]model.ProbeRecord, len(before))
	for id, records := range before {
		x.checkpoint.Probes[id] = maps.Clone(records)
	}
	if !x.report.recordBy(func(rec *events.Recorder) bool { return change(x.checkpoint, rec) }) {
		x.checkpoint.Probes = before
		return true, nil
	}
	return true, x.write()
}

// close takes nothing any more.
func (x *checkpointer) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
}

// remember writes down what only podctl knows after a pass. A deleted pod's
// checkpoint goes with it.
func (x *checkpointer) remember(r *results) error {
	if x.desired == nil {
		return x.forget(r)
	}
	if x.plan.Eviction != nil {
		return x.rememberEviction(r)
	}
	if x.plan.Unapplied() {
		return nil
	}
	held, turned := x.noteHolds(), x.noteConditions()
	if len(x.plan.Steps) == 0 && !held && !turned && !x.completes() {
		return nil
	}
	x.noteCompletion()
	x.noteResizedPod(r)
	x.noteLastRun(r)
	return x.write()
}

// rememberEviction keeps that nothing of an evicted pod is left.
func (x *checkpointer) rememberEviction(r *results) error {
	turned, ended := !x.plan.Unapplied() && x.noteConditions(), len(x.plan.Steps) > 0 && r.complete()
	if ended {
		x.checkpoint.EndEviction()
	}
	if !turned && !ended {
		return nil
	}
	return x.write()
}

// noteLastRun keeps what runs after the pass: what is missing of it later was
// stopped by somebody else.
func (x *checkpointer) noteLastRun(r *results) {
	started := x.outputs.allStarted()
	sandbox, before := x.outputs.sandbox(), cmp.Or(x.checkpoint.LastRun, &model.LastRun{})
	last := &model.LastRun{Sandbox: sandbox.ID, IPs: sandbox.IPs, Containers: map[string]string{}}
	if len(last.IPs) == 0 {
		last.IPs = before.IPs
	}
	stopped := map[string]bool{}
	for i := range x.plan.Steps {
		s := &x.plan.Steps[i]
		switch {
		case r.undone(s):
		case s.Kind == plan.StopContainer:
			stopped[s.ContainerID] = true
		case s.Kind == plan.StopSandbox:
			stopped[s.SandboxID] = true
		}
	}
	for _, c := range x.snapshot.Containers {
		if id := c.Status.GetId(); c.Status.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING && !stopped[id] {
			last.Containers[c.Status.GetLabels()[criconfig.LabelContainerName]] = id
		}
	}
	maps.Copy(last.Containers, started)
	for _, s := range x.snapshot.Sandboxes {
		if stopped[s.GetId()] || slices.Contains(before.Stopped, s.GetId()) {
			last.Stopped = append(last.Stopped, s.GetId())
		}
	}
	last.Reset, last.AfterReset = x.resetContainers(r, before, started)
	if last.Sandbox != before.Sandbox {
		last.AfterReset = nil
	}
	if stopped[last.Sandbox] {
		last.Sandbox, last.Containers, last.Reset, last.AfterReset = "", nil, nil, nil
	}
	x.checkpoint.LastRun = last
}

// resetContainers names those whose records a restart of all has taken away, in this pass or an
// earlier one, and which were not started since, and those that were started since in the same
// sandbox: nothing else shows that they ran before.
func (x *checkpointer) resetContainers(r *results, before *model.LastRun, started map[string]string) (reset, since []string) {
	all := slices.Clone(before.Reset)
	for i := range x.plan.Steps {
		if s := &x.plan.Steps[i]; s.RestartsAll && !r.undone(s) {
			all = append(all, s.Container)
		}
	}
	since = slices.DeleteFunc(slices.Clone(before.AfterReset), func(name string) bool { return slices.Contains(all, name) })
	for _, name := range all {
		if started[name] == "" {
			reset = append(reset, name)
		} else {
			since = append(since, name)
		}
	}
	slices.Sort(reset)
	slices.Sort(since)
	return slices.Compact(reset), slices.Compact(since)
}

func (x *checkpointer) forget(r *results) error {
	if !r.complete() {
		return nil
	}
	return x.pod.Checkpoint().Remove()
}

// noteTry keeps the restart delay that one more start brings, whatever comes of it
// (kubelet: doBackOff).
func (x *checkpointer) noteTry(ref podspec.ContainerRef) {
	x.mu.Lock()
	defer x.mu.Unlock()
	exited := x.newestExited(ref.Name)
	if exited == nil {
		return
	}
	if x.checkpoint.Backoffs == nil {
		x.checkpoint.Backoffs = map[string]model.Backoff{}
	}
	key := spechash.Container(x.desired, ref.Container)
	b := x.checkpoint.Backoffs[ref.Name]
	if digest.Compare(b.Key, key) == digest.Different {
		b = model.Backoff{}
	}
	b = b.Advance(exited.FinishedAt, x.now())
	b.Key = key
	x.checkpoint.Backoffs[ref.Name] = b
}

// noteStart keeps that a container was started.
func (x *checkpointer) noteStart(ref podspec.ContainerRef, id string) {
	x.outputs.setStarted(ref.Name, id)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.checkpoint.Settle(ref.Name)
	delete(x.checkpoint.StartErrors, ref.Name)
	delete(x.checkpoint.PendingRestarts, ref.Name)
}

// newestExited is the record a restart delay counts from.
func (x *checkpointer) newestExited(name string) *model.Container {
	observed := x.snapshot.Observed(x.plan.Pod, nil)
	return observed.Newest(func(c *model.Container) bool { return c.Name == name && c.State == model.Exited })
}

func (x *checkpointer) noteFailure(container string, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.checkpoint.StartErrors == nil {
		x.checkpoint.StartErrors = map[string]model.StartError{}
	}
	failure := model.StartError{
		Reason: reasonOf(err, model.RunContainerError), Message: x.report.redactor.Text(kubeletText(err)), At: x.now(),
	}
	if image := (*images.Error)(nil); x.pullBackoff && errors.As(err, &image) {
		credentials := x.desired.PullDigest()
		failure = failure.Postponed(image.Image, credentials, model.PullFailure(x.checkpoint.StartErrors, image.Image, credentials))
		x.report.pullPaused(container, image.Image)
	}
	x.checkpoint.StartErrors[container] = failure
}

// noteHolds keeps why containers could not even be tried, which the pod's status
// shows as a kubelet's does. It reports whether there is anything new.
func (x *checkpointer) noteHolds() bool {
	news := false
	for i := range x.plan.Holds {
		h := &x.plan.Holds[i]
		if !h.Unstartable {
			continue
		}
		if before, text := x.checkpoint.StartErrors[h.Container], statusText(h); before.Reason != h.Reason || before.Message != text {
			x.noteFailure(h.Container, withReason(h.Reason, errors.New(text)))
			news = true
		}
	}
	return news
}

// noteConditions keeps since when the conditions of the pod are as this pass has seen them. It reports
// whether one of them has changed.
func (x *checkpointer) noteConditions() (changed bool) {
	if !x.watched {
		return false
	}
	x.checkpoint.Conditions, changed = podstatus.Transitions(x.checkpoint.Conditions, &x.status, x.now().UTC())
	return changed
}

// completes reports whether the pod has finished and nobody has written it down.
func (x *checkpointer) completes() bool {
	return x.checkpoint.Completion == nil && x.terminalPhase() != ""
}

// terminalPhase is the phase of a pod that has come to its end. One that was rejected has not begun,
// and one that was evicted has not finished.
func (x *checkpointer) terminalPhase() v1.PodPhase {
	if model.IsOver(&x.status) && x.checkpoint.Rejection == nil && x.checkpoint.Eviction == nil {
		return x.status.Phase
	}
	return ""
}

// noteCompletion remembers that the pod finished, so that the loss of the
// runtime's records does not make it run again.
func (x *checkpointer) noteCompletion() {
	if phase := x.terminalPhase(); phase != "" && x.checkpoint.Completion == nil {
		x.checkpoint.Completion = &model.Completion{Phase: phase, At: x.now(), DesiredDigest: x.desired.Digest()}
	}
}

// noteBegun keeps the resources with which containers and sandbox are about to be made,
// before they are: one that a kill leaves without a word would look as if it had to be
// resized. They count once the runtime has a record of that attempt (kubelet:
// SetActuatedResources, when a container is created).
func (x *checkpointer) noteInFlight(before *v1.Pod) {
	j := x.checkpoint
	if j.Actuated == nil {
		j.Actuated = &model.Actuated{}
	}
	if j.Actuated.Containers == nil {
		j.Actuated.Containers = map[string]v1.ResourceRequirements{}
	}
	for _, ref := range podspec.Containers(x.desired.Pod) {
		_, known := j.Actuated.Containers[ref.Name]
		own, found := x.plan.Found[ref.Name]
		switch {
		case known, found && own == nil:
		case found:
			j.Actuated.Containers[ref.Name] = *own
		default:
			j.Actuated.Containers[ref.Name] = resourcesOf(before, ref)
		}
	}
	j.InFlight = map[string]state.InFlight{}
	for i := range x.plan.Steps {
		s := &x.plan.Steps[i]
		if s.Kind == plan.RunSandbox {
			j.InFlight[state.ThePod] = state.InFlight{Attempt: s.Attempt, Resources: x.desired.Pod.Spec.Resources}
		}
		if ref, ok := podspec.FindContainer(x.desired.Pod, s.Container); ok && s.Kind == plan.StartContainer {
			j.InFlight[ref.Name] = state.InFlight{Attempt: s.Attempt, Resources: &ref.Resources}
		}
	}
}

// resourcesOf are the resources a container without a record is taken to have:
// those of the manifest applied before, or else of this one.
func resourcesOf(before *v1.Pod, ref podspec.ContainerRef) v1.ResourceRequirements {
	if before != nil {
		if old, ok := podspec.FindContainer(before, ref.Name); ok {
			return old.Resources
		}
	}
	return ref.Resources
}

// noteResizedPod keeps the pod's own resources once all that depends on them has
// been changed: until then the change is still to be made.
func (x *checkpointer) noteResizedPod(r *results) {
	updates := slices.ContainsFunc(x.plan.Steps, func(s plan.Step) bool { return s.Kind == plan.UpdatePod })
	if updates && len(r.failed)+len(r.skipped) == 0 {
		x.checkpoint.Actuated.Pod = x.desired.Pod.Spec.Resources
	}
}

// settlePod notes that the pod has the sandbox that was about to be made.
func (x *checkpointer) settlePod() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.checkpoint.Settle(state.ThePod)
}

// noteUpdate keeps the resources that a running container was given.
func (x *checkpointer) noteUpdate(ref podspec.ContainerRef) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.checkpoint.Actuated.Containers == nil {
		x.checkpoint.Actuated.Containers = map[string]v1.ResourceRequirements{}
	}
	x.checkpoint.Actuated.Containers[ref.Name] = ref.Resources
}
