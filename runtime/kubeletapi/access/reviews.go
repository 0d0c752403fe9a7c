package access

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/podctl/podctl/runtime/cluster/apiclient"
)

// Reviews asks the API server.
type Reviews interface {
	// Token returns the user of a token; nil if it is not valid.
	Token(ctx context.Context, token string) (*user.DefaultInfo, error)
	// Access reports whether a user has a permission.
	Access(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec) (bool, error)
}

// NewReviews returns the reviews of an API server.
func NewReviews(c *apiclient.Client) Reviews { return reviews{c} }

type reviews struct{ client *apiclient.Client }

// userMax limits the size of a user in bytes: the name, the groups and other values.
const userMax = 64 << 10

// Token sends a TokenReview (apiserver's webhook: AuthenticateToken).
func (c reviews) Token(ctx context.Context, token string) (*user.DefaultInfo, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	answer, err := send(ctx, func() (*authenticationv1.TokenReview, error) {
		return apiclient.Do[authenticationv1.TokenReview](ctx,
			c.client.Authentication.Post().Resource("tokenreviews").Body(review))
	})
	if err != nil && strings.Contains(err.Error(), token) {
		err = errors.New("the error of the API server contains the token")
	}
	if err != nil {
		return nil, err
	}
	if !answer.Status.Authenticated {
		return nil, nil
	}
	u := &answer.Status.User
	if size := u.Size(); size > userMax || u.Username == "" {
		return nil, fmt.Errorf("the API server returned a user without a name or of %d bytes", size)
	}
	extra := make(map[string][]string, len(u.Extra))
	for key, values := range u.Extra {
		extra[key] = values
	}
	return &user.DefaultInfo{Name: u.Username, UID: u.UID, Groups: u.Groups, Extra: extra}, nil
}

// Access sends a SubjectAccessReview (apiserver's webhook: Authorize).
func (c reviews) Access(ctx context.Context, spec *authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: *spec}
	answer, err := send(ctx, func() (*authorizationv1.SubjectAccessReview, error) {
		return apiclient.Do[authorizationv1.SubjectAccessReview](ctx,
			c.client.Authorization.Post().Resource("subjectaccessreviews").Body(review))
	})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed && !answer.Status.Denied, nil
}

// send repeats a request after errors that pass, as the webhooks of apiserver do. If the context has ended before the
// first request, the error is the context's.
func send[T any](ctx context.Context, request func() (*T, error)) (found *T, err error) {
	pauses := wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 5}
	ended := wait.ExponentialBackoffWithContext(ctx, pauses, func(context.Context) (bool, error) {
		found, err = request()
		return err == nil || !passes(err), nil
	})
	if found == nil && err == nil {
		return nil, ended
	}
	return found, err
}

// passes reports whether an error of a request can pass by itself.
func passes(err error) bool {
	_, delayed := apierrors.SuggestsClientDelay(err)
	return delayed || utilnet.IsConnectionReset(err) || utilnet.IsHTTP2ConnectionLost(err) ||
		apierrors.IsInternalError(err) || apierrors.IsTooManyRequests(err)
}
