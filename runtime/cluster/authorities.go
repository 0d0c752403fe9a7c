package cluster

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
)

// authorities are the certificate authorities of a kubeconfig that the API server's certificate is verified with.
type authorities []*x509.Certificate

// authoritiesOf returns the authorities of a configuration. There are none if the machine's own authorities are used.
// It skips what it cannot read, because the connection reports that.
func authoritiesOf(c *rest.Config) (all authorities) {
	text := c.CAData
	if len(text) == 0 && c.CAFile != "" {
		text, _ = readTrusted(c.CAFile) // the connection reports the error
	}
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return all
		}
		if cert, parseErr := x509.ParseCertificate(block.Bytes); parseErr == nil {
			all = append(all, cert)
		}
	}
}

// check returns an error if all authorities have expired: no connection is possible then.
func (a authorities) check(now time.Time) error {
	var last *x509.Certificate
	for _, one := range a {
		if !now.After(one.NotAfter) {
			return nil
		}
		if last == nil || one.NotAfter.After(last.NotAfter) {
			last = one
		}
	}
	if last == nil {
		return nil
	}
	return &ExpiredError{What: "certificate authority", Name: last.Subject.CommonName, At: last.NotAfter}
}

// explain returns the fault of the kubeconfig that causes an error of all requests, or the error itself.
func (c *Client) explain(all authorities, now time.Time, err error) error {
	if errors.As(err, new(x509.UnknownAuthorityError)) {
		if fault := all.check(now); fault != nil {
			return fault
		}
	}
	if errors.Is(err, errUnauthorized) {
		cert, _ := c.Certificate() // nil if it cannot be read
		if fault := expired(cert, now); fault != nil {
			return fmt.Errorf("%w (401)", fault)
		}
	}
	return err
}

// ExpiredError reports a certificate of a kubeconfig that has expired.
type ExpiredError struct {
	// What is the kind of the certificate, Name the name in it, and At the time of its end.
	What, Name string
	At         time.Time
}

// Error returns the text of the error.
func (e *ExpiredError) Error() string {
	return fmt.Sprintf("the %s %s has expired at %s: renew it", e.What, e.Name, e.At.UTC().Format(time.RFC3339))
}

// expired returns an error if a client certificate has expired. The certificate may be nil.
func expired(cert *x509.Certificate, now time.Time) error {
	if cert == nil || !now.After(cert.NotAfter) {
		return nil
	}
	return &ExpiredError{What: "client certificate of", Name: cert.Subject.CommonName, At: cert.NotAfter}
}
