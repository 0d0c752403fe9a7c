package apierror

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// delayMax limits the delay that a server can ask for before the next try.
const delayMax = 30 * time.Second

// RetryAfter returns the delay that a server has asked for before the next try, at most 30 s. It is 0 if the server did
// not ask for one.
func RetryAfter(err error) time.Duration {
	seconds, asked := apierrors.SuggestsClientDelay(err)
	if !asked || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds), delayMax/time.Second) * time.Second
}
