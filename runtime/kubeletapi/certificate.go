package kubeletapi

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	certutil "k8s.io/client-go/util/cert"

	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// Certificates returns the serving certificate for a handshake.
type Certificates func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// Leaf returns the certificate that a handshake gets now.
func (c Certificates) Leaf() (*x509.Certificate, error) {
	pair, err := c(&tls.ClientHelloInfo{})
	if err != nil {
		return nil, err
	}
	if pair.Leaf != nil {
		return pair.Leaf, nil
	}
	if len(pair.Certificate) == 0 {
		return nil, errors.New("there is no certificate")
	}
	return x509.ParseCertificate(pair.Certificate[0])
}

// pemMax limits the size in bytes of a file with a certificate or a key.
const pemMax = 1 << 20

// FromFiles serves the certificate of two files in PEM format (--tls-cert-file, --tls-private-key-file). It reads them
// again when they change, and keeps the last valid pair (kubelet: ReloadKubeletServerCertificateFile). It returns an
// error if there is no valid pair at the start.
func FromFiles(certFile, keyFile string, log *slog.Logger) (Certificates, error) {
	f := &pairFiles{names: [2]string{certFile, keyFile}, log: log}
	if _, err := f.current(); err != nil {
		return nil, err
	}
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.current() }, nil
}

// pairFiles are a certificate and its key as files.
type pairFiles struct {
	names [2]string
	log   *slog.Logger

	mu sync.Mutex
	// pair was read from files with the given times of change.
	pair *tls.Certificate
	read [2]time.Time
}

// current returns the pair, and reads it first if a file has changed.
func (f *pairFiles) current() (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var now [2]time.Time
	for i, name := range f.names {
		if info, err := os.Stat(name); err == nil {
			now[i] = info.ModTime()
		}
	}
	if f.pair != nil && now == f.read {
		return f.pair, nil
	}
	f.read = now
	pair, err := readPair(f.names[0], f.names[1])
	switch {
	case err == nil:
		f.pair = pair
	case f.pair == nil:
		return nil, fmt.Errorf("the serving certificate of the node: %w", err)
	default:
		f.log.Warn("the serving certificate of the node has changed and cannot be used; the previous one stays",
			"error", err.Error())
	}
	return f.pair, nil
}

func readPair(certFile, keyFile string) (*tls.Certificate, error) {
	cert, err := readFile(certFile)
	if err != nil {
		return nil, err
	}
	key, err := readFile(keyFile)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", certFile, keyFile, err)
	}
	return &pair, nil
}

// readFile reads a regular file of the user. Opening a pipe would wait for its writer.
func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > pemMax {
		return nil, fmt.Errorf("%s is not a regular file of at most %d bytes", name, pemMax)
	}
	return os.ReadFile(name)
}

// The files of the self-signed certificate below the state directory, named as in a kubelet (cmd/kubelet/app:
// InitializeTLS).
const (
	pkiDir   = "pki"
	certName = "kubelet.crt"
	keyName  = "kubelet.key"
)

// CertificateDir returns the directory of a node's certificates below its state directory.
func CertificateDir(stateDir string) string { return filepath.Join(stateDir, pkiDir) }

// SelfSigned serves a self-signed certificate for the names and addresses, the name of the node first. It is stored in
// the state directory and used until it expires after a year, or the names change.
func SelfSigned(stateDir string, names []string, addresses []net.IP, now func() time.Time) (Certificates, error) {
	s := &selfSigned{dir: statedir.Dir{Path: stateDir}, names: names, addresses: addresses, now: now}
	if _, err := s.current(); err != nil {
		return nil, err
	}
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.current() }, nil
}

type selfSigned struct {
	dir       statedir.Dir
	names     []string
	addresses []net.IP
	now       func() time.Time

	mu   sync.Mutex
	pair *tls.Certificate
}

// current returns the certificate, and creates one if there is no valid one.
func (s *selfSigned) current() (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isValid(s.pair) {
		return s.pair, nil
	}
	cert, key, err := s.stored()
	if err != nil {
		return nil, fmt.Errorf("the self-signed certificate of the node: %w", err)
	}
	if pair, pairErr := tls.X509KeyPair(cert, key); pairErr == nil && s.isValid(&pair) {
		s.pair = &pair
		return s.pair, nil
	}
	if s.pair, err = s.create(); err != nil {
		return nil, fmt.Errorf("creating the self-signed certificate of the node: %w", err)
	}
	return s.pair, nil
}

// isValid reports whether a certificate has not expired and is for all names and addresses.
func (s *selfSigned) isValid(pair *tls.Certificate) bool {
	if pair == nil || s.now().After(pair.Leaf.NotAfter) || s.now().Before(pair.Leaf.NotBefore) {
		return false
	}
	names := slices.Clone(s.names)
	for _, ip := range s.addresses {
		names = append(names, ip.String())
	}
	return !slices.ContainsFunc(names, func(name string) bool { return pair.Leaf.VerifyHostname(name) != nil })
}

// stored reads the files of the certificate and of its key. Missing files are empty.
func (s *selfSigned) stored() (cert, key []byte, err error) {
	cert, err = s.dir.Read(s.path(certName), pemMax)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	key, err = s.dir.Read(s.path(keyName), pemMax, safefs.CheckPrivate)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	return cert, key, nil
}

// create creates and stores a certificate. The key is stored first: a certificate without its key is replaced at the
// next start.
func (s *selfSigned) create() (*tls.Certificate, error) {
	cert, key, err := certutil.GenerateSelfSignedCertKey(s.names[0], s.addresses, s.names[1:])
	if err != nil {
		return nil, err
	}
	err = s.dir.Replace(s.path(keyName+".tmp"), s.path(keyName), key, 0o600, statedir.Durable)
	if err == nil {
		err = s.dir.Replace(s.path(certName+".tmp"), s.path(certName), cert, 0o600, statedir.Durable)
	}
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	return &pair, err
}

func (s *selfSigned) path(name string) string { return filepath.Join(s.dir.Path, pkiDir, name) }
