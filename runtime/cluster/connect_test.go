package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/podctl/podctl/runtime/cluster/apierror"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// kubeconfigOf writes a kubeconfig with a server and a user.
func kubeconfigOf(t *testing.T, server, user string) string {
	t.Helper()
	return written(t, `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "`+server+`"}}]
users: [{name: u, user: {`+user+`}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`)
}

func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// certificate writes a client certificate that ends at a time, and its key.
func certificate(t *testing.T, until time.Time) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "system:node:n"},
		NotBefore: until.Add(-time.Hour), NotAfter: until,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return written(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))),
		written(t, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})))
}

// TestBadKubeconfigs checks that the error names the file and the fault, and no secret.
func TestBadKubeconfigs(t *testing.T) {
	expired, key := certificate(t, now.Add(-time.Minute))
	valid, validKey := certificate(t, now.Add(time.Hour))
	large := written(t, strings.Repeat("#", maxKubeconfig+1))
	shared := kubeconfigOf(t, "https://a:1", "token: secret-token")
	if err := os.Chmod(shared, 0o666); err != nil { // this is the fault
		t.Fatal(err)
	}
	withCertificate := func(file string) string {
		return kubeconfigOf(t, "https://a:1", "client-certificate: "+file+", client-key: "+key)
	}
	withAuthority := kubeconfigOf(t, `https://a:1", certificate-authority: "`+expired, "token: secret-token")
	for name, c := range map[string]struct{ path, want string }{
		"missing":           {filepath.Join(t.TempDir(), "absent"), "no such file"},
		"a directory":       {t.TempDir(), "not a regular file"},
		"too large":         {large, "larger than 1048576 bytes"},
		"others may write":  {shared, "can be written by others"},
		"not YAML":          {written(t, "token: secret-token: {"), "yaml"},
		"empty":             {written(t, ""), "it has no current-context"},
		"no such context":   {written(t, "current-context: x"), `there is no context "x"`},
		"no such cluster":   {written(t, "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]"), `there is no cluster "c"`},
		"no server":         {kubeconfigOf(t, "", "token: secret-token"), "it has no server"},
		"no certificate":    {kubeconfigOf(t, "https://a:1", "client-certificate: /absent, client-key: /absent"), "/absent"},
		"expired":           {withCertificate(expired), "of system:node:n has expired at 2026-05-01T11:59:00Z: renew it"},
		"expired authority": {withAuthority, "the certificate authority system:node:n has expired at 2026-05-01T11:59:00Z: renew it"},
		"not a certificate": {withCertificate(large), "larger than"},
	} {
		s := Settings{Kubeconfig: c.path, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)}
		_, err := Connect(s)
		if checked := Check(s); checked == nil || err == nil || checked.Error() != err.Error() {
			t.Errorf("%s: the check returns %v", name, checked)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.path) ||
			strings.Contains(err.Error(), "secret-token") {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	for _, path := range []string{withCertificate(expired), withAuthority} {
		joined := Settings{
			Kubeconfig: path, Joined: true, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler),
		}
		if _, err := Connect(joined); err != nil || Check(joined) != nil {
			t.Errorf("an expired certificate of a node that was registered: %v", err)
		}
	}
	good := kubeconfigOf(t, "https://a:1", "client-certificate: "+valid+", client-key: "+validKey)
	if c, err := Connect(Settings{Kubeconfig: good, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)}); err != nil || c.Config.Host != "https://a:1" {
		t.Errorf("a valid kubeconfig: %v", err)
	}
}

// TestHealth checks when the API server is considered to respond.
func TestHealth(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure"}`))
	}))
	defer server.Close()
	clock := now
	c, err := Connect(Settings{
		Kubeconfig: kubeconfigOf(t, server.URL, "token: t"), Now: func() time.Time { return clock }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	returns := 0
	c.Health.OnReturn(func() { returns++ })
	request := func(ctx context.Context) { _ = c.Core.Get().Resource("nodes").Name("n").Do(ctx).Error() }
	if c.Health.Check() == nil {
		t.Error("it responds before a request")
	}
	for i, step := range []struct {
		status   int
		responds bool
	}{{200, true}, {403, true}, {500, true}, {503, false}, {502, false}, {200, true}} {
		clock, status = clock.Add(time.Minute), step.status
		request(t.Context())
		if s := c.Health.State(); s.Responds != step.responds || (s.Err == nil) != step.responds {
			t.Errorf("%d, after %d: %+v", i, step.status, s)
		}
	}
	if s := c.Health.State(); returns != 2 || !s.Since.Equal(clock) {
		t.Errorf("%d returns, the last at %s", returns, s.Since)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	request(ended)
	if c.Health.Check() != nil {
		t.Error("a request that its caller has ended counts")
	}
	server.Close()
	if request(t.Context()); c.Health.Check() == nil {
		t.Error("it responds after its end")
	}
}

// TestPages checks that the page of a proxy is neither an object nor an answer about one, and that a server cannot ask
// for a long delay.
func TestPages(t *testing.T) {
	kind, code := "", 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Retry-After", "86400")
		w.WriteHeader(code)
		_, _ = w.Write([]byte("<html>sign in</html>"))
	}))
	defer server.Close()
	c, err := Connect(Settings{Kubeconfig: kubeconfigOf(t, server.URL, "token: t"), Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		kind   string
		code   int
		isPage bool
	}{
		{"text/html; charset=utf-8", 200, true},
		{"text/html", 404, true},
		{"text/html", 409, true},
		{"text/html", 502, true},
		{"text/plain", 200, true},
		{"text/plain", 429, false},
		{"text/plain; charset=utf-8", 404, false},
	} {
		kind, code = step.kind, step.code
		err := c.Core.Get().Resource("nodes").Name("n").MaxRetries(0).Do(t.Context()).Error()
		if isPage := errors.As(err, new(*apierror.PageError)); err == nil || isPage != step.isPage {
			t.Errorf("%s %d: %v", step.kind, step.code, err)
		}
		if responds := c.Health.Check() == nil; responds == step.isPage {
			t.Errorf("%s %d: the API server responds: %t", step.kind, step.code, responds)
		}
		if delay, ok := apierrors.SuggestsClientDelay(err); ok && delay != apierror.DelayMax {
			t.Errorf("%s %d: a delay of %d s", step.kind, step.code, delay)
		}
	}
}

// TestLargeAnswer checks that an answer without an end is an error.
func TestLargeAnswer(t *testing.T) {
	b := &limitedBody{ReadCloser: io.NopCloser(zeros{}), left: 1000}
	n, err := io.Copy(io.Discard, b)
	if err == nil || !strings.Contains(err.Error(), "is larger than") || n < 1000 || n > 1<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// zeros is a reader without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
