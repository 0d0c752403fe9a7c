package tokens

import (
	"context"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/cluster/apierror"
	"github.com/podctl/podctl/runtime/sleep"
	"github.com/podctl/podctl/runtime/state"
)

const (
	// firstPause and longestPause are the pauses after a failure. Right after a pod was bound to this node, the API
	// server may refuse its tokens for a moment.
	firstPause, longestPause = 200 * time.Millisecond, 30 * time.Second
	// check is how often the clock is compared with the time of a renewal, which a change of the clock can move. It is
	// also the shortest time between two tokens.
	check = time.Minute
)

// Watcher requests tokens. All fields are required.
type Watcher struct {
	// Client is the REST client of core/v1.
	Client rest.Interface
	// Pod returns the pod with a uid as the API server has it, or nil if it is not known.
	Pod func(types.UID) *v1.Pod
	// Confirm is called before each request. Its error is that of the request, which is not made: a token of another
	// cluster must not replace that of a pod.
	Confirm func(ctx context.Context) error
	Now     func() time.Time
	// Random returns a number from 0 to 1.
	Random func() float64
}

// Sink keeps one token.
type Sink interface {
	// Current returns the token that is in use, or nil.
	Current() *podspec.Object
	// Set replaces the token.
	Set(*podspec.Object)
	// Fail records why there is no new token.
	Fail(error)
}

// Watch keeps one token valid until the context ends. The token stays in use while requests fail.
func (w Watcher) Watch(ctx context.Context, key state.ObjectKey, sink Sink) {
	pause := firstPause
	at := due(sink.Current(), w.Random())
	if w.Now().Before(at) {
		sink.Set(sink.Current()) // It is as good as an answer: no pass must wait.
	}
	for ctx.Err() == nil {
		if wait := at.Sub(w.Now()); wait > 0 {
			_ = sleep.For(ctx, min(wait, check)) // the loop checks the context
			continue
		}
		token, err := w.request(ctx, key)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			sink.Fail(err)
			_ = sleep.For(ctx, pause) // as above
			pause = min(2*pause, longestPause)
		default:
			sink.Set(token)
			at, pause = due(token, w.Random()), firstPause
			_ = sleep.For(ctx, check) // as above
		}
	}
}

// request requests a token. Errors have no part of it.
func (w Watcher) request(ctx context.Context, key state.ObjectKey) (*podspec.Object, error) {
	uid, name := podspec.UnbindName(key.Name)
	pod := w.Pod(uid)
	if pod == nil {
		return nil, apierror.RejectedError{Reason: "the API server has not sent the pod"}
	}
	source := podspec.FindToken(pod, name)
	if source == nil || pod.Namespace != key.Namespace || pod.UID != uid {
		return nil, apierror.RejectedError{Reason: "the pod has no such token"}
	}
	if pod.Spec.ServiceAccountName == "" {
		return nil, apierror.RejectedError{Reason: "the pod has no service account"}
	}
	if err := w.Confirm(ctx); err != nil {
		return nil, err
	}
	answer, err := apiclient.Do[authenticationv1.TokenRequest](ctx, w.Client.Post().Namespace(pod.Namespace).
		Resource("serviceaccounts").Name(pod.Spec.ServiceAccountName).SubResource("token").Body(request(pod, source)))
	if err != nil {
		return nil, err
	}
	token, err := secretOf(key, answer)
	if err != nil {
		return nil, apierror.RejectedError{Reason: err.Error()}
	}
	return token, nil
}
