package controllers

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/agent/declared"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/sleep"
	"github.com/podctl/podctl/runtime/state"
)

// Workloads stores workloads and the state of their pods.
type Workloads interface {
	declared.Workloads
	// Expand returns the pods that a workload wants now.
	Expand(ctx context.Context, r *controller.Record) (*controller.Expanded, error)
	// KeepJob stores the status of a Job.
	KeepJob(ctx context.Context, r *controller.Record) error
	// Tick starts the runs of a CronJob that are due, and returns when the next is.
	Tick(ctx context.Context, r *controller.Record, all []*controller.Record) (changed bool, next time.Time, err error)
}

// Settings configure a Source.
type Settings struct {
	Workloads Workloads
	Objects   declared.Objects
	// ByHand also keeps the workloads that were applied by hand.
	ByHand bool
	Now    func() time.Time
	Log    *slog.Logger
}

const (
	// checkPeriod is how often the source checks whether a workload has changed.
	checkPeriod = time.Second
	// settleTime is how long the source waits after a change of a pod, because other changes often follow.
	settleTime = 50 * time.Millisecond
	// retryAfter is the time between a failure and the next check.
	retryAfter = 5 * time.Second
)

// Source provides the pods of workloads.
type Source struct {
	Settings

	// declared stores the workloads of the other sources.
	declared *declared.Store

	// podChanged requests a check soon, and declaredChanged at once.
	podChanged, declaredChanged chan struct{}
	// requests requests a check. Each received channel is closed once the result has been reported.
	requests chan chan struct{}
	// mu guards own, the pods that are or were wanted, states, the states of the workloads, and the workloads that were
	// read for Ignores.
	mu      sync.Mutex
	own     map[types.UID]bool
	states  []api.Workload
	records []*controller.Record
	readAt  time.Time

	// wanted are the pods that each workload wanted last. It is nil before the first check.
	wanted map[state.ObjectKey][]*podspec.Desired
	// owners are the sources of the workloads.
	owners map[state.ObjectKey]string
	// failing is set from a failure until a check succeeds, so that the failure is logged once.
	failing bool
}

// New returns a source.
func New(s Settings) *Source {
	return &Source{
		Settings:        s,
		podChanged:      make(chan struct{}, 1),
		declaredChanged: make(chan struct{}, 1),
		requests:        make(chan chan struct{}),
		own:             map[types.UID]bool{},
		declared:        declared.New(s.Workloads, s.Objects, s.Now, retryAfter),
	}
}

// Wrap wraps another source. The workloads and objects of the other source are stored before its updates are
// reported.
func (s *Source) Wrap(one sources.Source) sources.Source {
	return s.declared.Wrap(one, func() { sleep.Wake(s.declaredChanged) })
}

// Name returns the source in the records of the pods.
func (s *Source) Name() string { return model.OwnerWorkloads }

// Rules returns the rules of sources that identify pods by name. Missing pods stay for DropDelay, because the file of a
// workload that another agent has kept may still be read.
func (s *Source) Rules() sources.Rules { return sources.Rules{DropDelay: sources.DropDelay} }

// Ended does nothing, because Changed has already been called for the pod.
func (s *Source) Ended(model.PodRef) {}

// Changed notifies the source that a pod may have changed. It does not block.
func (s *Source) Changed(uid types.UID) {
	s.mu.Lock()
	own := s.own[uid]
	s.mu.Unlock()
	if own {
		sleep.Wake(s.podChanged)
	}
}

// ReadWorkloads waits until the source has read again and reported the wanted pods.
func (s *Source) ReadWorkloads(ctx context.Context) error {
	done := make(chan struct{})
	select {
	case s.requests <- done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

// Run checks the workloads when one has changed, when a pod of one has changed, and when the passing of time changes
// the wanted pods.
func (s *Source) Run(ctx context.Context, reread <-chan chan struct{}, notify func(sources.Update)) {
	looks := time.NewTicker(checkPeriod)
	defer looks.Stop()
	reported, requested := sources.Update{}, chan struct{}(nil)
	for ctx.Err() == nil {
		changed := s.changedAt()
		again := s.declared.Store(ctx)
		update, next, err := s.expandAll(ctx)
		s.report(err)
		if err != nil {
			next = s.Now().Add(retryAfter)
		}
		next = model.Earlier(next, again)
		if s.wanted != nil && !reported.SameAs(update) {
			reported = update
			notify(update)
		}
		if requested != nil {
			close(requested)
		}
		requested = s.wait(ctx, reread, looks.C, changed, next)
	}
}

// wait waits for a possible change. It returns the channel to close after the next check, or nil.
func (s *Source) wait(
	ctx context.Context, reread <-chan chan struct{}, looks <-chan time.Time, changed [2]time.Time, next time.Time,
) (requested chan struct{}) {
	var due <-chan time.Time
	if !next.IsZero() {
		timer := time.NewTimer(max(next.Sub(s.Now()), settleTime))
		defer timer.Stop()
		due = timer.C
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case requested = <-reread:
			return requested
		case <-due:
			return nil
		case requested = <-s.requests:
			return requested
		case <-looks:
			if s.changedAt() != changed {
				return nil
			}
		case <-s.declaredChanged:
			return nil
		case <-s.podChanged:
			_ = sleep.For(ctx, settleTime)
			return nil
		}
	}
}

// changedAt returns when workloads and objects last changed.
func (s *Source) changedAt() [2]time.Time {
	return [2]time.Time{s.Workloads.ChangedAt(), s.Objects.ChangedAt()}
}

// report logs a failure once, and the next success.
func (s *Source) report(err error) {
	switch {
	case err != nil && !s.failing:
		s.Log.Error("workloads", "error", err.Error())
	case err == nil && s.failing:
		s.Log.Info("workloads can be read again")
	}
	s.failing = err != nil
}

// expandAll computes the pods of all workloads, and when the passing of time will change them. A workload that cannot
// be read or expanded keeps its earlier pods.
func (s *Source) expandAll(ctx context.Context) (update sources.Update, next time.Time, err error) {
	records, next, unread := s.startDueRuns(ctx)
	if unread != nil && s.wanted == nil {
		return s.update(), next, unread
	}
	err = unread
	wanted, owners, states := map[state.ObjectKey][]*podspec.Desired{}, map[state.ObjectKey]string{}, []api.Workload{}
	for _, r := range records {
		x, expandErr := s.expand(ctx, r)
		switch {
		case x == nil && expandErr != nil:
			// Before all workloads are known, the absence of pods has no meaning.
			return sources.Update{}, time.Time{}, expandErr
		case x == nil:
			continue
		case expandErr != nil:
			err = errors.Join(err, expandErr)
		}
		s.keepJob(ctx, r, x)
		wanted[r.Key()], owners[r.Key()] = s.stable(r.Key(), x.Pods), ownerOf(r, records)
		states = append(states, stateOf(r, x, expandErr))
		next = model.Earlier(next, x.Next)
	}
	if unread != nil {
		s.keepUnread(wanted, owners)
	}
	s.wanted, s.owners = wanted, owners
	s.mu.Lock()
	s.states = states
	s.mu.Unlock()
	return s.update(), next, err
}

// expand computes the pods of a workload. It returns nil without an error for one that has expired: its record is
// deleted.
func (s *Source) expand(ctx context.Context, r *controller.Record) (*controller.Expanded, error) {
	x, err := s.Workloads.Expand(ctx, r)
	switch {
	case err != nil && s.wanted != nil:
		return &controller.Expanded{Pods: s.wanted[r.Key()]}, err
	case err != nil || !x.Expired:
		return x, err
	case s.declared.Provides(r.Workload.Owner):
		// Deleting the record would apply and run the Job again while its manifest exists.
		return &controller.Expanded{}, nil
	}
	_, err = s.Workloads.Delete(ctx, r.Key())
	s.report(err)
	return nil, nil
}

// keepUnread adds the earlier pods of workloads that could not be read.
func (s *Source) keepUnread(wanted map[state.ObjectKey][]*podspec.Desired, owners map[state.ObjectKey]string) {
	for key, pods := range s.wanted {
		if _, read := wanted[key]; !read {
			wanted[key], owners[key] = pods, s.owners[key]
		}
	}
}

// startDueRuns starts the runs of CronJobs that are due, and then reads all workloads. next is when another run is due.
func (s *Source) startDueRuns(ctx context.Context) (records []*controller.Record, next time.Time, err error) {
	records, err = s.kept()
	started := false
	for _, r := range records {
		if r.Workload.CronJob == nil {
			continue
		}
		changed, due, tickErr := s.Workloads.Tick(ctx, r, records)
		s.report(tickErr)
		started = started || changed
		next = model.Earlier(next, due)
	}
	if started && err == nil {
		records, err = s.kept()
	}
	return records, next, err
}

// kept returns the kept workloads: those of sources with the Jobs of their CronJobs, and, with ByHand, those that were
// applied by hand.
func (s *Source) kept() ([]*controller.Record, error) {
	records, err := s.Workloads.All()
	if s.ByHand {
		return records, err
	}
	isUnclaimed := func(r *controller.Record) bool { return !s.declared.Provides(ownerOf(r, records)) }
	return slices.DeleteFunc(slices.Clone(records), isUnclaimed), err
}

func (s *Source) keepJob(ctx context.Context, r *controller.Record, x *controller.Expanded) {
	if x.Job == nil {
		return
	}
	kept := *r
	kept.Job = x.Job
	if err := s.Workloads.KeepJob(ctx, &kept); err != nil {
		s.report(err)
	}
}

// stable prepares pods for an update. An unchanged pod keeps its pointer.
func (s *Source) stable(key state.ObjectKey, pods []*podspec.Desired) []*podspec.Desired {
	stable := make([]*podspec.Desired, 0, len(pods))
	for _, d := range pods {
		i := slices.IndexFunc(s.wanted[key], func(other *podspec.Desired) bool {
			return other.Pod.UID == d.Pod.UID && other.Source == d.Source &&
				slices.Equal(other.Shared, d.Shared) && other.SameAs(d)
		})
		if i >= 0 {
			stable = append(stable, s.wanted[key][i])
			continue
		}
		pod := *d
		pod.Stored = false
		stable = append(stable, &pod)
	}
	return stable
}

// update returns the pods of all workloads.
func (s *Source) update() sources.Update {
	u := sources.Update{Source: s.Name(), Complete: s.wanted != nil, WorkloadSources: map[types.UID]string{}}
	u.Problems, u.Takeovers = s.declared.Notices()
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.own)
	for key, pods := range s.wanted {
		for _, d := range pods {
			u.Pods = append(u.Pods, d)
			s.own[d.Pod.UID] = true
			u.WorkloadSources[d.Pod.UID] = s.owners[key]
		}
	}
	for _, key := range s.declared.Absent() {
		for _, d := range s.wanted[key] {
			u.Missing = append(u.Missing, d.Pod.UID)
		}
	}
	slices.Sort(u.Missing)
	slices.SortFunc(u.Pods, func(a, b *podspec.Desired) int { return model.RefOf(a.Pod).Compare(model.RefOf(b.Pod)) })
	return u
}
