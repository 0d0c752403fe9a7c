package certificates

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/util/certificate"

	"github.com/podctl/podctl/runtime/safefs"
)

const (
	// CurrentClient is the name of the file with the client certificate and its key.
	CurrentClient = clientPrefix + "-current.pem"
	clientPrefix  = "kubelet-client"
	servingPrefix = "kubelet-server"
	// pemMax limits the size of a signed certificate with those of its signers, in bytes.
	pemMax = 1 << 20
)

// store is the library's store of files, in a directory that no other user may change.
type store struct {
	certificate.FileStore

	rotation *Rotation
}

func (r *Rotation) openStore() (*store, error) {
	if err := safefs.CheckDir(r.Dir); err != nil {
		return nil, err
	}
	files, err := certificate.NewFileStoreWithLogger(quiet(), r.prefix, r.Dir, r.Dir, r.CertFile, r.KeyFile)
	return &store{FileStore: files, rotation: r}, err
}

// Current returns the stored certificate. If the file cannot be used and another certificate can be requested, the
// error is that of a missing one.
func (s *store) Current() (*tls.Certificate, error) {
	r := s.rotation
	if err := s.checkFile(); err != nil {
		return nil, err
	}
	pair, err := s.FileStore.Current()
	if missing := (*certificate.NoCertKeyError)(nil); errors.As(err, &missing) {
		return nil, missing
	}
	if err != nil {
		r.failed("reading the stored certificate", err)
		missing := certificate.NoCertKeyError(err.Error())
		return nil, &missing
	}
	r.current.Store(pair)
	return pair, nil
}

// checkFile returns an error if another user could read or change the stored key.
func (s *store) checkFile() error {
	path := s.CurrentPath()
	info, err := os.Stat(path)
	if err != nil {
		return safefs.IgnoreMissing(err)
	}
	return errors.Join(safefs.CheckParents(path), safefs.CheckPrivate(path, info))
}

// Update stores a signed certificate. After an error the previous one stays.
func (s *store) Update(cert, key []byte) (*tls.Certificate, error) {
	r := s.rotation
	pair, err := s.update(cert, key)
	if err != nil {
		r.failed("storing the signed certificate", err)
		return nil, err
	}
	r.replaced(pair)
	return pair, nil
}

func (s *store) update(cert, key []byte) (*tls.Certificate, error) {
	r := s.rotation
	request := r.template()
	if request == nil {
		return nil, errors.New("the Node has no address any longer")
	}
	if err := checkPair(cert, key, request, r.usage(), time.Now()); err != nil {
		return nil, err
	}
	if err := safefs.CheckDir(r.Dir); err != nil {
		return nil, err
	}
	before, err := filepath.Glob(s.pairs())
	if err != nil {
		return nil, err
	}
	replaced := s.target()
	pair, err := s.FileStore.Update(cert, key)
	if err != nil {
		return nil, errors.Join(err, s.removeOthers(before))
	}
	// The library keeps all. A process that has just read the link still opens the replaced one.
	if err = s.removeOthers([]string{replaced, s.target()}); err != nil {
		r.Log.Warn("cannot remove old certificates", "error", err.Error())
	}
	return pair, nil
}

// target is the file that holds the current certificate.
func (s *store) target() string {
	name, _ := os.Readlink(s.CurrentPath())
	return filepath.Join(s.rotation.Dir, filepath.Base(name))
}

// pairs is the pattern of the files that the library writes.
func (s *store) pairs() string { return filepath.Join(s.rotation.Dir, s.rotation.prefix+"-2*.pem") }

// removeOthers removes all other files that the library has written.
func (s *store) removeOthers(kept []string) error {
	now, err := filepath.Glob(s.pairs())
	for _, path := range now {
		if !slices.Contains(kept, path) {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

// checkSpace returns an error if a certificate cannot be stored. A certificate that is requested without space would be
// lost, and requested again and again.
func (r *Rotation) checkSpace() error {
	// The name does not vary, because the same failure is logged once.
	f, err := os.OpenFile(filepath.Join(r.Dir, r.prefix+"-space.tmp"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, spaceNeeded))
	if err = errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name())); err != nil {
		return fmt.Errorf("there is no space for a certificate: %w", err)
	}
	return nil
}

// spaceNeeded is the size of a certificate with its key and those of its signers, in bytes.
const spaceNeeded = 16 << 10
