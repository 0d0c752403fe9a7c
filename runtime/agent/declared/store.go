package declared

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/owner"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

// Workloads are the stored workloads.
type Workloads interface {
	// All reads all workloads. With an error some are missing.
	All() ([]*controller.Record, error)
	// ChangedAt returns when a workload was last changed. It is cheap.
	ChangedAt() time.Time
	// Apply stores a workload as its manifest has it. It writes nothing if the workload is unchanged.
	Apply(ctx context.Context, w *podspec.Workload) error
	// Delete removes a workload.
	Delete(ctx context.Context, key state.ObjectKey) (found bool, err error)
}

// Objects are the stored ConfigMaps, Secrets, claims and Services.
type Objects interface {
	// All reads all objects. With an error some are missing.
	All() ([]*podspec.Object, error)
	// ChangedAt returns when an object was last changed. It is cheap.
	ChangedAt() time.Time
	// Apply stores an object as its manifest has it. It writes nothing if the object is unchanged.
	Apply(ctx context.Context, o *podspec.Object) error
	// Delete removes an object. A missing object is not an error.
	Delete(ctx context.Context, key state.ObjectKey) error
}

// Store stores the workloads and objects of sources.
type Store struct {
	Workloads Workloads
	Objects   Objects
	Now       func() time.Time
	// Retry is the time between a failure and the next attempt.
	Retry time.Duration

	// mu guards the ledger, version, which counts its updates, and the problems. It is held only briefly.
	mu       sync.Mutex
	ledger   *owner.Ledger
	version  int
	problems []sources.Problem

	// storing is held while resources are stored. It guards failed, which is set if an attempt must be repeated, and
	// decidedOn, the state of the last attempt.
	storing   sync.Mutex
	failed    bool
	decidedOn inputs
}

// inputs is the state on which a decision depends. The passing of time changes the decision at nextDrop, or never if
// zero.
type inputs struct {
	version            int
	workloads, objects time.Time
	nextDrop           time.Time
}

// New returns a store without sources.
func New(w Workloads, o Objects, now func() time.Time, retry time.Duration) *Store {
	return &Store{Workloads: w, Objects: o, Now: now, Retry: retry, ledger: owner.New(owner.Others, true)}
}

// Wrap wraps a source and stores its workloads and objects. It calls changed after each update of the source.
func (s *Store) Wrap(one sources.Source, changed func()) sources.Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.Add(one)
	return &wrapped{Source: one, store: s, changed: changed}
}

// wrapped is a source whose workloads and objects are stored.
type wrapped struct {
	sources.Source

	store   *Store
	changed func()
}

// Run stores new objects before it reports the update, because containers need the stored ConfigMaps, Secrets and
// Services when they start.
func (b *wrapped) Run(ctx context.Context, reread <-chan chan struct{}, notify func(sources.Update)) {
	var before []*podspec.Object
	b.Source.Run(ctx, reread, func(u sources.Update) {
		b.store.SetUpdate(u)
		if len(u.Objects) > 0 && !slices.Equal(u.Objects, before) {
			before = u.Objects
			b.store.Store(ctx)
		}
		b.changed()
		notify(u)
	})
}

// SetUpdate sets the update of a source.
func (s *Store) SetUpdate(u sources.Update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.Updates[u.Source] = u
	s.version++
}

// Provides reports whether the workloads and objects of a source are stored.
func (s *Store) Provides(source string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.Owns(source)
}

// Absent returns the workloads that no text has at the moment.
func (s *Store) Absent() (keys []state.ObjectKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.ledger.Updates {
		for _, w := range u.Absent {
			keys = append(keys, controller.KeyOf(w))
		}
	}
	return keys
}

// Notices returns the problems and the takeovers of sources by file.
func (s *Store) Notices() (problems, takeovers []sources.Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	takeovers = slices.Collect(maps.Values(s.ledger.Takeovers))
	sources.Stamp(takeovers, s.Now(), nil)
	return s.problems, sources.Few(model.OwnerWorkloads, takeovers)
}

// Store stores the resources that sources want, and removes those that they no longer want. It does nothing if nothing
// has changed. It returns when to call it again, or zero if only an update or a change of the stored resources matters.
func (s *Store) Store(ctx context.Context) (again time.Time) {
	s.storing.Lock()
	defer s.storing.Unlock()
	now := s.Now()
	known := s.currentInputs(now)
	if known.version == 0 {
		return time.Time{}
	}
	if known != s.decidedOn || s.failed {
		known.nextDrop = s.decide(ctx, now)
		s.decidedOn = known
	}
	if s.failed {
		return now.Add(s.Retry)
	}
	return known.nextDrop
}

// currentInputs returns the state on which a decision would depend now.
func (s *Store) currentInputs(now time.Time) inputs {
	s.mu.Lock()
	defer s.mu.Unlock()
	return inputs{s.version, s.Workloads.ChangedAt(), s.Objects.ChangedAt(), s.ledger.NextDrop(now)}
}

// decide makes and carries out a decision, and returns when the passing of time changes it. While a stored resource
// cannot be read, decide is retried. If some sources have not been read either, decide does nothing, because the owners
// are unknown.
func (s *Store) decide(ctx context.Context, now time.Time) (settles time.Time) {
	stored, err := s.stored()
	s.failed = err != nil
	s.mu.Lock()
	if err != nil && !s.ledger.Complete() {
		s.mu.Unlock()
		return time.Time{}
	}
	decision := s.ledger.Decide(now, stored)
	settles = s.ledger.NextDrop(now)
	var problems []sources.Problem
	for _, name := range s.ledger.Order {
		problems = append(problems, decision.Problems[name]...)
	}
	s.mu.Unlock()
	problems = append(problems, s.execute(ctx, decision)...)
	problems = sources.Few(model.OwnerWorkloads, problems)
	s.mu.Lock()
	defer s.mu.Unlock()
	sources.Stamp(problems, now, s.problems)
	s.problems = problems
	return settles
}

// stored returns the stored workloads and objects. An unreadable one is left out: it is replaced if a source has it,
// and otherwise not touched.
func (s *Store) stored() (all []owner.Record, err error) {
	records, unreadRecords := s.Workloads.All()
	for _, r := range records {
		all = append(all, owner.Record{Resource: owner.Workload(r.Workload)})
	}
	kept, unreadObjects := s.Objects.All()
	for _, o := range kept {
		all = append(all, owner.Record{Resource: owner.Object(o)})
	}
	return all, errors.Join(unreadRecords, unreadObjects)
}

// execute carries out a decision. A failure is a problem of its manifest, and does not stop the rest.
func (s *Store) execute(ctx context.Context, decision *owner.Decision) (problems []sources.Problem) {
	addProblem := func(file string, err error) {
		if err != nil {
			problems = append(problems, sources.Problem{File: file, Text: err.Error()})
			s.failed = s.failed || !objects.IsFinal(err)
		}
	}
	for i := range decision.Deleted {
		t := &decision.Deleted[i].Resource
		err := s.remove(ctx, t)
		if err == nil {
			s.mu.Lock()
			s.ledger.Forget(t.ID())
			s.mu.Unlock()
		}
		addProblem(t.File, err)
	}
	for _, t := range decision.Wanted {
		if t.Workload != nil {
			addProblem(t.File, s.Workloads.Apply(ctx, t.Workload))
		} else {
			addProblem(t.File, s.Objects.Apply(ctx, t.Object))
		}
	}
	return problems
}

// remove removes a stored resource. The Jobs of a CronJob are removed first: if the agent is killed in between, the
// CronJob continues.
func (s *Store) remove(ctx context.Context, t *owner.Resource) error {
	if t.Object != nil {
		return s.Objects.Delete(ctx, objects.KeyOf(t.Object))
	}
	key := controller.KeyOf(t.Workload)
	if key.Kind == podspec.KindCronJob {
		if err := s.removeJobs(ctx, key); err != nil {
			return err
		}
	}
	_, err := s.Workloads.Delete(ctx, key)
	return err
}

func (s *Store) removeJobs(ctx context.Context, cron state.ObjectKey) error {
	records, err := s.Workloads.All()
	for _, job := range controller.JobsOf(cron, records) {
		_, deleteErr := s.Workloads.Delete(ctx, job.Key())
		err = errors.Join(err, deleteErr)
	}
	return err
}
