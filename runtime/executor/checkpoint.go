package executor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/events"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/podstatus"
	"github.com/podctl/podctl/runtime/probe"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
)

// checkpointer records facts that only podctl knows: the intended changes before the steps, and the results after them.
// Steps report to it concurrently.
type checkpointer struct {
	*subject
	// status is the status of the pod as this pass observed it.
	status v1.PodStatus

	mu sync.Mutex
	// record is the checkpoint as the pass changes it.
	record *state.Checkpoint
	// closed is set once all steps have ended.
	closed bool
	// written is set once the pass has changed the stored checkpoint. resized is set if the record of a resize has
	// changed after the steps.
	written, resized bool
}

// begin records the intended changes before the first step.
func (x *checkpointer) begin() error {
	if x.plan.Unapplied() {
		return nil
	}
	if x.desired == nil {
		x.beginDeletion()
		return nil
	}
	err := x.beginSync()
	x.status = x.presentStatus()
	if done := x.completion(); done != nil && err == nil {
		// A finished pod uses no resources of the node, even while its sandbox is being stopped. A pod that is admitted
		// in the meantime must not be rejected because of it.
		x.record.Completion = done
		err = x.write()
	}
	if err != nil && (x.plan.Eviction != nil || x.plan.End != nil) {
		// A full disk must not prevent what frees it. Until it is recorded, the pass fails and is repeated.
		x.report.warn("the end of the pod could not be recorded: " + err.Error())
		return nil
	}
	return err
}

// presentStatus returns the status of the pod before the first step.
func (x *checkpointer) presentStatus() v1.PodStatus {
	applied := *x.snapshot
	applied.Checkpoint = x.record
	in := applied.Input(x.plan.Pod, x.desired, plan.Options{})
	in.Cluster = x.cluster
	return podstatus.Of(in.State())
}

// beginDeletion marks a pod as being deleted. A full disk does not prevent the deletion, which frees disk space.
func (x *checkpointer) beginDeletion() {
	c := x.record
	if len(x.plan.Steps) == 0 || c.Applied == nil {
		return
	}
	c.Deletion = c.Deletion.Again(model.Deletion{At: x.now(), GracePeriodSeconds: x.plan.LongestGrace()})
	if err := x.write(); err != nil {
		x.report.warn("the pod could not be marked as being deleted: " + err.Error())
	}
}

// beginSync records the manifest that is about to be applied, so that the pod can be deleted properly even after a
// crash.
func (x *checkpointer) beginSync() error {
	c := x.record
	evicted := c.Eviction != x.plan.Eviction
	if c.Eviction != nil && x.plan.Eviction == nil {
		// An evicted pod starts again.
		c.StartTime, c.Completion, c.Rejection = x.now(), nil, nil
	}
	c.Eviction = x.plan.Eviction
	ends := x.plan.End != nil && (c.End == nil || *c.End != *x.plan.End)
	if ends {
		c.End = &model.End{Deletion: x.plan.End.Deletion}
	}
	var before *v1.Pod
	if c.Applied != nil {
		before = c.Applied.Pod
	}
	starts := len(x.plan.Steps) > 0
	if starts {
		x.noteInFlight(before)
		x.notePendingRestarts()
	}
	pending := c.PendingResize
	x.beginResize(before)
	adopted, judged := !maps.Equal(c.Adopted, x.plan.Adopted), c.Rejection != x.plan.Rejection
	judged = judged || !equality.Semantic.DeepEqual(pending, c.PendingResize)
	c.Adopted, c.Rejection = x.plan.Adopted, x.plan.Rejection
	isSame := before != nil && c.Applied.SameAs(x.desired) && slices.Equal(c.Applied.Shared, x.desired.Shared) &&
		x.desired.SameGeneration(c.Applied)
	if isSame && c.Deletion == nil {
		address, set := x.client.Endpoint.Address, setOf(c.Applied, x.desired)
		moved := c.Source != x.desired.Source || c.Applied.Owner != x.desired.Owner || c.Applied.Set != set
		if updateSecrets(c.Applied, x.desired) || starts || adopted || judged || evicted || ends || moved ||
			moves(c, address, x.snapshot) {
			c.Endpoint, c.Source = address, x.desired.Source
			c.Applied.Owner, c.Applied.Set = x.desired.Owner, set
			// Written even without a change: this shows that there is disk space for the results of the pass.
			return x.write()
		}
		return nil
	}
	c.KeepEarlierSecrets(x.desired)
	c.Applied, c.AppliedAt, c.Source = x.desired, x.now(), x.desired.Source
	c.Generation++
	c.Deletion = nil
	c.Endpoint = x.client.Endpoint.Address
	if c.StartTime.IsZero() {
		c.StartTime = x.firstStart()
	}
	if c.Backoffs == nil {
		c.Backoffs = map[string]model.Backoff{}
	}
	return x.write()
}

// setOf returns the set of a pod that has been applied before. The plan and --all compare with the file that was
// applied last, even if an earlier file has the same content. podctl's own copy may be older than the set that the pod
// now belongs to.
func setOf(applied, desired *podspec.Desired) string {
	if desired.Stored {
		return applied.Set
	}
	return desired.Set
}

// updateSecrets updates the Secrets of a manifest that has been applied before, and reports whether it did. Their
// values may be known again, or may be on disk again.
func updateSecrets(applied, desired *podspec.Desired) bool {
	if !applied.Redacted && applied.MemorySecrets == desired.MemorySecrets {
		return false
	}
	applied.Objects, applied.Redacted = desired.Objects, desired.Redacted
	applied.MemorySecrets = desired.MemorySecrets
	return true
}

// firstStart returns when a pod without a record started: with its oldest sandbox if there is one, as for a pod that a
// kubelet left or whose checkpoint was lost; otherwise now.
func (x *checkpointer) firstStart() time.Time {
	first := x.record.AppliedAt
	for _, s := range x.snapshot.Sandboxes {
		if created := time.Unix(0, s.GetCreatedAt()); s.GetCreatedAt() > 0 && created.Before(first) {
			first = created
		}
	}
	return first
}

// moves reports whether the pod comes from another runtime and this one has no records of it yet.
func moves(c *state.Checkpoint, endpoint string, s *snapshot.Pod) bool {
	return c.Endpoint != endpoint && len(s.Sandboxes)+len(s.Containers) == 0
}

// notePendingRestarts records the containers that are about to be stopped and must run again, until they do. If the
// pass is interrupted, such an exit must not count as the end of the container's work.
func (x *checkpointer) notePendingRestarts() {
	pending := x.plan.PendingRestarts()
	if before := x.record.PendingRestarts; len(before) > 0 {
		observed := x.snapshot.Observed(x.plan.Pod, x.desired)
		for name, id := range before {
			if _, noted := pending[name]; !noted && observed.AwaitsRestart(name) {
				pending[name] = id
			}
		}
	}
	x.record.PendingRestarts = pending
}

func (x *checkpointer) write() error {
	x.written = true
	if err := x.pod.Checkpoint().Write(x.record); err != nil {
		return fmt.Errorf("pod %s: %w", x.plan.Pod, err)
	}
	return nil
}

// take records changes from probes while steps run (probe.Held).
func (x *checkpointer) take(change probe.Change) (taken bool, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return false, nil
	}
	next := x.record.Clone()
	if !x.report.recordBy(func(rec *events.Recorder) bool { return change(next, rec) }) {
		return true, nil
	}
	x.record = next
	return true, x.write()
}

// close makes take refuse further changes.
func (x *checkpointer) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
}

// remember records the results of a pass that only podctl knows. The checkpoint of a deleted pod is removed.
func (x *checkpointer) remember(r *results) error {
	if x.desired == nil {
		if !r.complete() {
			return nil
		}
		x.written = true
		return x.pod.Checkpoint().Remove()
	}
	if x.plan.Eviction != nil && x.plan.End == nil {
		return x.recordEviction(r)
	}
	if x.plan.Unapplied() {
		return nil
	}
	held, turned, done := x.noteHolds(), x.noteConditions(), x.completion()
	if len(x.plan.Steps) == 0 && !held && !turned && !x.resized && done == nil {
		return nil
	}
	x.record.Completion = cmp.Or(done, x.record.Completion)
	x.noteResizedPod(r)
	x.noteLastRun(r)
	if end := x.plan.End; end != nil {
		x.record.End = &model.End{Deletion: end.Deletion, Done: end.Done && r.complete()}
	}
	return x.write()
}

// recordEviction records that an evicted pod was stopped, or that all its leftovers are removed.
func (x *checkpointer) recordEviction(r *results) error {
	turned, changed := !x.plan.Unapplied() && x.noteConditions(), len(x.plan.Steps) > 0
	switch {
	case x.plan.KillPod:
		x.noteLastRun(r)
	case changed && r.complete():
		x.record.EndEviction()
	}
	if !turned && !changed {
		return nil
	}
	return x.write()
}

// noteLastRun records the sandbox and the containers that run after the pass. If one is missing later, another program
// stopped it.
func (x *checkpointer) noteLastRun(r *results) {
	started := x.outputs.allStarted()
	sandbox, before := x.outputs.sandbox(), cmp.Or(x.record.LastRun, &model.LastRun{})
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
	last.Reset, last.AfterReset = resetContainers(x.plan, r, before, started)
	if last.Sandbox != before.Sandbox {
		last.AfterReset = nil
	}
	if stopped[last.Sandbox] {
		last.Sandbox, last.Containers, last.Reset, last.AfterReset = "", nil, nil, nil
	}
	x.record.LastRun = last
}

// resetContainers returns the containers whose records a restart of all containers removed, in this pass or an earlier
// one. The result reset lists those that were not started afterwards, and since those that were started in the same
// sandbox. Only these lists show that they ran before.
func resetContainers(
	p *plan.Plan, r *results, before *model.LastRun, started map[string]string,
) (reset, since []string) {
	all := slices.Clone(before.Reset)
	for i := range p.Steps {
		if s := &p.Steps[i]; s.RestartsAll && !r.undone(s) {
			all = append(all, s.Container)
		}
	}
	since = slices.DeleteFunc(slices.Clone(before.AfterReset), func(name string) bool {
		return slices.Contains(all, name)
	})
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
