package cluster

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/safefs"
)

// Limits of requests to the API server (kubelet: kubeAPIQPS, kubeAPIBurst).
const (
	requestsPerSecond = 50
	burst             = 100
)

// maxKubeconfig limits the size of a kubeconfig and of each file it names, in bytes.
const maxKubeconfig = 1 << 20

// protobuf is the encoding of requests. JSON is accepted, because custom servers may not have the other.
const protobuf = "application/vnd.kubernetes.protobuf"

// Client is a connection to an API server.
type Client struct {
	*apiclient.Client

	// Config is the configuration of the connection. It must not be changed.
	Config *rest.Config
	// Health is the health of the connection.
	Health *Health
}

// Settings configure a connection.
type Settings struct {
	// Kubeconfig is the path of a kubeconfig file. Its current context applies.
	Kubeconfig string
	// UserAgent names this program in the logs of the API server.
	UserAgent string
	// Now is the clock.
	Now func() time.Time
}

// Connect returns a client. It sends nothing. It returns an error that names the file if the kubeconfig is invalid,
// another user may change it, or its certificate has expired.
func Connect(s Settings) (*Client, error) {
	text, err := readTrusted(s.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	config, err := configOf(&s, text)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", s.Kubeconfig, err)
	}
	health := &Health{now: s.Now}
	config.Wrap(health.watch)
	config.UserAgent, config.QPS, config.Burst = s.UserAgent, requestsPerSecond, burst
	config.ContentType, config.AcceptContentTypes = protobuf, protobuf+",application/json"
	requests, err := apiclient.New(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", s.Kubeconfig, err)
	}
	return &Client{Client: requests, Config: config, Health: health}, nil
}

// configOf returns the configuration that a kubeconfig describes.
func configOf(s *Settings, text []byte) (*rest.Config, error) {
	parsed, err := clientcmd.Load(text)
	if err != nil {
		return nil, err
	}
	for _, c := range parsed.Clusters {
		c.LocationOfOrigin = s.Kubeconfig
	}
	for _, u := range parsed.AuthInfos {
		u.LocationOfOrigin = s.Kubeconfig
	}
	if err = clientcmd.ResolveLocalPaths(parsed); err != nil {
		return nil, err
	}
	if err = checkCurrent(parsed); err != nil {
		return nil, err
	}
	config, err := clientcmd.NewDefaultClientConfig(*parsed, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	return config, checkCertificate(config, s.Now())
}

// checkCurrent returns an error if the current context does not name a server. client-go would then connect to
// localhost.
func checkCurrent(c *clientcmdapi.Config) error {
	current := c.Contexts[c.CurrentContext]
	switch {
	case c.CurrentContext == "":
		return errors.New("it has no current-context")
	case current == nil:
		return fmt.Errorf("current-context: there is no context %q", c.CurrentContext)
	case c.Clusters[current.Cluster] == nil:
		return fmt.Errorf("contexts: %s: there is no cluster %q", c.CurrentContext, current.Cluster)
	case c.Clusters[current.Cluster].Server == "":
		return fmt.Errorf("clusters: %s: it has no server", current.Cluster)
	case c.AuthInfos[current.AuthInfo] == nil:
		return fmt.Errorf("contexts: %s: there is no user %q", c.CurrentContext, current.AuthInfo)
	}
	return nil
}

// checkCertificate returns an error if the client certificate cannot be read or has expired. The API server would
// only answer Unauthorized.
func checkCertificate(c *rest.Config, now time.Time) error {
	cert, err := certificateOf(c)
	if err == nil && cert != nil && now.After(cert.NotAfter) {
		err = fmt.Errorf("the client certificate of %s has expired at %s: renew it",
			cert.Subject.CommonName, cert.NotAfter.UTC().Format(time.RFC3339))
	}
	return err
}

// Certificate returns the certificate of this machine's requests, which is read again from its file. It is nil if
// requests have a token instead.
func (c *Client) Certificate() (*x509.Certificate, error) { return certificateOf(c.Config) }

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

// readTrusted reads a file that no other user may change.
func readTrusted(path string) ([]byte, error) {
	f, err := safefs.OpenTrusted(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := input.ReadAtMost(io.Reader(f), maxKubeconfig)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return text, nil
}
