package apierror

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// DelayMax limits the delay that a server can ask for before the next try, in seconds.
const DelayMax = 30

// RetryAfter returns the delay that a server has asked for before the next try, at most DelayMax. It is 0 if the server
// did not ask for one.
func RetryAfter(err error) time.Duration {
	seconds, asked := apierrors.SuggestsClientDelay(err)
	if !asked || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, DelayMax)) * time.Second
}
