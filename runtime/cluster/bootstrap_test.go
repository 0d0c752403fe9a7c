package cluster

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/podctl/podctl/runtime/cluster/apitest"
)

const bootstrapToken = "abcdef.0123456789abcdef"

// TestBootstrap checks when a kubeconfig is replaced by one that names the certificate of the node.
func TestBootstrap(t *testing.T) {
	expired, key := certificate(t, now.Add(-time.Minute))
	valid, validKey := certificate(t, now.Add(time.Hour))
	pair := func(cert, key string) string { return "client-certificate: " + cert + ", client-key: " + key }
	open := kubeconfigOf(t, "https://old:1", pair(valid, validKey))
	if err := os.Chmod(open, 0o666); err != nil { // this is the fault
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		kubeconfig string
		replaced   bool
		err        string
	}{
		"missing":             {filepath.Join(t.TempDir(), "new", "kubeconfig"), true, ""},
		"valid":               {kubeconfigOf(t, "https://old:1", pair(valid, validKey)), false, ""},
		"expired":             {kubeconfigOf(t, "https://old:1", pair(expired, key)), true, ""},
		"without certificate": {kubeconfigOf(t, "https://old:1", "token: t"), true, ""},
		"of a missing file":   {kubeconfigOf(t, "https://old:1", pair("/absent", "/absent")), true, ""},
		"not YAML":            {written(t, "{"), true, ""},
		"of another user":     {open, false, "can be written by others"},
	} {
		s := Settings{
			Kubeconfig: c.kubeconfig, Bootstrap: kubeconfigOf(t, "https://api.test:6443", "token: "+bootstrapToken),
			Dir: "/state/pki", Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler),
		}
		before, _ := os.ReadFile(c.kubeconfig)
		if err := Check(s); (err != nil) != (c.err != "") {
			t.Errorf("%s: the check returns %v", name, err)
		}
		if after, _ := os.ReadFile(c.kubeconfig); !bytes.Equal(before, after) {
			t.Errorf("%s: the check has written %s", name, after)
		}
		l, err := s.load()
		if err == nil && l.server != nil {
			err = s.writeKubeconfig(l.server, l.config.CertFile)
		}
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want %s", name, err, c.err)
			}
			continue
		}
		if err != nil || !l.rotates || l.config.BearerToken != "" ||
			(l.config.Host == "https://api.test:6443") != c.replaced {
			t.Errorf("%s: %+v, %v", name, l, err)
			continue
		}
		text, err := os.ReadFile(c.kubeconfig)
		info, statErr := os.Stat(c.kubeconfig)
		if err != nil || statErr != nil || info.Mode().Perm() != 0o600 || strings.Contains(string(text), bootstrapToken) {
			t.Errorf("%s: %s, %v %v", name, text, err, statErr)
		}
		named := strings.Contains(string(text), "client-key: /state/pki/kubelet-client-current.pem")
		if named != c.replaced {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// TestRemovedBootstrap checks that a node that was registered starts without its bootstrap kubeconfig, and another one
// does not.
func TestRemovedBootstrap(t *testing.T) {
	expired, key := certificate(t, now.Add(-time.Minute))
	for _, joined := range []bool{true, false} {
		c, err := Connect(Settings{
			Kubeconfig: kubeconfigOf(t, "https://old:1", "client-certificate: "+expired+", client-key: "+key),
			Bootstrap:  filepath.Join(t.TempDir(), "absent"), Joined: joined, Node: "n", Dir: t.TempDir(),
			Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler),
		})
		if started := err == nil && c.Config.Host == "https://old:1"; started != joined {
			t.Errorf("registered %t: %v", joined, err)
		}
	}
}

// plane is an API server with TLS that signs client certificates.
type plane struct {
	*apitest.Cluster

	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate

	// permits are how long the next certificates are valid. A request waits for its permit.
	permits chan time.Duration

	mu     sync.Mutex
	serial int64
	life   time.Duration
	// users are those of requests, in their order, without repetition.
	users []string
}

func newPlane(t *testing.T) (*plane, *httptest.Server) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &plane{
		Cluster: apitest.NewCluster(), t: t, key: key, cert: &x509.Certificate{Subject: pkix.Name{CommonName: "ca"}},
		permits: make(chan time.Duration),
	}
	p.Sign = p.sign
	server := httptest.NewUnstartedServer(p)
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	return p, server
}

// sign approves and signs a request.
func (p *plane) sign(csr *certificatesv1.CertificateSigningRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	block, _ := pem.Decode(csr.Spec.Request)
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		p.t.Error(err)
		return
	}
	p.serial++
	signed, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(p.serial), Subject: request.Subject, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(p.life),
	}, p.cert, request.PublicKey, p.key)
	if err != nil {
		p.t.Error(err)
	}
	csr.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved}}
}

// ServeHTTP notes the user of a request.
func (p *plane) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		life := <-p.permits
		p.mu.Lock()
		p.life = life
		p.mu.Unlock()
	}
	user := r.Header.Get("Authorization")
	for _, c := range r.TLS.PeerCertificates {
		user += fmt.Sprintf("%s %d", c.Subject.CommonName, c.SerialNumber)
	}
	p.mu.Lock()
	if n := len(p.users); n == 0 || p.users[n-1] != user {
		p.users = append(p.users, user)
	}
	p.mu.Unlock()
	p.Cluster.ServeHTTP(w, r)
}

// TestRotate checks that the first certificate is requested with the token, that no request is made before, and that
// a new certificate closes the connections of a watch and is used by the next request.
func TestRotate(t *testing.T) {
	p, server := newPlane(t)
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(
		&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	dir := t.TempDir()
	bootstrap := written(t, strings.Replace(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "`+server.URL+`", certificate-authority-data: CA}}]
users: [{name: u, user: {token: `+bootstrapToken+`}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, "CA", ca, 1))
	connect := func() *Client {
		c, err := Connect(Settings{
			Kubeconfig: filepath.Join(dir, "kubeconfig"), Bootstrap: bootstrap, Dir: filepath.Join(dir, "pki"), Node: "n",
			UserAgent: "test", Now: time.Now, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := connect()
	changed := make(chan struct{}, 10)
	c.Rotation.Changed = func() {
		c.reconnect()
		changed <- struct{}{}
	}
	list := func(c *Client) error { return c.Core.Get().Resource("pods").Do(t.Context()).Error() }
	if err := list(c); err == nil || !strings.Contains(err.Error(), errNoCertificate.Error()) || len(p.users) > 0 {
		t.Errorf("without a certificate: %v, users %v", err, p.users)
	}
	ctx, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		c.Rotation.Run(ctx)
		close(done)
	}()
	p.permits <- 2 * time.Minute // after an hour, so the next one is due at once
	<-changed
	watch, err := c.Core.Get().Resource("pods").Param("watch", "true").Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.permits <- time.Hour
	<-changed
	for e := range watch.ResultChan() {
		t.Errorf("an event: %+v", e)
	}
	if err = list(c); err != nil {
		t.Errorf("with the second certificate: %v", err)
	}
	end()
	<-done
	want := "[Bearer " + bootstrapToken + " system:node:n 1 system:node:n 2]"
	if got := fmt.Sprint(p.users); got != want {
		t.Errorf("users %s, want %s", got, want)
	}
	again := connect()
	if err = list(again); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}
