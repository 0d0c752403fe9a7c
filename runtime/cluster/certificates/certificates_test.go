package certificates

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/podctl/podctl/runtime/cluster/apitest"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	return &authority{t: t, key: newKey(t), cert: &x509.Certificate{Subject: pkix.Name{CommonName: "ca"}}}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sign returns a certificate in PEM format. Without a time of its own, it begins now and lasts for an hour.
func (a *authority) sign(c *x509.Certificate, public any) []byte {
	a.t.Helper()
	c.SerialNumber = big.NewInt(1)
	if c.NotAfter.IsZero() {
		c.NotBefore, c.NotAfter = time.Now(), time.Now().Add(time.Hour)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, public, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func keyPEM(t *testing.T, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

// signer is an API server that answers requests for certificates as decide says.
type signer struct {
	*authority
	*apitest.Cluster

	mu sync.Mutex
	// decide changes a request. If it is nil, the request stays pending. refusal answers requests in its place.
	decide  func(csr *certificatesv1.CertificateSigningRequest, c *x509.Certificate, public any)
	refusal http.HandlerFunc
	// sent are the requests, parsed.
	sent []*x509.CertificateRequest
}

func (s *signer) set(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

// refused returns the refusal; nil if there is none.
func (s *signer) refused(*http.Request) http.HandlerFunc {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refusal
}

// answer answers a request that was stored.
func (s *signer) answer(csr *certificatesv1.CertificateSigningRequest) {
	block, _ := pem.Decode(csr.Spec.Request)
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		s.t.Error(err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, request)
	if s.decide != nil {
		use := x509.ExtKeyUsageClientAuth
		if csr.Spec.SignerName == certificatesv1.KubeletServingSignerName {
			use = x509.ExtKeyUsageServerAuth
		}
		s.decide(csr, &x509.Certificate{
			Subject: request.Subject, DNSNames: request.DNSNames, IPAddresses: request.IPAddresses,
			ExtKeyUsage: []x509.ExtKeyUsage{use},
		}, request.PublicKey)
	}
}

// requests returns the requests so far.
func (s *signer) requests() []*x509.CertificateRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

// approve signs a request as a cluster does.
func (s *signer) approve(csr *certificatesv1.CertificateSigningRequest, c *x509.Certificate, public any) {
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type: certificatesv1.CertificateApproved, Status: v1.ConditionTrue,
	}}
	csr.Status.Certificate = s.sign(c, public)
}

// lab is a rotation with its API server.
type lab struct {
	*Rotation

	t      *testing.T
	signer *signer
	log    *apitest.Log

	mu sync.Mutex
	// with are the requests: true for one with a certificate.
	with     []bool
	replaced int
}

// config returns the connection for a request.
func (l *lab) config(base *rest.Config, current *tls.Certificate) *rest.Config {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.with = append(l.with, current != nil)
	return rest.CopyConfig(base)
}

// credentials returns for each request whether it was made with a certificate.
func (l *lab) credentials() []bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.with)
}

// changed notes that the certificate was replaced.
func (l *lab) changed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replaced++
}

// changes returns how often the certificate was replaced.
func (l *lab) changes() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.replaced
}

// inLab runs a test with a rotation on the clock of the test.
func inLab(t *testing.T, change func(*Settings), do func(t *testing.T, l *lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &lab{t: t, log: &apitest.Log{}}
		l.signer = &signer{authority: newAuthority(t), Cluster: apitest.NewCluster()}
		l.signer.Sign, l.signer.Raw = l.signer.answer, l.signer.refused
		_, config := apitest.Serve(t, l.signer)
		s := Settings{
			Dir: filepath.Join(t.TempDir(), "pki"), Node: "n",
			Config:  func(current *tls.Certificate) (*rest.Config, error) { return l.config(config, current), nil },
			Changed: l.changed, Log: slog.New(slog.NewTextHandler(l.log, nil)),
		}
		if change != nil {
			change(&s)
		}
		var err error
		if l.Rotation, err = New(s); err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			l.Run(ctx)
			close(done)
		}()
		do(t, l)
		end()
		<-done
		time.Sleep(2 * time.Hour) // The library's timers ignore the context.
	})
}

// check checks the state as a text.
func (l *lab) check(want string) {
	l.t.Helper()
	synctest.Wait()
	s := l.State()
	text := "none"
	if s.Certificate != nil {
		text = s.Certificate.Subject.CommonName
	}
	if s.Request != "" {
		text += " " + s.Request
	}
	if s.Approved {
		text += " approved"
	}
	if s.Failure != "" {
		text += " (" + s.Failure + ")"
	}
	if text != want {
		l.t.Errorf("after %s: %s, want %s", time.Since(start), text, want)
	}
}

// start is when the clock of each test begins.
var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// TestPendingRequest checks the state of a request until it is signed, and that its certificate is stored as a kubelet
// stores it.
func TestPendingRequest(t *testing.T) {
	inLab(t, nil, func(t *testing.T, l *lab) {
		l.check("none csr-1")
		if l.Current() != nil {
			t.Error("there is a certificate")
		}
		apitest.Sleep(5 * time.Minute)
		l.check("none csr-1")
		l.signer.Answer(func(csr *certificatesv1.CertificateSigningRequest) {
			csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved}}
		})
		l.check("none csr-1 approved")
		l.signer.set(func() { l.signer.decide = l.signer.approve })
		l.signer.Answer(l.signer.answer)
		l.check("system:node:n")
		if l.changes() != 1 || l.Current() == nil {
			t.Errorf("%d changes, %v", l.changes(), l.Current())
		}
		request := l.signer.requests()[0]
		if request.Subject.String() != "CN=system:node:n,O=system:nodes" || len(request.DNSNames)+len(request.IPAddresses) > 0 {
			t.Errorf("requested %+v", request)
		}
		checkFiles(t, l.Dir, "kubelet-client")
	})
}

// checkFiles checks names and modes, and that the pair is whole.
func checkFiles(t *testing.T, dir, prefix string) {
	t.Helper()
	current := filepath.Join(dir, prefix+"-current.pem")
	if _, err := tls.LoadX509KeyPair(current, current); err != nil {
		t.Error(err)
	}
	target, err := filepath.EvalSymlinks(current)
	if err != nil || !strings.HasPrefix(filepath.Base(target), prefix+"-2000-01-") {
		t.Errorf("%s leads to %s, %v", current, target, err)
	}
	if text := modeOf(t, dir) + " " + modeOf(t, target); text != "drwx------ -rw-------" {
		t.Error(text)
	}
}

// TestRotation checks that a certificate is replaced at 70 to 90 % of its life, also if that fails for a while.
func TestRotation(t *testing.T) {
	inLab(t, nil, func(t *testing.T, l *lab) {
		l.signer.set(func() { l.signer.decide = l.signer.approve })
		apitest.Sleep(time.Minute)
		l.check("system:node:n")
		first := l.Current()
		apitest.Sleep(40 * time.Minute)
		if l.Current() != first {
			t.Errorf("replaced after %s", time.Since(start))
		}
		l.signer.set(func() { l.signer.refusal = apitest.Refusal(http.StatusForbidden, metav1.StatusReasonForbidden, 0) })
		apitest.Sleep(16 * time.Minute)
		l.check("system:node:n (requesting a certificate: the API server forbids it (403): refused: check the permissions of the user of the kubeconfig)")
		if l.Current() != first {
			t.Error("the valid certificate is not used")
		}
		l.signer.set(func() { l.signer.refusal = nil })
		apitest.Sleep(time.Minute)
		l.check("system:node:n")
		if now := l.Current(); now == first || now == nil || l.changes() != 2 {
			t.Errorf("not replaced after %s", time.Since(start))
		}
		if n := strings.Count(l.log.String(), "the node has no new certificate"); n != 1 {
			t.Errorf("%d lines about one failure:\n%s", n, l.log)
		}
	})
}

// TestExpired checks that an expired certificate is not used, and that another connection can replace it.
func TestExpired(t *testing.T) {
	inLab(t, nil, func(t *testing.T, l *lab) {
		l.signer.set(func() { l.signer.decide = l.signer.approve })
		apitest.Sleep(time.Minute)
		l.signer.set(func() {
			l.signer.refusal = apitest.Refusal(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, 0)
		})
		apitest.Sleep(time.Hour)
		if l.Current() != nil || l.State().Certificate == nil {
			t.Errorf("%v, %+v", l.Current(), l.State())
		}
		l.signer.set(func() { l.signer.refusal = nil })
		apitest.Sleep(time.Minute)
		if l.Current() == nil {
			t.Errorf("not replaced: %+v", l.State())
		}
		if with := l.credentials(); with[0] || !with[1] || with[len(with)-1] {
			t.Errorf("requests with a certificate: %v", with)
		}
	})
}

// TestExpiredWhilePending checks that a certificate that expires while the request for the next one is pending is
// replaced with the credentials for the bootstrap at once.
func TestExpiredWhilePending(t *testing.T) {
	inLab(t, nil, func(t *testing.T, l *lab) {
		l.signer.set(func() { l.signer.decide = l.signer.approve })
		apitest.Sleep(time.Second)
		l.signer.set(func() { l.signer.decide = nil })
		apitest.Sleep(time.Until(l.Current().Leaf.NotAfter))
		l.check("system:node:n csr-" + strconv.Itoa(len(l.credentials())))
		requests := len(l.credentials())
		apitest.Sleep(time.Second)
		l.check("system:node:n csr-" + strconv.Itoa(requests+1))
		if all := l.credentials(); l.Current() != nil || len(all) != requests+1 || !all[requests-1] || all[requests] {
			t.Errorf("%v, requests with a certificate: %v", l.Current(), all)
		}
		l.signer.set(func() { l.signer.decide = l.signer.approve })
		l.signer.Answer(l.signer.answer)
		l.check("system:node:n")
		if l.Current() == nil || l.changes() != 2 {
			t.Errorf("%v, %d changes", l.Current(), l.changes())
		}
	})
}

// TestRefusals checks that a request that fails leaves no certificate and no file, reports the reason, and is repeated in time.
func TestRefusals(t *testing.T) {
	type csr = certificatesv1.CertificateSigningRequest
	for name, c := range map[string]struct {
		decide func(s *signer, r *csr, c *x509.Certificate, public any)
		want   string
	}{
		"denied": {func(_ *signer, r *csr, _ *x509.Certificate, _ any) {
			r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
				{Type: certificatesv1.CertificateDenied, Reason: "Policy", Message: "no"},
			}
		}, "waiting for a certificate: the request was denied: Policy: no"},
		"failed": {func(_ *signer, r *csr, _ *x509.Certificate, _ any) {
			r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
				{Type: certificatesv1.CertificateApproved}, {Type: certificatesv1.CertificateFailed, Reason: "Signer", Message: "broken"},
			}
		}, "waiting for a certificate: signing failed: Signer: broken"},
		"another key": {func(s *signer, r *csr, c *x509.Certificate, _ any) {
			s.approve(r, c, newKey(s.t).Public())
		}, "storing the signed certificate: tls: private key does not match public key"},
		"another node": {func(s *signer, r *csr, c *x509.Certificate, public any) {
			c.Subject.CommonName = "system:node:m"
			s.approve(r, c, public)
		}, `storing the signed certificate: the certificate is for "system:node:m" instead of "system:node:n"`},
		"expired": {func(s *signer, r *csr, c *x509.Certificate, public any) {
			c.NotBefore, c.NotAfter = start.Add(-time.Hour), start
			s.approve(r, c, public)
		}, "storing the signed certificate: the certificate has expired at 2000-01-01T00:00:00Z: check the clocks of the machines"},
		"no certificate": {func(s *signer, r *csr, c *x509.Certificate, public any) {
			s.approve(r, c, public)
			r.Status.Certificate = []byte("<html>")
		}, "storing the signed certificate: tls: failed to find any PEM data in certificate input"},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, nil, func(t *testing.T, l *lab) {
				l.signer.set(func() {
					l.signer.decide = func(r *csr, cert *x509.Certificate, public any) { c.decide(l.signer, r, cert, public) }
				})
				apitest.Sleep(time.Second)
				l.check("none (" + c.want + ")")
				apitest.Sleep(10 * time.Minute)
				if n := len(l.signer.requests()); n < 10 || n > 30 {
					t.Errorf("%d requests in 10 minutes", n)
				}
				if left, _ := filepath.Glob(filepath.Join(l.Dir, "*")); len(left) > 0 {
					t.Errorf("files are left: %v", left)
				}
				l.signer.set(func() { l.signer.decide = l.signer.approve })
				apitest.Sleep(time.Minute)
				l.check("system:node:n")
			})
		})
	}
}

// TestServing checks the certificate of a server, and that a new address of the Node causes a new request at once.
func TestServing(t *testing.T) {
	var mu sync.Mutex
	var addresses []v1.NodeAddress
	set := func(all ...v1.NodeAddress) {
		mu.Lock()
		defer mu.Unlock()
		addresses = all
	}
	inLab(t, func(s *Settings) {
		s.Addresses = func() []v1.NodeAddress {
			mu.Lock()
			defer mu.Unlock()
			return addresses
		}
	}, func(t *testing.T, l *lab) {
		l.signer.set(func() { l.signer.decide = l.signer.approve })
		apitest.Sleep(time.Minute)
		l.check("none") // The Node has no address yet.
		host := v1.NodeAddress{Type: v1.NodeHostName, Address: "h"}
		set(host, v1.NodeAddress{Type: v1.NodeInternalIP, Address: "192.0.2.1"})
		apitest.Sleep(5 * time.Second)
		l.check("system:node:n")
		checkFiles(t, l.Dir, "kubelet-server")
		set(host, v1.NodeAddress{Type: v1.NodeInternalIP, Address: "192.0.2.2"})
		apitest.Sleep(5 * time.Second)
		if err := l.Current().Leaf.VerifyHostname("192.0.2.2"); err != nil || len(l.signer.requests()) != 2 {
			t.Errorf("%d requests, %v", len(l.signer.requests()), err)
		}
		apitest.Sleep(time.Minute)
		if len(l.signer.requests()) != 2 {
			t.Errorf("%d requests", len(l.signer.requests()))
		}
	})
}

// TestTemplate checks the names and addresses of a serving certificate.
func TestTemplate(t *testing.T) {
	address := func(kind v1.NodeAddressType, text string) v1.NodeAddress {
		return v1.NodeAddress{Type: kind, Address: text}
	}
	for name, c := range map[string]struct {
		addresses []v1.NodeAddress
		want      string
	}{
		"none":       {nil, ""},
		"only names": {[]v1.NodeAddress{address(v1.NodeHostName, "h"), address(v1.NodeInternalDNS, "d")}, ""},
		"all": {[]v1.NodeAddress{
			address(v1.NodeHostName, "h"), address(v1.NodeInternalIP, "192.0.2.2"), address(v1.NodeInternalIP, "192.0.2.2"),
			address(v1.NodeExternalIP, "2001:db8::1"), address(v1.NodeExternalDNS, "d"), address(v1.NodeInternalIP, "x"),
		}, "[d h] [192.0.2.2 2001:db8::1]"},
		"a host name that is an address": {[]v1.NodeAddress{address(v1.NodeHostName, "192.0.2.3")}, "[] [192.0.2.3]"},
	} {
		text := ""
		if r := servingTemplate("n", c.addresses); r != nil {
			text = fmt.Sprint(r.DNSNames, r.IPAddresses)
		}
		if text != c.want {
			t.Errorf("%s: %s, want %s", name, text, c.want)
		}
	}
}

// TestCheckPair checks which signed certificates are accepted.
func TestCheckPair(t *testing.T) {
	a, key := newAuthority(t), newKey(t)
	request := &x509.CertificateRequest{
		Subject: subjectOf("n"), DNSNames: []string{"h"}, IPAddresses: []net.IP{net.ParseIP("192.0.2.1")},
	}
	for name, c := range map[string]struct {
		change func(*x509.Certificate)
		want   string
	}{
		"as requested":    {func(*x509.Certificate) {}, ""},
		"more names":      {func(c *x509.Certificate) { c.DNSNames = append(c.DNSNames, "i") }, ""},
		"another group":   {func(c *x509.Certificate) { c.Subject.Organization = []string{"system:masters"} }, "not for the group"},
		"another use":     {func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }, "another use"},
		"without a name":  {func(c *x509.Certificate) { c.DNSNames = nil }, "is not for h"},
		"another address": {func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.ParseIP("192.0.2.2")} }, "is not for 192.0.2.1"},
	} {
		cert := &x509.Certificate{
			Subject: request.Subject, DNSNames: request.DNSNames, IPAddresses: request.IPAddresses,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}
		c.change(cert)
		err := checkPair(a.sign(cert, key.Public()), keyPEM(t, key), request, x509.ExtKeyUsageServerAuth, time.Now())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	large := append(a.sign(&x509.Certificate{Subject: request.Subject}, key.Public()), make([]byte, pemMax)...)
	if err := checkPair(large, keyPEM(t, key), request, x509.ExtKeyUsageServerAuth, time.Now()); err == nil {
		t.Error("a large certificate is accepted")
	}
}

func modeOf(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().String()
}
