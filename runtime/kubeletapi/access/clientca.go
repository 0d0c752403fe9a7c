package access

import (
	stdx509 "crypto/x509"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"

	"k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/client-go/util/cert"

	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/runtime/safefs"
)

// caMax limits the size of the file with certificate authorities, in bytes.
const caMax = 1 << 20

// clientCAs are the certificate authorities of clients. The file is read again when it changes.
type clientCAs struct {
	path string
	log  *slog.Logger

	mu sync.Mutex
	// verify are the options to verify a certificate of a client. They are from the file that had the state read.
	verify stdx509.VerifyOptions
	read   fs.FileInfo
}

// load reads the file if it has changed. It keeps the last valid content.
func (c *clientCAs) load() error {
	info, err := os.Stat(c.path)
	if err == nil && isSame(c.read, info) {
		return nil
	}
	c.read = info
	pool, err := readPool(c.path)
	if err != nil {
		return fmt.Errorf("the certificate authorities of clients: %w", err)
	}
	c.verify = x509.DefaultVerifyOptions()
	c.verify.Roots = pool
	return nil
}

// options returns the present options to verify a certificate.
func (c *clientCAs) options() (stdx509.VerifyOptions, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.read != nil
	if err := c.load(); err != nil && known {
		c.log.Warn("a changed file cannot be used; its previous content stays in effect", "error", err.Error())
	}
	return c.verify, true
}

// isSame reports whether a file has not changed.
func isSame(before, now fs.FileInfo) bool {
	return before != nil && now.ModTime().Equal(before.ModTime()) && now.Size() == before.Size() &&
		os.SameFile(before, now)
}

func readPool(path string) (*stdx509.CertPool, error) {
	f, err := safefs.OpenTrusted(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := input.ReadAtMost(f, caMax)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	pool, err := cert.NewPoolFromBytes(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return pool, nil
}
