package cluster

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/cluster/certificates"
	"github.com/podctl/podctl/runtime/safefs"
)

// Limits of requests to the API server (kubelet: kubeAPIQPS, kubeAPIBurst).
const (
	requestsPerSecond = 50
	burst             = 100
)

// protobuf is the encoding of requests. JSON is accepted, because custom servers may not have the other.
const protobuf = "application/vnd.kubernetes.protobuf"

// Client is a connection to an API server.
type Client struct {
	*apiclient.Client

	// Config is the configuration of the connection. It must not be changed.
	Config *rest.Config
	// Health is the health of the connection.
	Health *Health
	// Rotation keeps the client certificate. It is nil if podctl does not replace the certificate of the kubeconfig.
	Rotation *certificates.Rotation

	// tls and proxy configure connections with a certificate that is replaced.
	tls   *tls.Config
	proxy proxyFunc
	mu    sync.Mutex
	// closers close these connections.
	closers []func()
}

// Settings configure a connection.
type Settings struct {
	// Kubeconfig is the path of a kubeconfig file. Its current context applies.
	Kubeconfig string
	// Bootstrap is the path of a kubeconfig with which the node requests its first certificate. It may be empty. With
	// it, Kubeconfig is written if it has no valid certificate.
	Bootstrap string
	// Rotate replaces the certificate of the kubeconfig before it expires. It is implied by Bootstrap, and by a
	// kubeconfig with a certificate that a kubelet rotates.
	Rotate bool
	// Node is the name of the Node, and Dir the directory of its certificates.
	Node, Dir string
	// Joined is set if the node was registered before. It then starts with an expired certificate too.
	Joined bool
	// UserAgent names this program in the logs of the API server.
	UserAgent string
	// Now is the clock.
	Now func() time.Time
	Log *slog.Logger
}

// Connect returns a client. It sends nothing. It returns an error that names the file if the kubeconfig is invalid,
// another user may change it, or its certificate or its certificate authority has expired.
func Connect(s Settings) (*Client, error) {
	l, err := s.load()
	if err == nil && l.server != nil {
		err = s.writeKubeconfig(l.server, l.config.CertFile)
	}
	if err != nil {
		return nil, err
	}
	config := l.config
	trusted := authoritiesOf(config)
	if err = s.checkExpiry(config, trusted); err != nil {
		return nil, err
	}
	c := &Client{Config: config, Health: &Health{now: s.Now, log: s.Log}}
	c.Health.explain = func(err error) error { return c.explain(trusted, s.Now(), err) }
	if l.rotates {
		if err = c.rotate(&s); err != nil {
			return nil, err
		}
	}
	c.complete(config, &s)
	if l.rotates {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &certified{next, c} })
	}
	if c.Client, err = apiclient.New(config); err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", s.Kubeconfig, err)
	}
	return c, nil
}

// Check returns why Connect would fail because of the files of the settings. It changes nothing.
func Check(s Settings) error {
	l, err := s.load()
	if err == nil {
		err = s.checkExpiry(l.config, authoritiesOf(l.config))
	}
	if err != nil || l.rotates { // The certificate may not exist yet.
		return err
	}
	_, err = apiclient.New(l.config)
	return safefs.Wrapf(err, "kubeconfig %s", s.Kubeconfig)
}

// checkExpiry returns an error if a certificate of the kubeconfig has expired or cannot be read. A node that was
// registered starts with an expired one.
func (s *Settings) checkExpiry(config *rest.Config, trusted authorities) (err error) {
	if s.Bootstrap == "" {
		err = checkCertificate(config, s.Now())
	}
	if err = cmp.Or(err, trusted.check(s.Now())); err == nil {
		return nil
	}
	if err = fmt.Errorf("kubeconfig %s: %w", s.Kubeconfig, err); !s.Joined || !errors.As(err, new(*ExpiredError)) {
		return err
	}
	s.Log.Warn("the node has no connection to the API server until the kubeconfig is renewed", "error", err.Error())
	return nil
}

// complete sets the options that all connections share.
func (c *Client) complete(config *rest.Config, s *Settings) {
	config.Wrap(c.Health.watch)
	config.UserAgent, config.QPS, config.Burst = s.UserAgent, requestsPerSecond, burst
	config.ContentType, config.AcceptContentTypes = protobuf, protobuf+",application/json"
}

// checkCertificate returns an error if the client certificate cannot be read or has expired. The API server would
// only answer Unauthorized.
func checkCertificate(c *rest.Config, now time.Time) error {
	cert, err := certificateOf(c)
	return cmp.Or(err, expired(cert, now))
}

// Certificate returns the certificate of this machine's requests. It is nil if there is none yet, or if requests have
// a token instead.
func (c *Client) Certificate() (*x509.Certificate, error) {
	if c.Rotation != nil {
		return c.Rotation.State().Certificate, nil
	}
	return certificateOf(c.Config)
}

// certificateOf returns the client certificate of a configuration; nil if there is none.
func certificateOf(c *rest.Config) (*x509.Certificate, error) {
	text := c.CertData
	if c.CertFile != "" {
		var err error
		if text, err = readTrusted(c.CertFile); err != nil {
			return nil, err
		}
	}
	block, _ := pem.Decode(text)
	if block == nil {
		if len(text) > 0 {
			return nil, errors.New("the client certificate is not in PEM format")
		}
		return nil, nil
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the client certificate: %w", err)
	}
	return cert, nil
}
