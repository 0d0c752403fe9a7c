package certificates

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/certificate"
	"k8s.io/klog/v2"

	"github.com/podctl/podctl/runtime/cluster/apierror"
)

// Settings configure the certificate of a node for one use. Without Addresses, it is the client certificate.
type Settings struct {
	// Dir is the directory of the files, which have the names of a kubelet. CertFile and KeyFile are used while there
	// is none in the directory; both may be empty.
	Dir               string
	CertFile, KeyFile string
	// Cert and Key are a pair in PEM format that is stored, and replaced at once, if there is no valid one. Both may be
	// nil (kubelet: BootstrapCertificatePEM).
	Cert, Key []byte
	// Node is the name of the Node.
	Node string
	// Addresses returns the addresses of the Node. If it is not nil, the certificate is for the server of the node. A
	// new address causes a new request.
	Addresses func() []v1.NodeAddress
	// Config returns the connection for a request. current is nil if there is no valid certificate.
	Config func(current *tls.Certificate) (*rest.Config, error)
	// Changed is called after each change of the certificate.
	Changed func()
	Log     *slog.Logger
}

// State is the state of a certificate and of the request for the next one.
type State struct {
	// Certificate is the newest certificate, also if it has expired. It is nil if there is none.
	Certificate *x509.Certificate
	// Request is the name of the CertificateSigningRequest that is pending since Since. It is empty if there is none.
	// Approved requests wait for the signer.
	Request  string
	Since    time.Time
	Approved bool
	// Failure is the reason why the last request failed. It is empty after a success.
	Failure string
}

// Rotation replaces a certificate before it expires: at 70 to 90 % of its life. It is safe for concurrent use.
type Rotation struct {
	Settings

	prefix  string
	current atomic.Pointer[tls.Certificate]

	mu    sync.Mutex
	state State
}

// New reads the stored certificate. It makes no request. It returns an error if another user controls the files.
func New(s Settings) (*Rotation, error) {
	r := &Rotation{Settings: s, prefix: clientPrefix}
	if r.Addresses != nil {
		r.prefix = servingPrefix
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, err
	}
	if _, err := r.manager(context.Background()); err != nil {
		return nil, fmt.Errorf("the %s certificate of the node: %w", r.use(), err)
	}
	return r, nil
}

// use returns what the certificate is for: client or serving.
func (r *Rotation) use() string {
	if r.Addresses != nil {
		return "serving"
	}
	return "client"
}

// usage returns the usage that a signed certificate must have.
func (r *Rotation) usage() x509.ExtKeyUsage {
	if r.Addresses != nil {
		return x509.ExtKeyUsageServerAuth
	}
	return x509.ExtKeyUsageClientAuth
}

// template returns the request for the next certificate; nil if there cannot be one yet.
func (r *Rotation) template() *x509.CertificateRequest {
	if r.Addresses != nil {
		return servingTemplate(r.Node, r.Addresses())
	}
	return &x509.CertificateRequest{Subject: subjectOf(r.Node)}
}

// manager returns the library's manager, configured as in a kubelet (pkg/kubelet/certificate).
func (r *Rotation) manager(ctx context.Context) (certificate.Manager, error) {
	files, err := r.openStore()
	if err != nil {
		return nil, err
	}
	ctx = klog.NewContext(ctx, quiet())
	c := &certificate.Config{
		ClientsetFn: r.client, CertificateStore: files, Ctx: &ctx,
		BootstrapCertificatePEM: r.Cert, BootstrapKeyPEM: r.Key,
		Template: r.template(), SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
		GetUsages: certificate.DefaultKubeletClientGetUsages,
	}
	if r.Addresses != nil {
		c.Template, c.GetTemplate = nil, r.template
		c.SignerName, c.GetUsages = certificatesv1.KubeletServingSignerName, certificate.DefaultKubeletServingGetUsages
	}
	return certificate.NewManager(c)
}

// quiet returns a logger without output. The library would repeat the same lines.
func quiet() klog.Logger { return klog.New(nil) }

// Current returns the newest certificate. It returns nil if there is none, or if it has expired.
func (r *Rotation) Current() *tls.Certificate {
	pair := r.current.Load()
	if pair == nil || time.Now().After(pair.Leaf.NotAfter) {
		return nil
	}
	return pair
}

// State returns the state.
func (r *Rotation) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.state
	if pair := r.current.Load(); pair != nil {
		s.Certificate = pair.Leaf
	}
	return s
}

// requested notes a request that the API server has accepted.
func (r *Rotation) requested(csr *certificatesv1.CertificateSigningRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state.Failure == "" {
		r.Log.Info("requested a certificate, which waits for approval", "use", r.use(), "csr", csr.Name)
	}
	r.state.Request, r.state.Since, r.state.Approved = csr.Name, time.Now(), false
}

// answered notes the state of a request.
func (r *Rotation) answered(csr *certificatesv1.CertificateSigningRequest) {
	approved, err := answerOf(csr)
	if err != nil {
		r.failed("waiting for a certificate", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if csr.Name == r.state.Request {
		r.state.Approved, r.state.Failure = approved, ""
	}
}

// failed notes that a step failed. The same failure is logged once.
func (r *Rotation) failed(step string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := step + ": " + apierror.Text(err)
	if text != r.state.Failure && !apierror.IsLogged(err) {
		r.Log.Warn("the node has no new certificate", "use", r.use(), "error", text)
	}
	r.state = State{Failure: text}
}

// replaced notes a new certificate.
func (r *Rotation) replaced(pair *tls.Certificate) {
	r.mu.Lock()
	r.current.Store(pair)
	r.state = State{}
	r.mu.Unlock()
	r.Log.Info("the node has a new certificate", "use", r.use(), "expires", pair.Leaf.NotAfter.UTC())
	r.Changed()
}
