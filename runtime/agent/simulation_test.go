package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/agent/pleg"
	"github.com/podctl/podctl/runtime/agent/podworkers"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/syncpod"
)

// world is a runtime and a state directory as a model: what a pass would come to, without its steps.
type world struct {
	t    *testing.T
	rand *rand.Rand
	now  time.Time
	pods map[types.UID]*livingPod
	ids  int
	// faulty lets passes fail.
	faulty bool
	// ended are the containers that something asked to end, by id.
	stops []string
}

// livingPod is a pod that was applied.
type livingPod struct {
	record   *podspec.Desired
	deleting bool
	// id and image are those of its container; no id means that it does not run.
	id    int
	image string
}

func imageOf(d *podspec.Desired) string { return d.Pod.Spec.Containers[0].Image }

var errFault = errors.New("a fault")

// Apply brings a pod to the state of its manifest, or fails before or after it did.
func (w *world) Apply(ctx context.Context, d *podspec.Desired, opts executor.Options) (*executor.Outcome, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	uid := d.Pod.UID
	p := w.pods[uid]
	if d.Stored {
		switch {
		case p == nil:
			return nil, &syncpod.SupersededError{Pod: model.RefOf(d.Pod), Deleted: true}
		case p.deleting || !p.record.SameManifest(d):
			return nil, &syncpod.SupersededError{Pod: model.RefOf(d.Pod)}
		}
	}
	fault := w.faulty && w.rand.IntN(4) == 0
	if fault && w.rand.IntN(2) == 0 {
		return nil, errFault
	}
	w.bring(d)
	outcome := &executor.Outcome{Plan: &plan.Plan{Pod: model.RefOf(d.Pod)}}
	if fault {
		outcome.Failed = []executor.StepError{{Step: &plan.Step{}, Err: errFault}}
	}
	return outcome, nil
}

// bring is a pass without faults, also that of a user.
func (w *world) bring(d *podspec.Desired) {
	p := w.pods[d.Pod.UID]
	if p == nil {
		p = &livingPod{}
		w.pods[d.Pod.UID] = p
	}
	kept := *d
	p.record, p.deleting = &kept, false
	if p.id != 0 && p.image != imageOf(d) {
		w.stops = append(w.stops, fmt.Sprint(p.id))
		p.id = 0
	}
	if p.id == 0 {
		w.ids++
		p.id, p.image = w.ids, imageOf(d)
	}
}

// Delete takes a pod away, or begins to.
func (w *world) Delete(ctx context.Context, ref model.PodRef, opts executor.Options) (*executor.Outcome, error) {
	p := w.pods[ref.UID]
	c := &state.Checkpoint{}
	if p != nil {
		c.Applied = p.record
		if p.deleting {
			c.Deletion = &model.Deletion{}
		}
	}
	if opts.Precondition != nil {
		if err := opts.Precondition(c); err != nil {
			return nil, err
		}
	}
	if p != nil && p.record.Keeper == "" && !p.deleting {
		w.t.Errorf("%s was applied by hand, and nobody asked to delete it", ref.UID)
	}
	if p != nil && w.faulty && w.rand.IntN(4) == 0 {
		p.deleting = true
		return nil, errFault
	}
	w.remove(ref.UID)
	return &executor.Outcome{Plan: &plan.Plan{Pod: ref}}, nil
}

func (w *world) remove(uid types.UID) {
	if p := w.pods[uid]; p != nil && p.id != 0 {
		w.stops = append(w.stops, fmt.Sprint(p.id))
	}
	delete(w.pods, uid)
}

// All reads every record.
func (w *world) All() (map[types.UID]Stored, []error, error) {
	all := map[types.UID]Stored{}
	for uid := range w.pods {
		s, _ := w.Read(uid)
		all[uid] = *s
	}
	return all, nil, nil
}

// Read reads one record.
func (w *world) Read(uid types.UID) (*Stored, error) {
	p := w.pods[uid]
	if p == nil {
		return nil, nil
	}
	kept := *p.record
	kept.Stored = true
	return &Stored{Desired: &kept, Deleting: p.deleting}, nil
}

// ObjectsChangedAt is never: pods have none.
func (w *world) ObjectsChangedAt() time.Time { return time.Time{} }

// Redactor knows no Secrets.
func (w *world) Redactor(*podspec.Desired) *redaction.Redactor { return nil }

// life is one random life of an agent, its sources and its pods.
type life struct {
	*world
	agent *Agent
	// wants is what each source wants, and told what it has told.
	wants map[string]map[string]*podspec.Desired
	told  map[string]bool
	// begun are the passes that run, by pod.
	begun map[types.UID]podworkers.Pass
	cut   map[types.UID]bool
	// asked are the images that some manifest asked for, by pod, since the beginning, and gone the
	// pods whose end somebody asked for.
	log []string
}

func newLife(t *testing.T, seed uint64) *life {
	l := &life{
		world: &world{t: t, rand: rand.New(rand.NewPCG(seed, 0)), now: at(0), pods: map[types.UID]*livingPod{}},
		wants: map[string]map[string]*podspec.Desired{"one": {}, "two": {}},
	}
	l.restart()
	return l
}

// restart is the death of the agent and its next life: what passes were doing is done, or is not.
func (l *life) restart() {
	l.note("restart")
	for _, uid := range slices.Sorted(maps.Keys(l.begun)) {
		if l.rand.IntN(2) == 0 {
			l.run(uid)
		}
	}
	l.begun, l.cut, l.told = map[types.UID]podworkers.Pass{}, map[types.UID]bool{}, map[string]bool{}
	l.agent = New(World{Passes: l.world, Records: l.world, Client: &cri.Client{}, Renew: func() {}}, Settings{
		Sources: []sources.Source{named("one"), named("two")}, Applied: true, Parallel: 3,
		Now: func() time.Time { return l.now }, Log: slog.New(slog.DiscardHandler),
	})
	if err := l.agent.readRecords(); err != nil {
		l.t.Fatal(err)
	}
}

// named is a source that is told by the test.
type named string

func (n named) Name() string                                             { return string(n) }
func (named) Run(context.Context, <-chan struct{}, func(sources.Update)) {}
func (named) Ended(model.PodRef)                                         {}
func (l *life) note(format string, args ...any)                          { l.log = append(l.log, fmt.Sprintf(format, args...)) }

func (l *life) manifest(source, name, uid string, image int) *podspec.Desired {
	return pod(name, uid, fmt.Sprintf("i:%d", image), source)
}

// begin lets the agent begin what is due.
func (l *life) begin() {
	due, cut, _ := l.agent.workers.Next(l.now)
	for _, uid := range cut {
		l.cut[uid] = true
	}
	for _, p := range due {
		if _, twice := l.begun[p.Ref.UID]; twice {
			l.t.Errorf("two passes of %s at the same time", p.Ref.UID)
		}
		for _, other := range l.begun {
			if other.Ref.SameName(p.Ref) && other.Ref.UID != p.Ref.UID && p.Kind == podworkers.Sync && l.pods[p.Ref.UID] == nil {
				l.t.Errorf("%s begins beside %s, which has its name", p.Ref.UID, other.Ref.UID)
			}
		}
		l.begun[p.Ref.UID] = p
		l.note("begin %s %s", p.Kind, p.Ref.UID)
	}
}

// run does what a pass does.
func (l *life) run(uid types.UID) passed {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p := l.begun[uid]
	if l.cut[uid] && p.Kind == podworkers.Sync {
		cancel()
	}
	return l.agent.makePass(ctx, p, l.agent.admits.of(uid))
}

// finish ends a pass that runs.
func (l *life) finish(uid types.UID) {
	done := l.run(uid)
	delete(l.begun, uid)
	delete(l.cut, uid)
	l.note("end %s %s: %v", done.pass.Kind, uid, done.failure())
	l.agent.passed(l.t.Context(), &done)
}

// tell lets a source tell what it wants.
func (l *life) tell(source string) {
	l.told[source] = true
	u := sources.Update{Source: source, Complete: true}
	for _, name := range slices.Sorted(maps.Keys(l.wants[source])) {
		u.Pods = append(u.Pods, l.wants[source][name])
	}
	l.agent.sourceTells(u)
}

// names and uids are few, so that they meet.
func (l *life) some() (name, uid string) {
	name = []string{"a", "b", "c"}[l.rand.IntN(3)]
	return name, name + []string{"1", "1", "1", "2"}[l.rand.IntN(4)]
}

// step is one thing that happens.
func (l *life) step() {
	l.now = l.now.Add(time.Duration(l.rand.IntN(3000)) * time.Millisecond)
	source := []string{"one", "two"}[l.rand.IntN(2)]
	name, uid := l.some()
	switch l.rand.IntN(12) {
	case 0, 1:
		l.wants[source][name] = l.manifest(source, name, uid, l.rand.IntN(3))
		l.note("%s wants %s %s", source, uid, imageOf(l.wants[source][name]))
	case 2:
		delete(l.wants[source], name)
		l.note("%s wants no %s", source, name)
	case 3:
		l.tell(source)
	case 4:
		l.byHand(name, uid)
	case 5:
		l.die(types.UID(uid))
	case 6:
		if l.rand.IntN(6) == 0 {
			l.restart()
		}
	default:
		if len(l.begun) > 0 {
			running := slices.Sorted(maps.Keys(l.begun))
			l.finish(running[l.rand.IntN(len(running))])
		}
	}
	l.begin()
}

// byHand is somebody who applies or deletes a pod beside the agent. Nobody applies one whose name
// another uid has: podctl refuses it.
func (l *life) byHand(name, uid string) {
	if l.pods[types.UID(uid)] != nil && l.rand.IntN(2) == 0 {
		l.note("delete %s by hand", uid)
		l.remove(types.UID(uid))
	} else {
		for other, p := range l.pods {
			if p.record.Pod.Name == name && other != types.UID(uid) {
				return
			}
		}
		d := l.manifest("", name, uid, l.rand.IntN(3))
		l.note("apply %s %s by hand", uid, imageOf(d))
		l.bring(d)
	}
	l.event(types.UID(uid))
}

// die is the death of a container.
func (l *life) die(uid types.UID) {
	if p := l.pods[uid]; p != nil && p.id != 0 {
		l.note("%s dies", uid)
		p.id = 0
		l.event(uid)
	}
}

func (l *life) event(uid types.UID) { l.agent.runtimeTells(&pleg.Event{Pods: []types.UID{uid}}) }

// settle lets everything come to rest.
func (l *life) settle() {
	l.faulty = false
	l.tell("one")
	l.tell("two")
	for range 400 {
		l.now = l.now.Add(time.Second)
		l.begin()
		for _, uid := range slices.Sorted(maps.Keys(l.begun)) {
			l.finish(uid)
		}
	}
}

// wanted is what there shall be in the end: what the first source wants, then the second, and what
// was applied by hand and is not wanted by one of them.
func (l *life) wanted() map[types.UID]string {
	all, names := map[types.UID]string{}, map[string]bool{}
	for uid, p := range l.pods {
		if p.record.Keeper == "" {
			all[uid], names[p.record.Pod.Name] = imageOf(p.record), true
		}
	}
	taken := maps.Clone(names)
	for _, source := range []string{"one", "two"} {
		for _, name := range slices.Sorted(maps.Keys(l.wants[source])) {
			d := l.wants[source][name]
			if _, byHand := all[d.Pod.UID]; taken[name] && !byHand {
				continue
			}
			if !taken[name] || !slices.Contains(slices.Collect(maps.Keys(all)), d.Pod.UID) {
				all[d.Pod.UID] = imageOf(d)
			}
			taken[name] = true
		}
	}
	return all
}

// TestRandomLives: whatever happens in whatever order, no two passes of a pod or of a name run at
// the same time, nothing is stopped once everything is as it shall be, and what runs in the end is
// what the sources and the users want.
func TestRandomLives(t *testing.T) {
	lives := 3000
	if testing.Short() {
		lives = 300
	}
	for seed := range uint64(lives) {
		l := newLife(t, seed)
		l.faulty = true
		for range 60 {
			l.step()
		}
		l.settle()
		wants, has := l.wanted(), map[types.UID]string{}
		for uid, p := range l.pods {
			if p.id != 0 {
				has[uid] = p.image
			}
		}
		stops := len(l.stops)
		l.settle()
		if !maps.Equal(wants, has) || len(l.stops) != stops || t.Failed() {
			t.Fatalf("life %d: in the end there is %v, want %v; %d stops afterwards\n%s", seed, has, wants, len(l.stops)-stops, strings.Join(l.log, "\n"))
		}
	}
}
