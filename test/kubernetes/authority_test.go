package kubernetes

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// authority is the certificate authority of a cluster. Its files are in one directory.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newAuthority writes ca.crt, ca.key, and sa.key and sa.pub, which sign and check the tokens of service accounts.
func newAuthority(t *testing.T, dir string) *authority {
	t.Helper()
	a := &authority{dir: dir, key: newKey(t), cert: &x509.Certificate{
		Subject: pkix.Name{CommonName: "cluster"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}}
	a.write(t, "ca", a.cert, a.key)
	signer := newKey(t)
	write(t, a.path("sa.key"), keyText(t, signer))
	public, err := x509.MarshalPKIXPublicKey(signer.Public())
	if err != nil {
		t.Fatal(err)
	}
	write(t, a.path("sa.pub"), pemText("PUBLIC KEY", public))
	return a
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

// subject is a user with its groups.
type subject struct {
	name   string
	groups []string
}

// issue writes NAME.crt and NAME.key for a user and its groups. Servers also have addresses and names.
func (a *authority) issue(t *testing.T, name string, user subject, ips []net.IP, names ...string) {
	t.Helper()
	a.write(t, name, &x509.Certificate{
		Subject: pkix.Name{CommonName: user.name, Organization: user.groups}, IPAddresses: ips, DNSNames: names,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, newKey(t))
}

// write signs a certificate, and writes it with its key.
func (a *authority) write(t *testing.T, name string, c *x509.Certificate, key *ecdsa.PrivateKey) {
	t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.NotBefore, c.NotAfter = serial, time.Now().Add(-time.Minute), time.Now().Add(24*time.Hour)
	signed, err := x509.CreateCertificate(rand.Reader, c, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, a.path(name+".crt"), pemText("CERTIFICATE", signed))
	write(t, a.path(name+".key"), keyText(t, key))
}

// kubeconfig issues a certificate and writes NAME.conf, with which its user connects to a server.
func (a *authority) kubeconfig(t *testing.T, server, name, user string, groups ...string) string {
	t.Helper()
	a.issue(t, name, subject{user, groups}, nil)
	data := func(file string) string { return base64.StdEncoding.EncodeToString([]byte(read(t, a.path(file)))) }
	path := a.path(name + ".conf")
	write(t, path, fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: u, user: {client-certificate-data: %s, client-key-data: %s}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, server, data("ca.crt"), data(name+".crt"), data(name+".key")))
	return path
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func keyText(t *testing.T, key *ecdsa.PrivateKey) string {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pemText("EC PRIVATE KEY", der)
}

func pemText(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
