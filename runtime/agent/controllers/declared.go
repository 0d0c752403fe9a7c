package controllers

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

// declared stores what other sources want beside pods, as `podctl apply` does, and removes what they do not want any more.
type declared struct {
	workloads Workloads
	objects   Objects
	now       func() time.Time
	retry     time.Duration
	// mu guards order, updates and version, which counts what was said.
	mu      sync.Mutex
	order   []string
	updates map[string]sources.Update
	version int

	// settles is when it counts what sources do not want that another agent had from them; zero before all were read.
	settles time.Time
	seen    map[state.ObjectKey]bool
	// problems are what is wrong with what sources want, and failed is set when something has to be tried again.
	problems []sources.Problem
	failed   bool
	// takeovers are those of this life, by what was taken over.
	takeovers map[state.ObjectKey]sources.Problem
	// done is what was known when things were stored last.
	done knowledge
}

// knowledge is all that a decision follows from.
type knowledge struct {
	version            int
	workloads, objects time.Time
	settled            bool
}

// Beside is a source whose workloads and objects this one stores. Its pods are told as they are.
func (s *Source) Beside(one sources.Source) sources.Source {
	s.declared.mu.Lock()
	defer s.declared.mu.Unlock()
	s.declared.order = append(s.declared.order, one.Name())
	return &beside{Source: one, to: s}
}

// beside is a source that something else listens to as well.
type beside struct {
	sources.Source

	to *Source
}

// Run lets both hear what the source wants. New objects are stored before the pods that come with them are told: a container finds
// the ConfigMaps, Secrets and Services that are stored when it starts.
func (b *beside) Run(ctx context.Context, reread <-chan chan struct{}, tell func(sources.Update)) {
	var before []*podspec.Object
	b.Source.Run(ctx, reread, func(u sources.Update) {
		b.to.declared.say(u)
		if len(u.Objects) > 0 && !slices.Equal(u.Objects, before) {
			before = u.Objects
			_ = b.to.Look(ctx) // It fails at the end of the agent only.
		} else {
			b.to.wake()
		}
		tell(u)
	})
}

// say takes what a source wants.
func (d *declared) say(u sources.Update) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.updates[u.Source] = u
	d.version++
}

// brings reports whether a source is one of those that were given.
func (d *declared) brings(source string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return source != "" && slices.Contains(d.order, source)
}

// wishes are what sources want now.
func (d *declared) wishes() (*wishes, int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &wishes{order: slices.Clone(d.order), updates: maps.Clone(d.updates)}, d.version
}

// absent are the workloads that no text has at the moment.
func (d *declared) absent() (keys []state.ObjectKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, u := range d.updates {
		for _, w := range u.Absent {
			keys = append(keys, controller.KeyOf(w))
		}
	}
	return keys
}

// store stores what sources want, and removes what they do not want any more. It does nothing while nothing is different. It
// returns when it has to be asked again; zero if only something that is said or changed matters.
func (d *declared) store(ctx context.Context) (again time.Time) {
	w, version := d.wishes()
	if len(w.order) == 0 {
		return time.Time{}
	}
	now := d.now()
	if w.isComplete() && d.settles.IsZero() {
		d.settles = now.Add(sources.Lingers)
	}
	w.settled = !d.settles.IsZero() && !now.Before(d.settles)
	known := knowledge{version, d.workloads.ChangedAt(), d.objects.ChangedAt(), w.settled}
	if known != d.done || d.failed {
		d.decide(ctx, w)
		d.done = known
	}
	if d.failed {
		return now.Add(d.retry)
	}
	if w.settled {
		return time.Time{}
	}
	return d.settles
}

// decide decides and does it. While something that is stored cannot be read, it is tried again; and as long as sources have not
// been read, nothing is done then, because it is not known who brought what.
func (d *declared) decide(ctx context.Context, w *wishes) {
	var err error
	w.stored, err = d.stored()
	w.seen, d.failed = d.seen, err != nil
	if err == nil || w.isComplete() {
		d.carryOut(ctx, w.decide())
	}
}

// stored are the workloads and objects that are stored. One that cannot be read is not among them: it is replaced if a source has
// it, and else left alone.
func (d *declared) stored() (all []*thing, err error) {
	records, unreadRecords := d.workloads.All()
	for _, r := range records {
		all = append(all, &thing{workload: r.Workload})
	}
	kept, unreadObjects := d.objects.All()
	for _, o := range kept {
		all = append(all, &thing{object: o})
	}
	return all, errors.Join(unreadRecords, unreadObjects)
}

// carryOut does what was decided. What cannot be done is a problem of its manifest, and keeps nothing else from being done.
func (d *declared) carryOut(ctx context.Context, what *decision) {
	problems := what.problems
	blame := func(file string, err error) {
		if err != nil {
			problems = append(problems, sources.Problem{File: file, Text: err.Error()})
			d.failed = d.failed || !objects.IsFinal(err)
		}
	}
	for _, t := range what.takeovers {
		if _, noted := d.takeovers[t.key()]; !noted {
			d.takeovers[t.key()] = sources.Takeover(t.file(), nameOf(t), d.now())
		}
	}
	for _, t := range what.remove {
		err := d.remove(ctx, t)
		if err == nil {
			delete(d.seen, t.key())
			delete(d.takeovers, t.key())
		}
		blame(t.file(), err)
	}
	for _, t := range what.put {
		d.seen[t.key()] = true
		if t.workload != nil {
			blame(t.file(), d.workloads.Apply(ctx, t.workload))
		} else {
			blame(t.file(), d.objects.Apply(ctx, t.object))
		}
	}
	problems = sources.Few(controller.Keeper, problems)
	sources.Stamp(problems, d.now(), d.problems)
	d.problems = problems
}

// takenOver are the takeovers, by file.
func (d *declared) takenOver() []sources.Problem {
	all := slices.Collect(maps.Values(d.takeovers))
	sources.Stamp(all, d.now(), nil)
	return sources.Few(controller.Keeper, all)
}

// remove removes what is stored. The Jobs of a CronJob go first: an agent that is killed in between goes on with the CronJob.
func (d *declared) remove(ctx context.Context, t *thing) error {
	key := t.key()
	if t.object != nil {
		return d.objects.Delete(ctx, key)
	}
	if key.Kind == podspec.KindCronJob {
		if err := d.removeJobs(ctx, key); err != nil {
			return err
		}
	}
	_, err := d.workloads.Delete(ctx, key)
	return err
}

func (d *declared) removeJobs(ctx context.Context, cron state.ObjectKey) error {
	records, err := d.workloads.All()
	for _, job := range controller.JobsOf(cron, records) {
		_, deleteErr := d.workloads.Delete(ctx, job.Key())
		err = errors.Join(err, deleteErr)
	}
	return err
}
