package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// authority is an API server that knows tokens and permissions.
type authority struct {
	mu sync.Mutex
	// allowed are permissions, such as "ann get metrics". The user of a token is the token without its first letter.
	allowed map[string]bool
	// asked are the requests.
	asked []string
	err   error
	// hold delays each request until it is closed.
	hold chan struct{}
}

func (a *authority) ask(ctx context.Context, question string) error {
	if a.hold != nil {
		select {
		case <-a.hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, question)
	return a.err
}

func (a *authority) Token(ctx context.Context, token string) (*user.DefaultInfo, error) {
	name, valid := strings.CutPrefix(token, "t")
	if err := a.ask(ctx, token); err != nil || !valid {
		return nil, err
	}
	return &user.DefaultInfo{Name: name, UID: "u", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}}}, nil
}

func (a *authority) Access(ctx context.Context, s *authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	r := s.ResourceAttributes
	question := strings.Join([]string{s.User, r.Verb, r.Subresource}, " ")
	if err := a.ask(ctx, question); err != nil {
		return false, err
	}
	return a.allowed[question], nil
}

// take returns the requests since the last call.
func (a *authority) take() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := strings.Join(a.asked, ", ")
	a.asked = nil
	return asked
}

func (a *authority) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

// newAccess returns an access with the kubelet's times.
func newAccess(t *testing.T, reviews Reviews, change ...func(*Settings)) *Access {
	t.Helper()
	s := Settings{
		Node: "node", TokenTTL: 2 * time.Minute, AllowTTL: 5 * time.Minute, DenyTTL: 30 * time.Second,
		Reviews: reviews, Log: slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(&s)
	}
	a, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// check returns the user of a request, or the code and text that refuse it.
func check(a *Access, method, path, from string, headers ...string) string {
	r := httptest.NewRequestWithContext(context.Background(), method, "https://node", http.NoBody)
	r.URL.Path, r.RemoteAddr = path, from+":1"
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	name, err := a.Check(r)
	if refused := (*Refusal)(nil); errors.As(err, &refused) {
		return fmt.Sprint(refused.Code, " ", refused.Text)
	}
	return name
}

// TestAttributes checks the verbs and subresources of requests.
func TestAttributes(t *testing.T) {
	for path, want := range map[string]string{
		"/": "[proxy]", "": "[proxy]", "*": "[proxy]", "//pods": "[proxy]", "pods": "[proxy]", "/pod": "[proxy]", "/podsx": "[proxy]",
		"/pods": "[pods proxy]", "/pods/": "[pods proxy]", "/pods/../exec": "[pods proxy]",
		"/runningpods": "[pods proxy]", "/runningpods/": "[pods proxy]", "/runningPods/": "[proxy]",
		"/healthz": "[healthz proxy]", "/healthz/log": "[healthz proxy]", "/configz": "[configz proxy]",
		"/stats": "[stats]", "/stats/summary": "[stats]", "/metrics": "[metrics]", "/metrics/cadvisor": "[metrics]", "/metricsx": "[proxy]",
		"/logs": "[log]", "/logs/x": "[log]", "/checkpoint/a/b/c": "[checkpoint]", "/statusz": "[statusz]", "/flagz": "[configz]",
		"/exec/a/b/c": "[proxy]", "/run/a/b/c": "[proxy]", "/containerLogs/a/b/c": "[proxy]", "/debug/pprof": "[proxy]",
	} {
		if got := fmt.Sprint(subresourcesOf(path)); got != want {
			t.Errorf("%q: %s, want %s", path, got, want)
		}
	}
	for method, want := range map[string]string{
		"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "HEAD": "", "OPTIONS": "", "get": "", "X": "",
	} {
		if got := verbOf(method); got != want {
			t.Errorf("%s: %q, want %q", method, got, want)
		}
	}
	u := &user.DefaultInfo{Name: "n", UID: "u", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}}}
	spec := specsOf(u, "node", "GET", "/metrics")[0]
	if r := spec.ResourceAttributes; spec.User != "n" || spec.UID != "u" || spec.Groups[0] != "g" || spec.Extra["k"][0] != "v" ||
		r.Resource != "nodes" || r.Name != "node" || r.Version != "v1" || r.Group != "" || r.Namespace != "" {
		t.Errorf("%+v", spec)
	}
}

// TestCheck checks tokens in both headers, the texts of refusals, and the requests to the API server.
func TestCheck(t *testing.T) {
	server := &authority{allowed: map[string]bool{"ann get metrics": true, "ann get proxy": true, "bob get pods": true}}
	a := newAccess(t, server)
	const socket = "base64url.bearer.authorization.k8s.io."
	for _, c := range []struct{ path, headers, want, asked string }{
		{"/metrics", "", "401 Unauthorized", ""},
		{"/metrics", "Authorization|Basic tann", "401 Unauthorized", ""},
		{"/metrics", "Authorization|Bearer ", "401 Unauthorized", ""},
		{"/metrics", "Authorization|Bearer xann", "401 Unauthorized", "xann"},
		{"/metrics", "Authorization|Bearer xann", "401 Unauthorized", ""},
		{"/metrics", "Authorization|Bearer tann", "ann", "tann, ann get metrics"},
		{"/metrics/cadvisor", "Authorization|Bearer tann", "ann", ""},
		{"/pods", "Authorization|bearer tann", "ann", "ann get pods, ann get proxy"},
		{"/exec/a/b/c", "Authorization|Bearer tann", "ann", ""},
		{"/pods", "Authorization|Bearer tbob", "bob", "tbob, bob get pods"},
		{"/exec/a/b/c", "Authorization|Bearer tbob", "403 Forbidden (user=bob, verb=get, resource=nodes, subresource(s)=[proxy])\n", "bob get proxy"},
		{"/configz", "Authorization|Bearer tbob", "403 Forbidden (user=bob, verb=get, resource=nodes, subresource(s)=[configz proxy])\n", "bob get configz"},
		{"/exec/a/b/c", "Connection|upgrade|Upgrade|websocket|Sec-WebSocket-Protocol|v5.channel.k8s.io, " + socket + "dGFubg", "ann", ""},
		{"/exec/a/b/c", "Connection|upgrade|Upgrade|websocket|Sec-WebSocket-Protocol|v5.channel.k8s.io, " + socket + "eHg", "401 Unauthorized", "xx"},
		{"/metrics", "Sec-WebSocket-Protocol|v5.channel.k8s.io, " + socket + "dGFubg", "401 Unauthorized", ""},
		{"/metrics", "Authorization|Bearer " + strings.Repeat("t", tokenMax+1), "401 Unauthorized", ""},
	} {
		var headers []string
		if c.headers != "" {
			headers = strings.Split(c.headers, "|")
		}
		if got := check(a, "GET", c.path, "192.0.2.1", headers...); got != c.want {
			t.Errorf("%s with %.80q: %q, want %q", c.path, c.headers, got, c.want)
		}
		if asked := server.take(); asked != c.asked {
			t.Errorf("%s with %.80q: the API server gets %q, want %q", c.path, c.headers, asked, c.asked)
		}
	}
}

// TestAnonymous checks that only requests without credentials are anonymous.
func TestAnonymous(t *testing.T) {
	server := &authority{allowed: map[string]bool{"system:anonymous get healthz": true}}
	a := newAccess(t, server, func(s *Settings) { s.Anonymous = true })
	if got := check(a, "GET", "/healthz", "192.0.2.1"); got != "system:anonymous" {
		t.Error(got)
	}
	if got := check(a, "GET", "/pods", "192.0.2.1"); !strings.HasPrefix(got, "403 Forbidden (user=system:anonymous") {
		t.Error(got)
	}
	if got := check(a, "GET", "/healthz", "192.0.2.1", "Authorization", "Bearer x"); got != "401 Unauthorized" {
		t.Error(got)
	}
	always := newAccess(t, server, func(s *Settings) { s.AlwaysAllow = true })
	if got := check(always, "GET", "/exec", "192.0.2.1"); got != "401 Unauthorized" {
		t.Error(got)
	}
	server.take()
	if got := check(always, "GET", "/exec", "192.0.2.1", "Authorization", "Bearer tann"); got != "ann" || server.take() != "tann" {
		t.Error(got)
	}
}

// TestUnreachable checks that answers are used as long as the kubelet's caches do, and that only these are used while
// the API server is unreachable.
func TestUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &authority{allowed: map[string]bool{"ann get proxy": true}}
		a := newAccess(t, server)
		ann := []string{"Authorization", "Bearer tann"}
		expect := func(path, want, asked string) {
			t.Helper()
			if got := check(a, "GET", path, "192.0.2.1", ann...); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %q, want %q", path, got, want)
			}
			if got := server.take(); got != asked {
				t.Errorf("%s: the API server gets %q, want %q", path, got, asked)
			}
		}
		expect("/pods", "ann", "tann, ann get pods, ann get proxy")
		expect("/metrics", "403 ", "ann get metrics")
		server.fail(errors.New("down"))
		expect("/metrics", "403 ", "")
		time.Sleep(31 * time.Second)
		expect("/metrics", "500 Authorization error (user=ann, verb=get, resource=nodes, subresource=metrics)", "ann get metrics")
		expect("/pods", "ann", "") // The refused permission is not known any more.
		time.Sleep(time.Minute + 30*time.Second)
		expect("/pods", "401 ", "tann")
		server.fail(nil)
		expect("/pods", "ann", "tann")
		time.Sleep(time.Minute)
		server.fail(errors.New("down"))
		expect("/pods", "ann", "")
		server.fail(nil)
		time.Sleep(2 * time.Minute)
		expect("/pods", "ann", "tann, ann get pods, ann get proxy")
	})
}

// TestTokenFlood checks that clients with invalid tokens cause few requests, displace no valid token, and do not lock
// out other clients.
func TestTokenFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &authority{allowed: map[string]bool{"ann get proxy": true}}
		a := newAccess(t, server)
		if got := check(a, "GET", "/x", "192.0.2.1", "Authorization", "Bearer tann"); got != "ann" {
			t.Fatal(got)
		}
		count := 0
		for i := range 3 * answersMax {
			switch got := check(a, "GET", "/x", "192.0.2.66", "Authorization", fmt.Sprint("Bearer x", i)); {
			case got == "401 Unauthorized":
				count++
			case got != "429 "+ErrTooMany.Text:
				t.Fatal(got)
			}
		}
		if count != clientBurst {
			t.Errorf("%d requests from one client", count)
		}
		if got := check(a, "GET", "/x", "192.0.2.66", "Authorization", "Bearer tann"); got != "ann" {
			t.Errorf("a known token from the same client: %q", got)
		}
		if got := check(a, "GET", "/x", "192.0.2.2", "Authorization", "Bearer tbob"); !strings.HasPrefix(got, "403 ") {
			t.Errorf("another client: %q", got)
		}
		server.take()
		for i := range 200 {
			check(a, "GET", "/x", fmt.Sprint("192.0.2.", i), "Authorization", fmt.Sprint("Bearer y", i))
		}
		if n := len(strings.Split(server.take(), ",")); n > totalBurst {
			t.Errorf("%d requests from many clients", n)
		}
		time.Sleep(3 * time.Minute)
		for i := range 200 {
			check(a, "GET", "/x", fmt.Sprint("192.0.2.", i), "Authorization", fmt.Sprint("Bearer z", i))
		}
		if got := check(a, "GET", "/x", "192.0.2.1", "Authorization", "Bearer tann"); got != "ann" {
			t.Errorf("a token that was valid: %q", got)
		}
	})
}

// TestSharedRequests checks that equal requests are sent once, and that the end of one client does not end that of
// others.
func TestSharedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &authority{hold: make(chan struct{}), allowed: map[string]bool{"ann get proxy": true}}
		a := newAccess(t, server)
		leaving, leave := context.WithCancel(t.Context())
		results := make(chan string, 9)
		for i := range 9 {
			ctx := t.Context()
			if i == 0 {
				ctx = leaving
			}
			r := httptest.NewRequestWithContext(ctx, "GET", "https://node/x", http.NoBody)
			r.Header.Set("Authorization", "Bearer tann")
			go func() {
				name, err := a.Check(r)
				results <- fmt.Sprint(name, err)
			}()
			synctest.Wait()
		}
		leave()
		if got := <-results; got != "Unauthorized" {
			t.Error(got)
		}
		close(server.hold)
		for range 8 {
			if got := <-results; got != "ann<nil>" {
				t.Error(got)
			}
		}
		if got := server.take(); got != "tann, ann get proxy" {
			t.Error(got)
		}
	})
}

// TestOrigin checks which clients share a limit.
func TestOrigin(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[::ffff:192.0.2.1]:80": "192.0.2.1", "[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::",
		"[fe80::1%eth0]:80": "fe80::", "pipe": "invalid IP", "": "invalid IP",
	} {
		if got := Origin(remote).String(); got != want {
			t.Errorf("%s: %s, want %s", remote, got, want)
		}
	}
}
