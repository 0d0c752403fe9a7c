package cluster

import (
	"cmp"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"

	"github.com/podctl/podctl/runtime/cluster/apierror"
	"github.com/podctl/podctl/runtime/cluster/certificates"
)

// proxyFunc returns the proxy of a request, as in http.Transport.
type proxyFunc = func(*http.Request) (*url.URL, error)

// The limits of connections (kubelet: updateTransport). connectTimeout is also how long one may be silent.
const (
	connectTimeout   = 30 * time.Second
	handshakeTimeout = 10 * time.Second
	idlePerHost      = 25
)

// rotate makes all connections use the newest certificate of the node. A new certificate closes them.
func (c *Client) rotate(s *Settings) error {
	config := c.Config
	settings := certificates.Settings{
		Dir: s.Dir, Node: s.Node, Cert: config.CertData, Key: config.KeyData,
		Config:  func(current *tls.Certificate) (*rest.Config, error) { return c.requestConfig(s, current) },
		Changed: c.reconnect, Log: s.Log,
	}
	if isOwn(config) {
		settings.Dir = filepath.Dir(config.CertFile)
	} else {
		settings.CertFile, settings.KeyFile = config.CertFile, config.KeyFile
	}
	var err error
	if c.Rotation, err = certificates.New(settings); err != nil {
		return err
	}
	config.CertData, config.KeyData, config.CertFile, config.KeyFile = nil, nil, "", ""
	if c.tls, err = rest.TLSConfigFor(config); err != nil {
		return err
	}
	if c.tls == nil {
		c.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	c.tls.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return c.certificate()
	}
	config.TLSClientConfig = rest.TLSClientConfig{}
	c.proxy, config.Proxy = config.Proxy, nil
	config.Transport, _ = c.newTransport(connectTimeout)
	return nil
}

// errNoCertificate is the error of requests without a valid certificate. The API server would refuse them with a reason
// that leads nowhere. The rotation logs why there is none.
var errNoCertificate error = &apierror.LoggedError{
	Err: errors.New("the node has no valid client certificate: see `podctl agent status`"),
}

// certificate returns the newest certificate, or an error if there is no valid one.
func (c *Client) certificate() (*tls.Certificate, error) {
	if pair := c.Rotation.Current(); pair != nil {
		return pair, nil
	}
	return nil, errNoCertificate
}

// certified makes requests only while there is a valid certificate.
type certified struct {
	next   http.RoundTripper
	client *Client
}

// RoundTrip makes a request.
func (c *certified) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := c.client.certificate(); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	return c.next.RoundTrip(r)
}

// WrappedRoundTripper returns the wrapped transport.
func (c *certified) WrappedRoundTripper() http.RoundTripper { return c.next }

// requestConfig returns the connection for a request for a certificate: with the current one, or with the credentials
// for the bootstrap.
func (c *Client) requestConfig(s *Settings, current *tls.Certificate) (*rest.Config, error) {
	if current != nil {
		return rest.CopyConfig(c.Config), nil
	}
	first, err := readKubeconfig(cmp.Or(s.Bootstrap, s.Kubeconfig))
	if err == nil {
		err = checkCertificate(first.config, s.Now())
	}
	if err != nil {
		return nil, err
	}
	c.complete(first.config, s)
	return first.config, nil
}

// Separate returns the configuration with connections of its own, and a function that closes them. timeout limits how
// long a connection takes to begin, and how long it may be silent.
func (c *Client) Separate(timeout time.Duration) (*rest.Config, func()) {
	own := rest.CopyConfig(c.Config)
	if c.Rotation == nil {
		dialer := newDialer(timeout)
		own.Dial = dialer.DialContext
		return own, dialer.CloseAll
	}
	var closeAll func()
	own.Transport, closeAll = c.newTransport(timeout)
	return own, closeAll
}

// newDialer returns a dialer that can close its connections.
func newDialer(timeout time.Duration) *connrotation.Dialer {
	return connrotation.NewDialer((&net.Dialer{Timeout: timeout, KeepAlive: timeout}).DialContext)
}

// newTransport returns connections with the newest certificate, and a function that closes them.
func (c *Client) newTransport(timeout time.Duration) (http.RoundTripper, func()) {
	proxy := c.proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	dialer := newDialer(timeout)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closers = append(c.closers, dialer.CloseAll)
	return utilnet.SetTransportDefaults(&http.Transport{
		Proxy: proxy, TLSHandshakeTimeout: handshakeTimeout, TLSClientConfig: c.tls.Clone(),
		MaxIdleConnsPerHost: idlePerHost, DialContext: dialer.DialContext,
	}), dialer.CloseAll
}

// reconnect closes all connections, so that the next requests use the newest certificate.
func (c *Client) reconnect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, closeAll := range c.closers {
		closeAll()
	}
}
