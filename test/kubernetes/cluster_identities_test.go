package kubernetes

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// nodeURL is the address of the node's server.
const nodeURL = "https://" + nodeIP + ":10250"

// identity is a client of the node's server. It accepts only a certificate of the cluster.
type identity struct {
	client http.Client
	token  string
}

// identity returns a client with a certificate and its key, or without one if the files are empty.
func (c *cluster) identity(t *testing.T, cert, key string) *identity {
	t.Helper()
	config := &tls.Config{RootCAs: c.roots(t), MinVersion: tls.VersionTLS12}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		// Send it although the server may not name its authority.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return &identity{client: http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}}
}

// status returns the code of the response to a request such as "GET /pods", or the error.
func (i *identity) status(t *testing.T, request string) string {
	t.Helper()
	method, path, _ := strings.Cut(request, " ")
	r, err := http.NewRequestWithContext(t.Context(), method, nodeURL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if i.token != "" {
		r.Header.Set("Authorization", "Bearer "+i.token)
	}
	reply, err := i.client.Do(r)
	if err != nil {
		return err.Error()
	}
	defer reply.Body.Close() //nolint:errcheck // it was read
	if _, err = io.Copy(io.Discard, reply.Body); err != nil {
		return err.Error()
	}
	return strconv.Itoa(reply.StatusCode)
}

// identities returns clients by their names. Those without a role have valid credentials and no permission.
func (c *cluster) identities(t *testing.T) map[string]*identity {
	t.Helper()
	another := newAuthority(t, filepath.Join(t.TempDir(), "another"))
	another.issue(t, "admin", subject{"kubernetes-admin", []string{"system:masters"}}, nil)
	c.issue(t, "nobody", subject{"nobody", nil}, nil)
	all := map[string]*identity{
		"none":      c.identity(t, "", ""),
		"unknown":   c.identity(t, "", ""),
		"another":   c.identity(t, another.path("admin.crt"), another.path("admin.key")),
		"node":      c.identity(t, clientPair, clientPair),
		"nobody":    c.identity(t, c.path("nobody.crt"), c.path("nobody.key")),
		"default":   c.identity(t, "", ""),
		"reader":    c.identity(t, "", ""),
		"apiserver": c.identity(t, c.path("to-kubelet.crt"), c.path("to-kubelet.key")),
		"admin":     c.identity(t, c.path("admin.crt"), c.path("admin.key")),
	}
	all["unknown"].token = "unknown"
	for _, account := range []string{"default", "reader"} {
		all[account].token = strings.TrimSpace(c.must(t, "create", "token", account))
	}
	return all
}

// testIdentities makes requests to the node's server by each kind of client. The API server decides, by TokenReviews
// and SubjectAccessReviews. The codes are those of a kubelet, which serves /logs by default.
func (c *cluster) testIdentities(t *testing.T) {
	c = c.in(t, "identities")
	c.apply(t, "identities.yaml")
	c.ready(t, "web")
	all := c.identities(t)
	known, refused := []string{"node", "nobody", "default"}, []string{"none", "unknown", "another"}
	for _, want := range []struct{ request, reader, admin string }{
		{"GET /metrics", "200", "200"},
		{"GET /metrics/cadvisor", "200", "200"},
		{"GET /metrics/resource", "200", "200"},
		{"GET /metrics/probes", "200", "200"},
		{"GET /stats/summary", "200", "200"},
		{"POST /metrics", "403", "405"},
		{"GET /healthz", "403", "200"},
		{"GET /pods", "403", "200"},
		{"GET /runningpods/", "403", "200"},
		{"GET /configz", "403", "200"},
		{"GET /logs/", "403", "405"},
		{"GET /containerLogs/identities/web/web", "403", "200"},
		{"POST /run/identities/web/web?cmd=hostname", "403", "200"},
		{"POST /exec/identities/web/web?command=true", "403", "400"},
		{"GET /metrics/../pods", "403", "200"},
		{"GET /unknown", "403", "404"},
	} {
		expect := func(name, code string) {
			t.Helper()
			if got := all[name].status(t, want.request); got != code {
				t.Errorf("%s by %s: %s, want %s", want.request, name, got, code)
			}
		}
		for _, name := range refused {
			expect(name, "401")
		}
		for _, name := range known {
			expect(name, "403")
		}
		expect("reader", want.reader)
		expect("apiserver", want.admin)
		expect("admin", want.admin)
	}
	for _, kind := range []string{"tokenreviews", "subjectaccessreviews"} {
		if !slices.ContainsFunc(c.requests(t, nodeUser), func(r request) bool {
			return r.ObjectRef.Resource == kind && r.ResponseStatus.Code == http.StatusCreated
		}) {
			t.Errorf("the node has created no %s", kind)
		}
	}
}

// clientsOfOutage returns a check that the node decides alone about clients only as the API server has decided before.
func (c *cluster) clientsOfOutage(t *testing.T) (check func()) {
	t.Helper()
	admin, unknown := c.identity(t, c.path("admin.crt"), c.path("admin.key")), c.identity(t, "", "")
	unknown.token = "unknown"
	c.issue(t, "unasked", subject{"unasked", nil}, nil)
	unasked := c.identity(t, c.path("unasked.crt"), c.path("unasked.key"))
	expect := func(who *identity, request, want string) {
		t.Helper()
		if got := who.status(t, request); got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
	expect(admin, "GET /healthz", "200")
	return func() {
		t.Helper()
		expect(admin, "GET /healthz", "200")
		expect(unknown, "GET /healthz", "401")
		expect(unasked, "GET /healthz", "500")
	}
}

// oldCredentials returns the newest requests of the node that do not have a certificate; empty if there are none.
func (c *cluster) oldCredentials(t *testing.T, cert *x509.Certificate) string {
	t.Helper()
	id := fmt.Sprintf("X509SHA256=%x", sha256.Sum256(cert.Raw))
	all := c.requests(t, nodeUser)
	slices.SortFunc(all, func(a, b request) int {
		return a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp)
	})
	var old []string
	for _, r := range all[max(0, len(all)-20):] {
		if !slices.Contains(r.User.Extra["authentication.kubernetes.io/credential-id"], id) {
			at := r.RequestReceivedTimestamp.Format(time.TimeOnly)
			old = append(old, fmt.Sprintf("%s %s %s %v", at, r.Verb, r.RequestURI, r.User.Extra))
		}
	}
	return strings.Join(old, "\n")
}
