package statuses

import (
	"cmp"
	"context"
	"slices"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/cluster/apierror"
)

const (
	// observeSoon is the delay before a changed pod is observed, and observeEvery the shortest time between the starts
	// of two observations. A status is therefore at most 50 ms older than the first change that it does not show.
	// observeLater is the delay if more changes follow. A status may then be 250 ms old: most first containers run
	// within 200 ms after the first step for their pod, and an observation in between makes them start later.
	// On a busy machine, observations take at most half of the time: after a long one, the next one waits as long as
	// that took, up to restMax.
	observeSoon  = time.Millisecond
	observeLater = 250 * time.Millisecond
	observeEvery = 50 * time.Millisecond
	restMax      = time.Second
	// compareEvery is the time between two comparisons of all pods (kubelet: syncPeriod).
	compareEvery = 10 * time.Second
	// requestsMax limits the requests in flight.
	requestsMax = 8
	// logsFirst is the number of failures that are logged without a limit, and logsEvery the time between later ones.
	logsFirst = 10
	logsEvery = 10 * time.Second
	// lastWords limits the time for the last statuses when the context ends.
	lastWords = time.Second
	// wakeAfter is the age from which a request in flight is canceled when the API server responds again. It may wait
	// for a connection that is lost.
	wakeAfter = 2 * time.Second
)

// loop is the state of a running manager. Only one goroutine uses it.
type loop struct {
	*Manager

	pods map[types.UID]*entry
	// dirty are the pods that must be observed again, at dirtyAt.
	dirty   map[types.UID]bool
	dirtyAt time.Time
	// missed are the pods that could not be observed. They are observed again after missedRetry.
	missed          map[types.UID]bool
	missedRetry     backoff
	observeFailures apierror.Once
	// observing is set while pods are observed. observedAt is when that last began. The next observation does not begin
	// before restUntil.
	observing    bool
	observedAt   time.Time
	restUntil    time.Time
	observations chan observation
	compareAt    time.Time
	inFlight     int
	results      chan result
	// logs limits the log of failures.
	logs rate.Sometimes
}

// entry is a pod with the state of its requests.
type entry struct {
	known

	// check is set while a decision is due, since the given time. retry delays it.
	check bool
	since time.Time
	retry backoff
	// busy is set while a request is in flight, which cancel ends.
	busy   bool
	sentAt time.Time
	// changed is since when the decision of this request was due.
	changed time.Time
	cancel  context.CancelCauseFunc
	// orphan is set if the agent does not show the pod any more, and unwatched if it has no watched copy yet.
	orphan, unwatched bool
	failures          apierror.Once
	// timeouts counts the requests in a row without an answer, and denials those whose answer was that the pod is gone.
	timeouts, denials int
}

func newLoop(m *Manager) *loop {
	return &loop{
		Manager: m, pods: map[types.UID]*entry{}, dirty: map[types.UID]bool{}, missed: map[types.UID]bool{},
		logs: rate.Sometimes{First: logsFirst, Interval: logsEvery}, compareAt: time.Now(),
		observations: make(chan observation, 1), results: make(chan result, requestsMax),
	}
}

// wait waits for the next event, at most until a time, and handles it. It returns false if the context has ended.
func (l *loop) wait(ctx context.Context, until time.Time) bool {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-l.signal:
		l.readMarks(time.Now())
	case h := <-l.observations:
		l.store(h, time.Now())
	case r := <-l.results:
		l.complete(r, time.Now())
	case <-timer.C:
	}
	return true
}

// next returns the time of the next action without an event.
func (l *loop) next() time.Time {
	next := l.compareAt
	if at, due := l.observeAt(); due && at.Before(next) {
		next = at
	}
	if l.inFlight >= requestsMax {
		return next
	}
	for _, e := range l.pods {
		if e.check && !e.busy && e.retry.until.Before(next) {
			next = e.retry.until
		}
	}
	return next
}

// act does everything that is due.
func (l *loop) act(ctx context.Context) {
	// The last observation is part of finish, so the end of the agent does not end one that is under way.
	ctx = context.WithoutCancel(ctx)
	now := time.Now()
	if !now.Before(l.compareAt) {
		l.compareAt = now.Add(compareEvery)
		l.checkAll(now)
		// The pods are listed again, too: a mark may have come before the agent showed the pod.
		l.beginObservation(ctx, now)
	}
	if at, due := l.observeAt(); due && !now.Before(at) {
		l.beginObservation(ctx, now)
	}
	l.send(ctx, now)
	l.summarize()
}

// readMarks reads the marks of other goroutines.
func (l *loop) readMarks(now time.Time) {
	l.mu.Lock()
	marked, changed, woken := l.marked, l.changed, l.woken
	l.marked, l.changed, l.woken = map[types.UID]time.Time{}, map[types.UID]bool{}, false
	l.summary.Settled = false
	l.mu.Unlock()
	listed := l.Copies.Listed()
	for uid, at := range marked {
		if !listed || l.Copies.Get(uid) != nil {
			l.soil(uid, at)
		}
	}
	for uid := range changed {
		if e := l.pods[uid]; e != nil && l.concerns(e) {
			e.due(now)
		}
	}
	if woken {
		l.wake(now)
	}
}

// concerns reports whether a change in the API must be handled before the next comparison: a deletion, or a condition
// that a readiness gate names. Other changes wait, so that podctl never fights with another program.
func (l *loop) concerns(e *entry) bool {
	pod := l.Copies.Get(e.pod.UID)
	return e.unwatched || pod == nil || pod.DeletionTimestamp != nil || len(pod.Spec.ReadinessGates) > 0
}

// wake makes all requests due. Requests that have waited for long are made again.
func (l *loop) wake(now time.Time) {
	for _, e := range l.pods {
		e.retry = backoff{}
		e.due(now)
		if e.busy && now.Sub(e.sentAt) >= wakeAfter {
			e.cancel(errWoken)
		}
	}
}

func (l *loop) checkAll(now time.Time) {
	for _, e := range l.pods {
		e.due(now)
	}
}

// due makes a decision due.
func (e *entry) due(now time.Time) {
	if !e.check {
		e.check, e.since = true, now
	}
}

// send makes the requests that are due, those that wait longest first.
func (l *loop) send(ctx context.Context, now time.Time) {
	var due []*entry
	for _, e := range l.pods {
		if e.check && !e.busy && !e.retry.until.After(now) {
			due = append(due, e)
		}
	}
	slices.SortFunc(due, func(a, b *entry) int {
		return cmp.Or(a.since.Compare(b.since), a.pod.Compare(b.pod))
	})
	for _, e := range due {
		if l.inFlight >= requestsMax {
			return
		}
		l.sendNext(ctx, e, now)
	}
}

// sendNext makes the next request for one pod, if one is due.
func (l *loop) sendNext(ctx context.Context, e *entry, now time.Time) {
	e.check = false
	watched := l.Copies.Get(e.pod.UID)
	e.unwatched = watched == nil
	if e.unwatched {
		// The list is not read yet, or the pod is gone. Nothing is sent for a pod that is gone.
		return
	}
	r, err := e.decide(watched, now)
	switch {
	case err != nil:
		l.fail(e, err)
	case r.verb == nothing:
		e.failures.News(nil)
	default:
		l.begin(ctx, e, r, now)
	}
}

// fail records a failure, and logs it if it differs from the one before. The log of many pods is limited.
func (l *loop) fail(e *entry, err error) {
	if failure := e.failures.News(err); failure != "" && !apierror.IsLogged(err) {
		l.logs.Do(func() {
			pod, uid := e.pod.String(), string(e.pod.UID)
			l.Log.Warn("cannot send the status of a pod", "pod", pod, "uid", uid, "error", failure)
		})
	}
}

// summarize updates the summary.
func (l *loop) summarize() {
	failure, listed := "", l.Copies.Listed()
	var unsent []types.UID
	for uid, e := range l.pods {
		if e.check || e.busy || (e.unwatched && !listed) {
			unsent = append(unsent, uid)
			failure = max(failure, e.failures.Last())
		}
	}
	l.mu.Lock()
	l.summary.Unsent, l.summary.Failure = unsent, failure
	l.summary.Settled = len(unsent) == 0 && !l.observing && len(l.dirty)+len(l.missed) == 0
	l.mu.Unlock()
}

// finish observes the pods a last time, sends their statuses, and then ends all requests. It makes no request that has
// just failed.
func (l *loop) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	l.readMarks(time.Now())
	l.beginObservation(ctx, time.Now())
	for l.observing || l.inFlight > 0 || len(l.dirty) > 0 {
		at, due := l.observeAt()
		if due = due && len(l.dirty) > 0; !due {
			at = time.Now().Add(lastWords)
		}
		if !l.wait(ctx, at) {
			break
		}
		now := time.Now()
		if due && !now.Before(at) {
			l.beginObservation(ctx, now)
		}
		l.send(ctx, now)
	}
	for _, e := range l.pods {
		if e.busy {
			e.cancel(context.Canceled)
		}
	}
}
