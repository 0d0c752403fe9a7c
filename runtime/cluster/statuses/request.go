package statuses

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
)

// requestMax limits the time of one request, as the API server does by default. A request without an answer is made
// again, because a lost connection may never report an error.
const requestMax = time.Minute

// errWoken ends a request that may wait for a lost connection.
var errWoken = errors.New("the API server responds again")

// result is the result of a request. answer is nil after a DELETE.
type result struct {
	request

	answer *v1.Pod
	err    error
	woken  bool
}

// begin makes a request. The end of ctx does not end it, because its result would be unknown.
func (l *loop) begin(ctx context.Context, e *entry, r request, now time.Time) {
	ctx, timeout := context.WithTimeout(context.WithoutCancel(ctx), requestMax)
	ctx, cancel := context.WithCancelCause(ctx)
	e.busy, e.sentAt, e.cancel = true, now, cancel
	l.inFlight++
	go func() {
		defer timeout()
		defer cancel(nil)
		pod, err := l.do(ctx, &r)
		l.results <- result{request: r, answer: pod, err: err, woken: errors.Is(context.Cause(ctx), errWoken)}
	}()
}

// do makes a request and checks its answer.
func (m *Manager) do(ctx context.Context, r *request) (pod *v1.Pod, err error) {
	switch r.verb {
	case patch:
		pod, err = m.Sender.Patch(ctx, r.pod, r.body)
	case read:
		pod, err = m.Sender.Get(ctx, r.pod)
	case remove:
		return nil, m.Sender.Delete(ctx, r.pod)
	case nothing:
	}
	if err == nil && (pod == nil || pod.UID == "") {
		return nil, errors.New("the API server answers without a pod")
	}
	return pod, err
}

// complete handles the result of a request. The next decision follows at once, except after a failure, and for a pod
// that is gone: its status is dropped until it changes or the next comparison.
func (l *loop) complete(r result, now time.Time) {
	l.inFlight--
	e := l.pods[r.pod.UID]
	if e == nil {
		return
	}
	e.busy = false
	if e.orphan {
		delete(l.pods, r.pod.UID)
		return
	}
	switch {
	case r.err == nil && r.answer != nil && r.answer.UID != e.pod.UID, gone(r.err):
		e.drop()
		e.retry, e.failure = backoff{}, ""
	case r.err == nil:
		e.note(&r.request, r.answer, now)
		e.retry, e.failure = backoff{}, ""
		e.due(now)
		l.noteSent(now)
	default:
		e.unsure = e.unsure || r.verb == remove
		e.due(now)
		l.fail(e, r.err)
		if !r.woken {
			e.retry = e.retry.failed(now, retryAfter(r.err), random())
		}
	}
}

func (l *loop) noteSent(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.summary.LastSent = now
}
