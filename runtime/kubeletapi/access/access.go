package access

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"golang.org/x/time/rate"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"

	"github.com/podctl/podctl/runtime/cluster/apierror"
)

// Settings configure the access to a server. Names and defaults of the flags are the kubelet's.
type Settings struct {
	// Node is the name of the Node.
	Node string
	// ClientCAFile is the path of a file with certificate authorities in PEM format. Clients with a certificate of one
	// of them are authenticated. It may be empty.
	ClientCAFile string
	// Anonymous accepts requests without credentials as the user system:anonymous.
	Anonymous bool
	// AlwaysAllow allows every authenticated request. Otherwise the API server decides.
	AlwaysAllow bool
	// TokenTTL is how long the answer about a token is used. AllowTTL and DenyTTL are how long an answer about a
	// permission is used. They may be zero.
	TokenTTL, AllowTTL, DenyTTL time.Duration
	Reviews                     Reviews
	Log                         *slog.Logger
}

// Access decides which requests are accepted. It is safe for concurrent use.
type Access struct {
	Settings
	authenticator authenticator.Request
	permissions   *memory
	// warnings limits the messages about failed requests to the API server, which clients can cause.
	warnings rate.Sometimes
}

// New returns the access of the settings. It returns an error if the file of the certificate authorities cannot be
// used. It makes no request.
func New(s Settings) (*Access, error) {
	a := &Access{
		Settings: s, permissions: newMemory(s.AllowTTL, s.DenyTTL),
		warnings: rate.Sometimes{First: 1, Interval: time.Minute},
	}
	var err error
	a.authenticator, err = newAuthenticator(a)
	return a, err
}

// Refusal is the response to a request that is not accepted.
type Refusal struct {
	// Code is the status code, Text the body.
	Code int
	Text string
}

// Error returns the body.
func (r *Refusal) Error() string { return r.Text }

// ErrTooMany refuses a client that has sent too many new tokens.
var ErrTooMany = &Refusal{http.StatusTooManyRequests, "too many requests with new tokens"}

var errUnauthorized = &Refusal{http.StatusUnauthorized, "Unauthorized"}

// Check returns the user of a request that is accepted, and a *Refusal otherwise (kubelet: InstallAuthFilter). It
// removes accepted tokens from the headers.
func (a *Access) Check(r *http.Request) (user string, err error) {
	answer, ok, err := a.authenticator.AuthenticateRequest(withOrigin(r))
	switch {
	case errors.Is(err, ErrTooMany):
		return "", ErrTooMany
	case err != nil || !ok:
		return "", errUnauthorized
	case a.AlwaysAllow:
		return answer.User.GetName(), nil
	}
	return answer.User.GetName(), a.authorize(r.Context(), specsOf(answer.User, a.Node, r.Method, r.URL.Path))
}

// authorize returns an error if none of the permissions is granted. It looks for one among the known answers first: if
// the API server is unreachable, one known permission is enough.
func (a *Access) authorize(ctx context.Context, specs []authorizationv1.SubjectAccessReviewSpec) error {
	keys := make([]string, len(specs))
	for i := range specs {
		keys[i] = specKey(&specs[i])
		if known, ok := a.permissions.find(keys[i]); ok && known.accepted {
			return nil
		}
	}
	for i := range specs {
		found, err := a.permissions.get(ctx, keys[i], func(ctx context.Context) (answer, error) {
			allowed, err := a.Reviews.Access(ctx, &specs[i])
			return answer{accepted: allowed}, err
		})
		if err != nil {
			a.warn("a permission", err)
			return errAuthorization(&specs[i])
		}
		if found.accepted {
			return nil
		}
	}
	return errForbidden(specs)
}

// warn logs a failed request to the API server.
func (a *Access) warn(subject string, err error) {
	if errors.Is(err, context.Canceled) {
		return // The client has left.
	}
	a.warnings.Do(func() {
		a.Log.Warn("the server of the node refuses requests: the API server did not decide about "+subject,
			"error", apierror.Text(err))
	})
}
