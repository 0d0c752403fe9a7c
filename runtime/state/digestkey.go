package state

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/runtime/ownfile"
	"github.com/podctl/podctl/runtime/safefs"
)

// digestKeyBytes is the length of the key of digests.
const digestKeyBytes = 32

// DigestKeyFile holds the key of the digests that stand for values of Secrets. It is made
// once and never leaves the machine. Losing it restarts nothing: what it was made for can
// then no longer be compared.
func (l Layout) DigestKeyFile() string { return filepath.Join(l.Root, "digest.key") }

// DigestKey reads the key of digests. Where none was made yet it is one that is good for
// this process alone: nothing that is known of can have been digested with another.
func (l Layout) DigestKey() (*digest.Key, error) {
	key, err := l.StoredDigestKey()
	if key != nil || err != nil {
		return key, err
	}
	secret, err := newKey()
	return digest.NewKey(secret), err
}

// MakeDigestKey makes the key of digests unless there is one.
func (l Layout) MakeDigestKey() error {
	if key, err := l.StoredDigestKey(); key != nil || err != nil {
		return err
	}
	if err := l.writeKey(); err != nil {
		return fmt.Errorf("making the key of digests %s: %w", l.DigestKeyFile(), cause(err))
	}
	return nil
}

// StoredDigestKey reads the key of digests; nil without an error where none was made yet.
func (l Layout) StoredDigestKey() (*digest.Key, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	secret, err := readRegular(l.DigestKeyFile(), digestKeyBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = ownfile.CheckPrivate(l.DigestKeyFile())
	}
	if err == nil && len(secret) != digestKeyBytes {
		err = fmt.Errorf("%w: it has %d bytes, %d are expected", ErrDamaged, len(secret), digestKeyBytes)
	}
	if errors.Is(err, ErrDamaged) {
		err = fmt.Errorf("%w; remove it: podctl makes another one, and no container restarts", err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the key of digests %s: %w", l.DigestKeyFile(), cause(err))
	}
	return digest.NewKey(secret), nil
}

// knownKey is the stored key; nil also where it cannot be used, which whoever makes digests
// reports.
func (l Layout) knownKey() *digest.Key {
	key, err := l.StoredDigestKey()
	if err != nil {
		return nil
	}
	return key
}

func newKey() ([]byte, error) {
	secret := make([]byte, digestKeyBytes)
	if _, err := rand.Read(secret); err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return secret, nil
}

// writeKey gives the file its name when it is complete, and leaves one that another
// process made meanwhile: digests of two keys cannot be compared.
func (l Layout) writeKey() (err error) {
	secret, err := newKey()
	if err == nil {
		err = l.Prepare()
	}
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(l.Root, ".digest.key")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	_, err = f.Write(secret)
	if err = errors.Join(err, f.Chmod(0o600), f.Sync()); err != nil {
		return err
	}
	if err = os.Link(f.Name(), l.DigestKeyFile()); errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	root, err := safefs.Follow(l.Root)
	if err != nil {
		return err
	}
	return errors.Join(root.Sync(), root.Close())
}
