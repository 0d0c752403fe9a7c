package kubeletapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/podctl/podctl/runtime/kubeletapi/access"
)

// Address is where a server of the node listens.
type Address struct {
	// Host is an IP address or a host name. Empty means all addresses.
	Host string
	// Port is the port; 0 means any free port.
	Port int
}

// Listen opens the port.
func (a Address) Listen(ctx context.Context) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(a.Host, strconv.Itoa(a.Port)))
	if err != nil {
		return nil, fmt.Errorf("the server of the node: %w", err)
	}
	return l, nil
}

// check returns the user of a request, or the response that refuses it.
func (s *Server) check(r *http.Request) (user string, err error) {
	if s.Access == nil {
		return "", nil
	}
	user, err = s.Access.Check(r)
	if refused := (*access.Refusal)(nil); errors.As(err, &refused) {
		return "", &refusal{refused.Code, refused.Text}
	}
	return user, err
}

// slots limit the requests in progress: in total, and those of one user to three quarters of the total, so that one
// user cannot lock others out. The API server is one user.
type slots struct {
	total   *semaphore.Weighted
	perUser int

	mu    sync.Mutex
	users map[string]int
}

func newSlots(n int) *slots {
	return &slots{total: semaphore.NewWeighted(int64(n)), perUser: (3*n + 3) / 4, users: map[string]int{}}
}

// take takes a slot for a user until release is called.
func (s *slots) take(user string) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users[user] >= s.perUser || !s.total.TryAcquire(1) {
		return nil, errTooMany()
	}
	s.users[user]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.total.Release(1)
		if s.users[user]--; s.users[user] == 0 {
			delete(s.users, user)
		}
	}, nil
}

// userKey is the key of a request's user in its context.
type userKey struct{}

func userOf(ctx context.Context) string {
	user, _ := ctx.Value(userKey{}).(string)
	return user
}
