package statuses

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/podctl/podctl/runtime/cluster/apierror"
)

// The delay before a failed request is made again. It doubles with each failure.
const (
	retryFirst = time.Second
	retryMax   = 30 * time.Second
	// retrySpread is the part of the delay that is random.
	retrySpread = 0.2
)

// backoff is the delay after the last failure, and its end. The zero value is no delay.
type backoff struct {
	delay time.Duration
	until time.Time
}

// failed returns the delay after another failure. wait is the delay that the server asked for, up to 30 s, and spread
// is a random number from 0 to 1.
func (b backoff) failed(now time.Time, wait time.Duration, spread float64) backoff {
	b.delay = min(max(2*b.delay, retryFirst), retryMax)
	delay := b.delay - time.Duration(retrySpread*spread*float64(b.delay))
	b.until = now.Add(max(delay, min(wait, retryMax)))
	return b
}

// gone reports whether the pod of a request does not exist any more: it was not found, or another pod has its name. A
// proxy, or an API server that starts, may answer with the same codes.
func gone(err error) bool {
	if !apierror.IsFromAPI(err) {
		return false
	}
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err) ||
		apierrors.IsGone(err) || apierrors.IsResourceExpired(err)
}
