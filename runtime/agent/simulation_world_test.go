package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/syncpod"
)

// world is a runtime and a state directory in memory. Its passes lock, observe, record their intent and make one call
// after the other, as those of syncpod do. Each call and each write may fail. At each, the agent or the user may be
// killed, or the pass cut short.
type world struct {
	t     *testing.T
	rand  *rand.Rand
	now   time.Time
	rules *rules
	// event is called for every change of a container.
	event func(types.UID)

	pods       map[types.UID]*record
	containers []*container
	// deaths counts the unrequested ends of containers.
	deaths map[types.UID]int
	locked map[types.UID]bool
	// faulty makes some calls fail, down all calls, and full all writes.
	faulty, down, full bool
	// current is the running task.
	current *task
	lines   []string
	activity
}

// activity counts actions that an idle agent must not do.
type activity struct{ calls, writes, logged, ids int }

// record is a checkpoint.
type record struct {
	desired  *podspec.Desired
	deleting bool
	// end is set for a pod that ends because its source deletes it.
	end *model.End
	// eviction is set for a pod that was evicted.
	eviction *model.Eviction
}

type container struct {
	id    int
	uid   types.UID
	image string
	// started and running are the container's state: created, running, or exited at some time.
	started, running bool
	exited           time.Time
	// failing reports that the container's liveness probe has failed.
	failing bool
}

var (
	errFault = errors.New("a fault")
	errLost  = errors.New("the answer is lost")
	errDown  = errors.New("the runtime is down")
	errFull  = errors.New("the disk is full")
)

func newWorld(t *testing.T, r *rand.Rand) *world {
	return &world{
		t: t, rand: r, now: at(0), pods: map[types.UID]*record{}, deaths: map[types.UID]int{}, locked: map[types.UID]bool{},
		event: func(types.UID) {},
	}
}

func (w *world) note(format string, args ...any) {
	w.lines = append(w.lines, w.now.Sub(at(0)).String()+" "+fmt.Sprintf(format, args...))
}

// wrong reports a broken rule.
func (w *world) wrong(format string, args ...any) {
	w.note("WRONG: "+format, args...)
	w.t.Errorf(format, args...)
}

func imageOf(d *podspec.Desired) string { return d.Pod.Spec.Containers[0].Image }

func versionOf(d *podspec.Desired) string {
	return fmt.Sprintf("%s v%s %s", d.Pod.UID, d.Pod.Annotations["version"], imageOf(d))
}

// pause lets other tasks run. It does not return if the process is killed in the meantime.
func (w *world) pause() {
	one := w.current
	if !one.yield(struct{}{}) {
		panic(killed{})
	}
}

// chance reports whether something fails, with a probability in percent.
func (w *world) chance(percent int) bool { return w.faulty && w.rand.IntN(100) < percent }

// call makes one call of the runtime. It may fail before or after it took effect, or its answer may be lost.
func (w *world) call(ctx context.Context, what string, effect func()) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	var err error
	switch {
	case w.down:
		err = errDown
	case w.chance(6):
		err = errFault
	case w.chance(6):
		err = errLost
	}
	w.note("%s: %s %v", w.current.name, what, err)
	if err == nil || errors.Is(err, errLost) {
		effect()
	}
	if w.pause(); err == nil {
		err = context.Cause(ctx)
	}
	return err
}

// write changes the state on disk, or fails.
func (w *world) write(what string, change func()) error {
	if w.full || w.chance(4) {
		w.note("%s: %s %v", w.current.name, what, errFull)
		w.pause()
		return errFull
	}
	w.note("%s: %s", w.current.name, what)
	w.writes++
	change()
	w.pause()
	return nil
}

// lock waits for the pod's lock.
func (w *world) lock(ctx context.Context, uid types.UID) (unlock func(), err error) {
	for w.locked[uid] {
		if w.pause(); ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	w.locked[uid] = true
	return func() { w.locked[uid] = false }, nil
}

// observe lists the containers of a pod.
func (w *world) observe(ctx context.Context, uid types.UID) (seen []container, err error) {
	err = w.call(ctx, "list", func() {
		for _, c := range w.containers {
			if c.uid == uid {
				seen = append(seen, *c)
			}
		}
	})
	return seen, err
}

// Apply makes a pass of the agent (syncpod.Syncer.Apply).
func (w *world) Apply(ctx context.Context, d *podspec.Desired, opts executor.Options) (*executor.Outcome, error) {
	unlock, err := w.lock(ctx, d.Pod.UID)
	if err != nil {
		return nil, err
	}
	defer unlock()
	seen, err := w.observe(ctx, d.Pod.UID)
	if err != nil {
		return nil, err
	}
	c := w.checkpoint(d.Pod.UID)
	if c.Applied != d || c.Deletion != nil {
		if err = syncpod.Superseded(model.RefOf(d.Pod), d, c); err != nil {
			return nil, err
		}
	}
	if opts.Precondition != nil {
		if err = opts.Precondition(c); err != nil {
			return nil, err
		}
	}
	if opts.Stop && c.Applied == nil {
		return &executor.Outcome{Plan: &plan.Plan{Pod: model.RefOf(d.Pod)}}, nil
	}
	if opts.End || c.End != nil {
		return w.endPod(ctx, d, seen)
	}
	if why := w.evicted(d, opts.Evict); why != nil && !opts.Stop {
		return w.evict(ctx, d, seen, why)
	}
	return w.sync(ctx, d, seen, opts.Stop)
}

// checkpoint returns the stored state of a pod.
func (w *world) checkpoint(uid types.UID) *state.Checkpoint {
	c := &state.Checkpoint{}
	if p := w.pods[uid]; p != nil {
		c.Applied, c.End, c.Eviction = p.desired, p.end, p.eviction
		if p.deleting {
			c.Deletion = &model.Deletion{}
		}
	}
	return c
}

// userApplies is podctl apply. It refuses a name that another UID has.
func (w *world) userApplies(d *podspec.Desired) (*executor.Outcome, error) {
	ctx := w.t.Context()
	unlock, _ := w.lock(ctx, d.Pod.UID)
	defer unlock()
	seen, err := w.observe(ctx, d.Pod.UID)
	if err != nil {
		return nil, err
	}
	for uid, p := range w.pods {
		if p.desired.Pod.Name == d.Pod.Name && uid != d.Pod.UID && !isAPI(uid) {
			return nil, errors.New("the name is taken")
		}
	}
	if why := w.evicted(d, nil); why != nil {
		return w.evict(ctx, d, seen, why)
	}
	return w.sync(ctx, d, seen, false)
}

// step is a call of a pass.
type step struct {
	what string
	do   func()
}

// sync applies the manifest of a pod, or stops the pod temporarily.
func (w *world) sync(ctx context.Context, d *podspec.Desired, seen []container, stop bool) (*executor.Outcome, error) {
	uid := d.Pod.UID
	steps, until := w.stepsOf(d, seen, stop)
	before := w.pods[uid]
	if before == nil || before.deleting || len(steps) > 0 || before.desired.Owner != d.Owner ||
		versionOf(before.desired) != versionOf(d) {
		if err := w.write("record "+versionOf(d), func() {
			w.rules.mayWrite(w.current.pass, d)
			kept := *d
			kept.Stored = true
			w.pods[uid] = &record{desired: &kept}
		}); err != nil {
			return nil, err
		}
	}
	outcome := w.execute(ctx, model.RefOf(d.Pod), steps)
	outcome.Plan.ChangesAt, outcome.Desired = until, d
	return outcome, nil
}

// stepsOf returns the calls of a pass, and the time when it can do more.
func (w *world) stepsOf(d *podspec.Desired, seen []container, stop bool) (steps []step, until time.Time) {
	image, runs := imageOf(d), false
	var last []step
	for i := range seen {
		c := w.find(seen[i].id)
		asIs := seen[i].running && seen[i].image == image && !seen[i].failing
		switch {
		case asIs && !stop:
			runs = true
		case seen[i].running:
			steps = append(steps, w.stops(c, d))
		case !seen[i].started || i < len(seen)-1:
			last = append(last, w.removes(c))
		case seen[i].image == image && w.deaths[c.uid] > 1 && w.now.Before(seen[i].exited.Add(10*time.Second)) && !stop:
			runs, until = true, seen[i].exited.Add(10*time.Second)
		}
	}
	switch {
	case stop:
		return steps, until
	case !runs:
		created := &container{uid: d.Pod.UID, image: image}
		steps = append([]step{{"pull " + image, func() {}}, w.creates(created)}, steps...)
		steps = append(steps, w.starts(created))
	}
	return append(steps, last...), until
}

// execute makes one call after the other until one fails.
func (w *world) execute(ctx context.Context, ref model.PodRef, steps []step) *executor.Outcome {
	outcome := &executor.Outcome{Plan: &plan.Plan{Pod: ref, Steps: make([]plan.Step, len(steps))}}
	for i := range steps {
		w.calls++
		if err := w.call(ctx, steps[i].what, steps[i].do); err != nil {
			outcome.Failed = append(outcome.Failed, executor.StepError{Step: &plan.Step{}, Err: err})
			break
		}
	}
	return outcome
}

func (w *world) creates(c *container) step {
	return step{"create " + c.image, func() {
		w.ids++
		c.id = w.ids
		w.containers = append(w.containers, c)
	}}
}

func (w *world) starts(c *container) step {
	return step{"start", func() {
		c.started, c.running = true, true
		w.rules.started(c)
		w.event(c.uid)
	}}
}

// stops returns the step that stops a container, for a manifest or a deletion.
func (w *world) stops(c *container, d *podspec.Desired) step {
	return step{fmt.Sprintf("stop %d", c.id), func() {
		if !c.running {
			return
		}
		w.rules.mayStop(w.current.pass, c, d)
		c.running, c.exited = false, w.now
		w.deaths[c.uid] = 0
		w.event(c.uid)
	}}
}

func (w *world) removes(c *container) step {
	return step{fmt.Sprintf("remove %d", c.id), func() {
		w.containers = slices.DeleteFunc(w.containers, func(other *container) bool { return other == c })
		w.event(c.uid)
	}}
}

// exits ends a container without a request.
func (w *world) exits(c *container) {
	c.running, c.exited = false, w.now
	w.deaths[c.uid]++
	w.event(c.uid)
}

func (w *world) find(id int) *container {
	i := slices.IndexFunc(w.containers, func(c *container) bool { return c.id == id })
	if i < 0 {
		return &container{id: id}
	}
	return w.containers[i]
}

// runs returns the running container of a pod. It is nil if there is none.
func (w *world) runs(uid types.UID) *container {
	i := slices.IndexFunc(w.containers, func(c *container) bool { return c.uid == uid && c.running })
	if i < 0 {
		return nil
	}
	return w.containers[i]
}

// Delete makes a pass of the agent that deletes a pod (syncpod.Syncer.Delete).
func (w *world) Delete(ctx context.Context, ref model.PodRef, opts executor.Options) (*executor.Outcome, error) {
	unlock, err := w.lock(ctx, ref.UID)
	if err != nil {
		return nil, err
	}
	defer unlock()
	seen, err := w.observe(ctx, ref.UID)
	if err != nil {
		return nil, err
	}
	if err := opts.Precondition(w.checkpoint(ref.UID)); err != nil {
		w.rules.forgetDeletion(ref.UID)
		return nil, err
	}
	if p := w.pods[ref.UID]; p != nil && p.desired.Owner == "" && !p.deleting {
		w.wrong("%s was applied by hand, and is deleted without a request", ref.UID)
	}
	return w.remove(ctx, ref, seen), nil
}

// userDeletes is podctl delete.
func (w *world) userDeletes(ref model.PodRef) (*executor.Outcome, error) {
	ctx := w.t.Context()
	unlock, _ := w.lock(ctx, ref.UID)
	defer unlock()
	seen, err := w.observe(ctx, ref.UID)
	if err != nil {
		return nil, err
	}
	return w.remove(ctx, ref, seen), nil
}

// remove stops and removes a pod. It first records the deletion, if the write succeeds.
func (w *world) remove(ctx context.Context, ref model.PodRef, seen []container) *executor.Outcome {
	p := w.pods[ref.UID]
	if p != nil && !p.deleting {
		_ = w.write("deletion of "+string(ref.UID), func() { p.deleting = true })
	}
	var steps []step
	for i := range seen {
		if c := w.find(seen[i].id); seen[i].running {
			steps = append(steps, w.stops(c, nil))
		}
	}
	for i := range seen {
		steps = append(steps, w.removes(w.find(seen[i].id)))
	}
	outcome := w.execute(ctx, ref, steps)
	switch {
	case len(outcome.Failed) > 0:
		return outcome
	case p == nil:
		w.rules.gone(ref.UID)
		return outcome
	}
	if err := w.write("no record of "+string(ref.UID), func() {
		delete(w.pods, ref.UID)
		w.rules.gone(ref.UID)
	}); err != nil {
		outcome.Failed = append(outcome.Failed, executor.StepError{Step: &plan.Step{}, Err: err})
	}
	return outcome
}

// All reads every record. Some or all may be unreadable.
func (w *world) All() (map[types.UID]Stored, map[types.UID]error, error) {
	if w.chance(5) {
		return nil, nil, errFault
	}
	w.rules.read(sortedUIDs(w.rules.ending)...)
	all, unreadable := map[types.UID]Stored{}, map[types.UID]error{}
	for _, uid := range sortedUIDs(w.pods) {
		if w.chance(3) {
			unreadable[uid] = fmt.Errorf("%s is unreadable", uid)
			continue
		}
		all[uid] = w.pods[uid].stored()
	}
	return all, unreadable, nil
}

// Read reads one record.
func (w *world) Read(uid types.UID) (*Stored, error) {
	if w.chance(5) {
		return nil, errFault
	}
	w.rules.read(uid)
	p := w.pods[uid]
	if p == nil {
		return nil, nil
	}
	return new(p.stored()), nil
}

func (p *record) stored() Stored {
	return Stored{Desired: p.desired, Deleting: p.deleting, End: p.end, Idle: p.eviction != nil}
}

// CheckpointUIDs returns the pods that have a record.
func (w *world) CheckpointUIDs() ([]types.UID, error) {
	if w.chance(5) {
		return nil, errFault
	}
	return sortedUIDs(w.pods), nil
}

// PodsChangedAt returns zero: the life triggers the agent's checks itself.
func (w *world) PodsChangedAt() time.Time { return time.Time{} }

// ObjectsChangedAt returns zero: the life wakes all pods itself.
func (w *world) ObjectsChangedAt() time.Time { return time.Time{} }

// Redactor returns nil, because there are no Secrets.
func (w *world) Redactor(*podspec.Desired) *redaction.Redactor { return nil }
