package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/cluster"
	"github.com/podctl/podctl/runtime/cluster/certificates"
	"github.com/podctl/podctl/runtime/kubeletapi"
)

// nodeCertificates are the certificates of a node.
type nodeCertificates struct {
	client *cluster.Client
	// serve returns the serving certificate of a handshake. serving keeps it, and is nil if it is not requested from
	// the API server.
	serve   kubeletapi.Certificates
	serving *certificates.Rotation
}

// openCertificates reads the certificates of a node.
func (n *node) openCertificates() (err error) {
	n.certificates.client = n.client
	dir := kubeletapi.CertificateDir(n.member.Layout.Root)
	switch s := &n.Server; {
	case s.CertFile != "":
		n.certificates.serve, err = kubeletapi.FromFiles(s.CertFile, s.KeyFile, n.member.Log)
	case s.RotateCertificates:
		err = n.certificates.request(certificates.Settings{
			Dir: dir, Node: n.NodeName, Addresses: n.manager.addresses,
			Config:  func(*tls.Certificate) (*rest.Config, error) { return rest.CopyConfig(n.client.Config), nil },
			Changed: func() {}, Log: n.member.Log,
		})
	default:
		var ips []net.IP
		for _, ip := range n.NodeIPs {
			ips = append(ips, ip.AsSlice())
		}
		n.certificates.serve, err = kubeletapi.SelfSigned(n.member.Layout.Root, []string{n.NodeName}, ips, n.member.Now)
	}
	return err
}

// request requests the serving certificate from the API server. Until it is signed, the node's server refuses
// connections, as that of a kubelet.
func (c *nodeCertificates) request(s certificates.Settings) (err error) {
	c.serving, err = certificates.New(s)
	c.serve = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if pair := c.serving.Current(); pair != nil {
			return pair, nil
		}
		return nil, errors.New("the node has no serving certificate")
	}
	return err
}

// run replaces the certificates before they expire, until the context ends.
func (c *nodeCertificates) run(ctx context.Context) {
	var parts sync.WaitGroup
	for _, r := range []*certificates.Rotation{c.client.Rotation, c.serving} {
		if r != nil {
			parts.Go(func() { r.Run(ctx) })
		}
	}
	parts.Wait()
}

// describe describes the certificates. A kubeconfig with a token has no client certificate.
func (c *nodeCertificates) describe() []api.Certificate {
	var all []api.Certificate
	if r := c.client.Rotation; r != nil {
		all = append(all, describeRotation("client", r.State()))
	} else if cert, err := c.client.Certificate(); cert != nil || err != nil {
		all = append(all, describeCertificate("client", cert, err))
	}
	if c.serving != nil {
		return append(all, describeRotation("serving", c.serving.State()))
	}
	cert, err := c.serve.Leaf()
	return append(all, describeCertificate("serving", cert, err))
}

// describeRotation describes a certificate that the API server signs.
func describeRotation(use string, s certificates.State) api.Certificate {
	d := describeCertificate(use, s.Certificate, nil)
	d.Rotates, d.Error = true, s.Failure
	d.Request, d.Requested, d.Approved = s.Request, s.Since, s.Approved
	return d
}

// describeCertificate describes a certificate; nil if there is none.
func describeCertificate(use string, cert *x509.Certificate, err error) api.Certificate {
	d := api.Certificate{Use: use}
	switch {
	case err != nil:
		d.Error = err.Error()
	case cert != nil:
		d.Subject, d.Expires = cert.Subject.String(), cert.NotAfter
	}
	return d
}
