package eviction

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// Limiter evicts pods that use more disk space than their own limits allow.
type Limiter struct {
	usage func(context.Context, *v1.Pod) (*Usage, error)
	now   func() time.Time
	log   *slog.Logger

	// checks holds the state of each limited pod. ended receives the results of checks.
	checks map[types.UID]check
	ended  chan checkResult
}

// check is the state of the checks of one pod.
type check struct {
	running bool
	// next is the earliest time of the next check.
	next time.Time
	// failure is the error of the last check.
	failure string
}

type checkResult struct {
	pod  *v1.Pod
	took time.Duration
	err  error
}

// NewLimiter returns a Limiter. usage measures the disk space to which the limits of a pod apply, like
// Meter.LimitedUsage.
func NewLimiter(
	usage func(context.Context, *v1.Pod) (*Usage, error), now func() time.Time, log *slog.Logger,
) *Limiter {
	return &Limiter{usage: usage, now: now, log: log, checks: map[types.UID]check{}, ended: make(chan checkResult)}
}

// checkPauses is the pause after a check, as a multiple of its duration. So checks take at most a tenth of the time.
const checkPauses = 9

// Run checks all limited pods periodically until the context ends. A check that takes long delays no other pod.
func (l *Limiter) Run(ctx context.Context, pods Pods) {
	ticker := time.NewTicker(measurePeriod)
	defer ticker.Stop()
	for {
		l.begin(ctx, pods)
		for due := false; !due; {
			select {
			case r := <-l.ended:
				l.record(&r)
			case <-ticker.C:
				due = true
			case <-ctx.Done():
				return
			}
		}
	}
}

// begin begins the checks that are due. Critical pods are never evicted.
func (l *Limiter) begin(ctx context.Context, pods Pods) {
	checks := map[types.UID]check{}
	for _, pod := range pods.Active(ctx) {
		if !isLimited(pod) || podspec.IsCritical(pod) {
			continue
		}
		c := l.checks[pod.UID]
		if !c.running && !l.now().Before(c.next) {
			c.running = true
			go l.check(ctx, pods, pod)
		}
		checks[pod.UID] = c
	}
	l.checks = checks
}

// check measures a pod, and evicts it if it exceeds a limit.
func (l *Limiter) check(ctx context.Context, pods Pods, pod *v1.Pod) {
	began := l.now()
	used, err := l.usage(ctx, pod)
	took := l.now().Sub(began)
	if why := exceeded(pod, used); why != nil {
		why.At = l.now().UTC()
		if failed := pods.Evict(ctx, pod.UID, why); failed != nil {
			err = errors.Join(err, fmt.Errorf("evicting the pod: %w", failed))
		}
	}
	select {
	case l.ended <- checkResult{pod, took, err}:
	case <-ctx.Done():
	}
}

// record handles the end of a check, and logs a new error.
func (l *Limiter) record(r *checkResult) {
	before, known := l.checks[r.pod.UID]
	if !known {
		return // the pod has ended
	}
	now := check{next: l.now().Add(checkPauses * r.took)}
	if r.err != nil {
		now.failure = r.err.Error()
	}
	if now.failure != "" && now.failure != before.failure {
		l.log.Warn("checking the disk limits of a pod", "pod", model.RefOf(r.pod).String(), "error", now.failure)
	}
	l.checks[r.pod.UID] = now
}
