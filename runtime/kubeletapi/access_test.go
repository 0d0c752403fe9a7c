package kubeletapi

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/podctl/podctl/runtime/kubeletapi/access"
)

var discard = slog.New(slog.DiscardHandler)

// TestListen checks the addresses of a port.
func TestListen(t *testing.T) {
	for host, want := range map[string]string{"127.0.0.2": "127.0.0.2:", "localhost": "127.0.0.1:", "": "[::]:"} {
		l, err := Address{Host: host}.Listen(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Addr().String(); !strings.HasPrefix(got, want) {
			t.Errorf("%q: it listens on %s", host, got)
		}
		if err = l.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := (Address{Host: "192.0.2.1"}).Listen(t.Context()); err == nil {
		t.Error("it listens on the address of another machine")
	}
}

// authority is an authority of certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newAuthority creates an authority with its certificate in a file.
func newAuthority(t *testing.T, file string) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert = &x509.Certificate{Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	pair := a.sign(a.cert)
	a.cert, a.key = pair.Leaf, pair.PrivateKey.(*ecdsa.PrivateKey)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

// sign completes and signs a certificate. Without a key, the authority signs its own.
func (a *authority) sign(c *x509.Certificate) *tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	by := a.key
	if by == nil {
		by = key
	}
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	if c.NotAfter.IsZero() {
		c.NotAfter = time.Now().Add(2 * time.Hour)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, by)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// client returns a certificate of a client.
func (a *authority) client(name string, change ...func(*x509.Certificate)) *tls.Certificate {
	a.t.Helper()
	c := &x509.Certificate{
		Subject: pkix.Name{CommonName: name, Organization: []string{"group-of-" + name}}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, f := range change {
		f(c)
	}
	return a.sign(c)
}

// reviewer is an API server that knows tokens and permissions.
type reviewer struct {
	mu   sync.Mutex
	down bool
	// hangs is closed when a request arrives that is not answered before its context ends.
	hangs chan struct{}
}

// may has the permissions of users: subresources, with the verb get, or all verbs.
var may = map[string]map[string]string{
	"admin":   {"proxy": "*", "pods": "*", "healthz": "*", "configz": "*", "metrics": "*", "stats": "*", "log": "*", "checkpoint": "*", "statusz": "*"},
	"metrics": {"metrics": "get", "stats": "get", "pods": "get"},
}

func allowed(name, verb, subresource string) bool {
	granted := may[name][subresource]
	return granted == "*" || granted != "" && granted == verb
}

func (a *reviewer) set(down bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down = down
}

func (a *reviewer) fails() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down {
		return errors.New("connection refused")
	}
	return nil
}

func (a *reviewer) Token(ctx context.Context, token string) (*user.DefaultInfo, error) {
	if a.hangs != nil {
		select {
		case a.hangs <- struct{}{}:
		default:
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if err := a.fails(); err != nil || may[token] == nil {
		return nil, err
	}
	return &user.DefaultInfo{Name: token}, nil
}

func (a *reviewer) Access(_ context.Context, s *authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	if !slices.Contains(s.Groups, "system:authenticated") || s.ResourceAttributes.Name != "node" {
		return false, nil
	}
	return allowed(s.User, s.ResourceAttributes.Verb, s.ResourceAttributes.Subresource), a.fails()
}

// accessTo returns the access of a server.
func accessTo(t *testing.T, file string, reviews access.Reviews) *access.Access {
	t.Helper()
	a, err := access.New(access.Settings{
		Node: "node", ClientCAFile: file, TokenTTL: time.Hour, AllowTTL: time.Hour, DenyTTL: time.Hour,
		Reviews: reviews, Log: discard,
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// identity is a client.
type identity struct {
	cert  *tls.Certificate
	token string
	// name is empty for clients that are not authenticated.
	name string
}

// identities returns clients of all kinds.
func identities(t *testing.T, ca *authority) map[string]identity {
	t.Helper()
	other := newAuthority(t, filepath.Join(t.TempDir(), "other"))
	return map[string]identity{
		"none":         {},
		"other CA":     {cert: other.client("admin")},
		"expired":      {cert: ca.client("admin", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) })},
		"not yet":      {cert: ca.client("admin", func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) })},
		"server only":  {cert: ca.client("admin", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} })},
		"nameless":     {cert: ca.client("")},
		"wrong token":  {token: "x"},
		"node":         {cert: ca.client("system:node:node"), name: "system:node:node"},
		"metrics":      {cert: ca.client("metrics"), name: "metrics"},
		"token":        {token: "metrics", name: "metrics"},
		"cert + token": {cert: other.client("admin"), token: "metrics", name: "metrics"},
		"admin":        {cert: ca.client("admin"), name: "admin"},
	}
}

// send sends a request as it is and returns the code and the body of the response.
func (s *served) send(id identity, request string) (int, string) {
	s.t.Helper()
	config := &tls.Config{InsecureSkipVerify: true} // the certificate is self-signed
	if id.cert != nil {
		config.Certificates = []tls.Certificate{*id.cert}
	}
	conn, err := (&tls.Dialer{Config: config}).DialContext(s.t.Context(), "tcp", strings.TrimPrefix(s.url, "https://"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // the response was read
	line, rest, _ := strings.Cut(request, "\r\n")
	head := line + "\r\nHost: node\r\n"
	if id.token != "" {
		head += "Authorization: Bearer " + id.token + "\r\n"
	}
	if _, err = io.WriteString(conn, head+rest+"\r\n"); err != nil {
		s.t.Fatal(err)
	}
	method, _, _ := strings.Cut(line, " ")
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		s.t.Errorf("%q: %v", line, err)
		return 0, ""
	}
	defer response.Body.Close()                                 //nolint:errcheck // it was read
	text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20)) // A stream that ends with the connection is enough.
	return response.StatusCode, string(text)
}

// paths are the routes of the server, and paths that could be taken for others, with the subresources that they need.
var paths = map[string][]string{
	"/pods": {"pods", "proxy"}, "/pods/": {"pods", "proxy"}, "/runningpods/": {"pods", "proxy"}, "/%70ods": {"pods", "proxy"},
	"/healthz": {"healthz", "proxy"}, "/healthz/ping": {"healthz", "proxy"}, "/configz": {"configz", "proxy"},
	"/metrics": {"metrics"}, "/metrics/cadvisor": {"metrics"}, "/stats/summary": {"stats"}, "/logs/": {"log"},
	"/checkpoint/ns/web/app": {"checkpoint"}, "/statusz": {"statusz"}, "/flagz": {"configz"},
	"/containerLogs/ns/web/app": {"proxy"}, "/run/ns/web/app?cmd=x": {"proxy"}, "/exec/ns/web/app?command=x&output=1": {"proxy"},
	"/exec/ns/web/u1/app?command=x&output=1": {"proxy"}, "/attach/ns/web/app?output=1": {"proxy"}, "/portForward/ns/web": {"proxy"},
	"/": {"proxy"}, "*": {"proxy"}, "/nothing": {"proxy"}, "//pods": {"proxy"}, "/./pods": {"proxy"}, "/x/../pods": {"proxy"},
	"/pods/../exec/ns/web/app": {"pods", "proxy"}, "/metrics/../run/ns/web/app?cmd=x": {"metrics"}, "/metrics%2f..%2frun/ns/web/app": {"metrics"},
	"/metrics/%2e%2e/run/ns/web/app?cmd=x": {"metrics"}, "/run%2fns%2fweb%2fapp": {"proxy"}, "/pods?/exec": {"pods", "proxy"}, "/pods;/exec": {"proxy"},
	"/PODS": {"proxy"}, "/exec/ns/web%2f..%2f..%2f..%2fmetrics/app": {"proxy"},
	"https://node/pods": {"pods", "proxy"}, "https://metrics/exec/ns/web/app": {"proxy"}, "https:///exec/ns/web/app": {"proxy"},
}

var verbs = map[string]string{
	"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "HEAD": "", "OPTIONS": "", "TRACE": "", "CONNECT": "", "X": "",
}

// upgrades are the headers of requests that ask for another protocol.
var upgrades = []string{
	"", "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n",
	"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n" +
		"Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n",
	"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
}

// TestAccess checks each path for each client, while the API server answers, and while it does not: then only known
// answers count. A refused request does nothing. Some clients use each method, the others one for each path.
func TestAccess(t *testing.T) {
	agent, m, _ := web(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	ca := newAuthority(t, file)
	clients := identities(t, ca)
	for _, state := range []string{"up", "down", "known"} {
		reviews := &reviewer{}
		s := serve(t, agent, m, func(s *Settings, l *limits) { s.Access = accessTo(t, file, reviews) })
		if state == "known" {
			for _, c := range []string{"metrics", "token", "admin"} {
				s.send(clients[c], "GET /metrics HTTP/1.1\r\n")
			}
		}
		reviews.set(state != "up")
		for name, id := range clients {
			all := state == "up" && (name == "none" || name == "metrics" || name == "admin")
			for path, subresources := range paths {
				methods := slices.Sorted(maps.Keys(verbs))
				if at := (len(path) + len(name)) % len(methods); !all {
					methods = methods[at : at+1]
				}
				for _, method := range methods {
					verb := verbs[method]
					if method == "CONNECT" && strings.HasPrefix(path, "https:") || path == "*" && method != "OPTIONS" {
						continue // The library refuses these requests.
					}
					want := expected(state, id, verb, subresources)
					got, text := s.send(id, method+" "+path+" HTTP/1.1\r\n"+upgrades[(len(path)+len(method))%len(upgrades)])
					if got == http.StatusTooManyRequests && state != "up" && id.token != "" {
						got, text = http.StatusUnauthorized, "Unauthorized" // Too many requests with the token have failed.
					}
					if problem := wrongAnswer(m, method, want, got, text); problem != "" {
						t.Errorf("%s: %s: %s %s: %d %q, want %d: %s", state, name, method, path, got, text, want, problem)
					}
				}
			}
		}
	}
}

// expected returns the code that refuses a request, or 0.
func expected(state string, id identity, verb string, subresources []string) int {
	granted := slices.ContainsFunc(subresources, func(sub string) bool { return allowed(id.name, verb, sub) })
	known := state == "up" || state == "known" && id.name != "" && id.name != "system:node:node"
	asked := slices.Equal(subresources, []string{"metrics"}) && verb == "get" // the answer that is known
	switch {
	case id.name == "", id.token != "" && !known:
		return http.StatusUnauthorized
	case state != "up" && (!known || !asked):
		return http.StatusInternalServerError
	case !granted:
		return http.StatusForbidden
	}
	return 0
}

// wrongAnswer describes the difference between an answer and the expected one.
func wrongAnswer(m *fakeRuntime, method string, want, got int, text string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	asked := m.asked
	m.asked = nil
	refused := got == http.StatusUnauthorized || got == http.StatusForbidden || strings.HasPrefix(text, "Authorization error")
	isHead := method == "HEAD" // It has no text.
	switch {
	case want == 0 && refused, want != 0 && got != want, want == http.StatusInternalServerError && !refused && !isHead:
		return "another decision"
	case want != 0 && len(asked) > 0:
		return fmt.Sprintf("the runtime gets %q", asked)
	case want == http.StatusUnauthorized && text != "Unauthorized" && !isHead:
		return "another text"
	}
	return ""
}

// TestClientCAChanges checks that a changed file applies to the next request of an open connection, and that an invalid
// one changes nothing.
func TestClientCAChanges(t *testing.T) {
	agent, m, _ := web(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	before := newAuthority(t, file).client("admin")
	s := serve(t, agent, m, func(s *Settings, _ *limits) { s.Access = accessTo(t, file, &reviewer{}) })
	s.client.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{*before}
	s.expect("GET", "/healthz", http.StatusOK, "ok")
	if err := os.WriteFile(file, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.expect("GET", "/healthz", http.StatusOK, "ok")
	after := newAuthority(t, file).client("admin")
	s.expect("GET", "/healthz", http.StatusUnauthorized, "Unauthorized")
	if code, text := s.send(identity{cert: after}, "GET /healthz HTTP/1.1\r\n"); code != http.StatusOK {
		t.Error(code, text)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if code, text := s.send(identity{cert: after}, "GET /healthz HTTP/1.1\r\n"); code != http.StatusOK {
		t.Error(code, text)
	}
	if err := os.WriteFile(file, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{file, filepath.Dir(file), "/absent"} {
		if _, err := access.New(access.Settings{ClientCAFile: bad}); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestUndecidedRequests checks that requests that wait for the API server do not lock out clients that are known.
func TestUndecidedRequests(t *testing.T) {
	agent, m, _ := web(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	admin := newAuthority(t, file).client("admin")
	reviews := &reviewer{hangs: make(chan struct{}, 1)}
	s := serve(t, agent, m, func(s *Settings, l *limits) {
		s.Access = accessTo(t, file, reviews)
		l.open, l.waiting = 8, 4
	})
	var waiting []net.Conn
	for i := range 12 {
		waiting = append(waiting, s.raw(fmt.Sprintf("GET /pods HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer t%d\r\n\r\n", i)))
		<-reviews.hangs
	}
	if code, text := s.send(identity{cert: admin}, "GET /healthz HTTP/1.1\r\n"); code != http.StatusOK {
		t.Error(code, text)
	}
	if _, err := waiting[0].Read(make([]byte, 1)); err == nil {
		t.Error("the first request is answered")
	}
}

// TestUserLimit checks that one user cannot use all streams.
func TestUserLimit(t *testing.T) {
	agent, m, d := web(t)
	m.run(d, "app", "c1", logFile(t, map[string]string{"0.log": line(0, "stdout", "one")}))
	file := filepath.Join(t.TempDir(), "ca.crt")
	ca := newAuthority(t, file)
	may["other"] = may["admin"]
	defer delete(may, "other")
	s := serve(t, agent, m, func(s *Settings, l *limits) {
		s.Access = accessTo(t, file, &reviewer{})
		l.streams = 4
	})
	admin, other := ca.client("admin"), ca.client("other")
	const follow = "GET /containerLogs/ns/web/app?follow=true HTTP/1.1\r\nHost: node\r\n\r\n"
	for range 3 {
		dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{*admin}}}
		conn, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "https://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // the test is over
		if _, err = io.WriteString(conn, follow); err != nil {
			t.Fatal(err)
		}
		if _, err = conn.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	logs := "GET /containerLogs/ns/web/app HTTP/1.1\r\nConnection: close\r\n"
	if code, text := s.send(identity{cert: admin}, logs); code != http.StatusTooManyRequests {
		t.Errorf("a fourth stream: %d %s", code, text)
	}
	if code, text := s.send(identity{cert: other}, logs); code != http.StatusOK {
		t.Errorf("another user: %d %s", code, text)
	}
	if code, text := s.send(identity{cert: admin}, "GET /healthz HTTP/1.1\r\n"); code != http.StatusOK {
		t.Errorf("another request: %d %s", code, text)
	}
}

// TestReadOnly checks that the port without access control has only lists of pods, the health and metrics.
func TestReadOnly(t *testing.T) {
	agent, m, _ := web(t)
	server := New(agent, m, Settings{NodeName: "node", Access: accessTo(t, "", &reviewer{}), Measures: measures{}, Metrics: measures{}, Now: time.Now, Log: discard})
	port, err := Address{Host: "127.0.0.1"}.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.ServeReadOnly(ctx, port) }()
	s := &served{Server: server, t: t, url: "http://" + port.Addr().String(), client: http.DefaultClient}
	s.expect("GET", "/healthz", http.StatusOK, "ok")
	if code, text := s.do("GET", "/pods", ""); code != http.StatusOK || !strings.Contains(text, `"web"`) {
		t.Error(code, text)
	}
	for path := range paths {
		if !strings.HasPrefix(path, "/") || strings.Contains(path, "ods") || strings.HasPrefix(path, "/healthz") ||
			strings.HasPrefix(path, "/stats") || strings.HasPrefix(path, "/metrics") && !strings.Contains(path, "run") {
			continue
		}
		for _, method := range []string{"GET", "POST"} {
			if code, text := s.do(method, path, ""); code < 400 {
				t.Errorf("%s %s: %d %q", method, path, code, text)
			}
		}
	}
	s.expect("GET", "/metrics/cadvisor", http.StatusOK, "cadvisor")
	if code, _ := s.do("GET", "/runningpods/", ""); code != http.StatusNotFound {
		t.Error(code)
	}
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/pods", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "evil.test"
	response, err := s.client.Do(r)
	if err != nil || response.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("another host name: %v, %v", response, err)
	}
	_ = response.Body.Close()
	stop()
	if err = <-ended; err != nil {
		t.Error(err)
	}
}
