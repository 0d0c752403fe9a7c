package controllers

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// Workloads are what is kept of workloads and of their pods.
type Workloads interface {
	// All reads the stored workloads. With an error some are missing.
	All() ([]*controller.Record, error)
	// ChangedAt is when one was changed last; it is cheap.
	ChangedAt() time.Time
	// Expand says which pods a workload shall have now.
	Expand(ctx context.Context, r *controller.Record) (*controller.Expanded, error)
	// KeepJob keeps the status of a Job, Delete forgets a workload.
	KeepJob(ctx context.Context, r *controller.Record) error
	Delete(ctx context.Context, key state.ObjectKey) (found bool, err error)
	// Tick starts the runs of a CronJob that are due, and says when the next is.
	Tick(ctx context.Context, r *controller.Record, all []*controller.Record) (changed bool, next time.Time, err error)
}

// Times are how often a source looks.
type Times struct {
	// Store is how often it is looked whether a workload was changed; zero means each second.
	Store time.Duration
	// Settle is how long after a change of a pod it is looked at the workloads: others follow. Zero means 50 ms.
	Settle time.Duration
	// Retry is when it is looked again after a failure; zero means 5 seconds.
	Retry time.Duration
}

// Source wants the pods of workloads.
type Source struct {
	workloads Workloads
	times     Times
	now       func() time.Time
	log       *slog.Logger

	poke chan struct{}
	// asks are closed once the source has looked and told what it found.
	asks chan chan struct{}
	// mu guards own, which are the pods that it wants or has wanted.
	mu  sync.Mutex
	own map[types.UID]bool

	// wanted are the pods that each workload wanted last; nil before the first look.
	wanted map[state.ObjectKey][]*podspec.Desired
	// failing is set from a failure until a look succeeds, so that it is written once.
	failing bool
}

// New makes a source.
func New(w Workloads, now func() time.Time, log *slog.Logger, t Times) *Source {
	for value, usual := range map[*time.Duration]time.Duration{&t.Store: time.Second, &t.Settle: 50 * time.Millisecond, &t.Retry: 5 * time.Second} {
		if *value == 0 {
			*value = usual
		}
	}
	return &Source{workloads: w, times: t, now: now, log: log, poke: make(chan struct{}, 1), asks: make(chan chan struct{}), own: map[types.UID]bool{}}
}

// Name is what the pods' records have as their source.
func (s *Source) Name() string { return controller.Keeper }

// Ended does nothing: Changed has said that something happened to the pod.
func (s *Source) Ended(model.PodRef) {}

// Changed says that something may have happened to a pod. It does not wait.
func (s *Source) Changed(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.own[uid] {
		return
	}
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// Look waits until the source has looked anew, and what it wants has been told.
func (s *Source) Look(ctx context.Context) error {
	done := make(chan struct{})
	select {
	case s.asks <- done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// Run looks at the workloads when one was changed, when something happened to a pod of one, and when time alone changes
// what they want.
func (s *Source) Run(ctx context.Context, reread <-chan struct{}, tell func(sources.Update)) {
	looks := time.NewTicker(s.times.Store)
	defer looks.Stop()
	told, asked := sources.Update{}, chan struct{}(nil)
	for ctx.Err() == nil {
		changed := s.workloads.ChangedAt()
		update, next, err := s.look(ctx)
		s.report(err)
		if err != nil {
			next = s.now().Add(s.times.Retry)
		}
		if s.wanted != nil && !same(told, update) {
			told = update
			tell(update)
		}
		if asked != nil {
			close(asked)
		}
		asked = s.wait(ctx, reread, looks.C, changed, next)
	}
}

// wait waits until something may be different. It returns whom to tell of the next look; nil for nobody.
func (s *Source) wait(ctx context.Context, reread <-chan struct{}, looks <-chan time.Time, changed, next time.Time) (asked chan struct{}) {
	var due <-chan time.Time
	if !next.IsZero() {
		timer := time.NewTimer(max(next.Sub(s.now()), s.times.Settle))
		defer timer.Stop()
		due = timer.C
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-reread:
			return nil
		case <-due:
			return nil
		case asked = <-s.asks:
			return asked
		case <-looks:
			if !s.workloads.ChangedAt().Equal(changed) {
				return nil
			}
		case <-s.poke:
			_ = cri.Sleep(ctx, s.times.Settle)
			return nil
		}
	}
}

// report writes once that workloads cannot be looked at, and that they can be again.
func (s *Source) report(err error) {
	switch {
	case err != nil && !s.failing:
		s.log.Error("workloads", "error", err.Error())
	case err == nil && s.failing:
		s.log.Info("workloads can be looked at again")
	}
	s.failing = err != nil
}

// look finds out what all workloads want, and when time alone changes that. What cannot be looked at wants what it wanted
// before.
func (s *Source) look(ctx context.Context) (update sources.Update, next time.Time, err error) {
	records, next, err := s.ticked(ctx)
	if err != nil {
		return s.update(), next, err
	}
	wanted := map[state.ObjectKey][]*podspec.Desired{}
	for _, r := range records {
		x, expandErr := s.workloads.Expand(ctx, r)
		if expandErr != nil {
			if s.wanted == nil {
				// Nothing follows from what is missing before all is known.
				return sources.Update{}, time.Time{}, expandErr
			}
			wanted[r.Key()], err = s.wanted[r.Key()], expandErr
			continue
		}
		if x.Expired {
			_, deleteErr := s.workloads.Delete(ctx, r.Key())
			s.report(deleteErr)
			continue
		}
		s.keepJob(ctx, r, x)
		wanted[r.Key()] = s.stable(r.Key(), x.Pods)
		if !x.Next.IsZero() && (next.IsZero() || x.Next.Before(next)) {
			next = x.Next
		}
	}
	s.wanted = wanted
	return s.update(), next, err
}

// ticked starts the runs of CronJobs that are due, and reads all workloads then. Next is when another run is due.
func (s *Source) ticked(ctx context.Context) (records []*controller.Record, next time.Time, err error) {
	records, err = s.workloads.All()
	anew := false
	for _, r := range records {
		if r.Workload.CronJob == nil {
			continue
		}
		changed, due, tickErr := s.workloads.Tick(ctx, r, records)
		s.report(tickErr)
		anew = anew || changed
		if !due.IsZero() && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	if anew && err == nil {
		records, err = s.workloads.All()
	}
	return records, next, err
}

func (s *Source) keepJob(ctx context.Context, r *controller.Record, x *controller.Expanded) {
	if x.Job == nil {
		return
	}
	kept := *r
	kept.Job = x.Job
	if err := s.workloads.KeepJob(ctx, &kept); err != nil {
		s.report(err)
	}
}

// stable are pods as the agent takes them from a source; one of which nothing changed is the one that was told before.
func (s *Source) stable(key state.ObjectKey, pods []*podspec.Desired) []*podspec.Desired {
	stable := make([]*podspec.Desired, 0, len(pods))
	for _, d := range pods {
		i := slices.IndexFunc(s.wanted[key], func(other *podspec.Desired) bool {
			return other.Pod.UID == d.Pod.UID && other.Source == d.Source && other.SameManifest(d)
		})
		if i >= 0 {
			stable = append(stable, s.wanted[key][i])
			continue
		}
		told := *d
		told.Stored = false
		stable = append(stable, &told)
	}
	return stable
}

// update is what all workloads want together.
func (s *Source) update() sources.Update {
	u := sources.Update{Source: s.Name(), Complete: s.wanted != nil}
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.own)
	for _, pods := range s.wanted {
		for _, d := range pods {
			u.Pods = append(u.Pods, d)
			s.own[d.Pod.UID] = true
		}
	}
	slices.SortFunc(u.Pods, func(a, b *podspec.Desired) int { return model.RefOf(a.Pod).Compare(model.RefOf(b.Pod)) })
	return u
}

func same(a, b sources.Update) bool { return a.Complete == b.Complete && slices.Equal(a.Pods, b.Pods) }
