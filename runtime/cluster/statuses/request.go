package statuses

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/cluster/apierror"
)

// requestMax limits the time of one request, as the API server does by default. A request without an answer is made
// again, because a lost connection may never report an error. The limit doubles with each such request of a pod, up to
// doublingsMax times, so that a slow server has its time.
const (
	requestMax   = time.Minute
	doublingsMax = 6
)

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
	ctx, timeout := context.WithTimeout(context.WithoutCancel(ctx), requestMax<<e.timeouts)
	ctx, cancel := context.WithCancelCause(ctx)
	e.busy, e.sentAt, e.changed, e.cancel = true, now, e.since, cancel
	l.inFlight++
	go func() {
		defer timeout()
		defer cancel(nil)
		pod, err := l.do(ctx, &r)
		l.results <- result{request: r, answer: pod, err: err, woken: errors.Is(context.Cause(ctx), errWoken)}
	}()
}

// do makes a request to the cluster of this node, and checks its answer.
func (m *Manager) do(ctx context.Context, r *request) (pod *v1.Pod, err error) {
	if err = m.Confirm(ctx); err != nil {
		return nil, err
	}
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
		l.dropGone(e, r.err)
	case r.err == nil:
		e.note(&r.request, r.answer, now)
		e.retry, e.denials = backoff{}, 0
		e.failures.News(nil)
		if now.Sub(e.sentAt) < requestMax/2 {
			e.timeouts = 0
		}
		if r.verb == patch {
			l.Sent(now.Sub(e.changed))
		}
		e.due(now)
		l.noteSent(now)
	default:
		e.unsure = e.unsure || r.verb == remove
		if errors.Is(r.err, context.DeadlineExceeded) {
			e.timeouts = min(e.timeouts+1, doublingsMax)
		}
		e.due(now)
		l.fail(e, r.err)
		if !r.woken {
			e.retry = e.retry.failed(now, apierror.RetryAfter(r.err), rand.Float64())
		}
	}
}

// dropGone handles an answer that the pod of a request is gone or is another one. The watch should report that soon. If
// it does not, the next answer of this kind is a failure.
func (l *loop) dropGone(e *entry, err error) {
	e.drop()
	e.retry = backoff{}
	if e.denials++; e.denials == 1 || l.Copies.Get(e.pod.UID) == nil {
		e.failures.News(nil)
		return
	}
	if err == nil {
		err = errOtherPod
	}
	l.fail(e, err)
}

// errOtherPod reports that the watch and the answers to requests differ.
var errOtherPod = errors.New("the API server answers with another pod that has the name")

func (l *loop) noteSent(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.summary.LastSent = now
}
