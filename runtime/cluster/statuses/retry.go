package statuses

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec/quote"
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

// gone reports whether the pod of a request does not exist any more: it was not found, or another pod has its name.
func gone(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err) ||
		apierrors.IsGone(err) || apierrors.IsResourceExpired(err)
}

// retryAfter returns the delay that the server asked for; 0 if it did not.
func retryAfter(err error) time.Duration {
	seconds, ok := apierrors.SuggestsClientDelay(err)
	if !ok || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds), retryMax/time.Second) * time.Second
}

// errorTextMax limits the text of an error from the API server, in bytes.
const errorTextMax = 300

// describe returns the text of an error for the log, on one line. A refused status is described by its fields alone,
// because the server repeats their values.
func describe(err error) string {
	var status apierrors.APIStatus
	if apierrors.IsInvalid(err) && errors.As(err, &status) {
		fields := text(fieldsOf(status.Status().Details), errorTextMax)
		return "the API server refuses the fields " + quote.OneLine(fields)
	}
	return quote.OneLine(text(err.Error(), errorTextMax))
}

func fieldsOf(details *metav1.StatusDetails) string {
	fields := ""
	if details == nil {
		return fields
	}
	for i := range details.Causes {
		if i > 0 {
			fields += ", "
		}
		if fields += details.Causes[i].Field; len(fields) > errorTextMax {
			break
		}
	}
	return fields
}
