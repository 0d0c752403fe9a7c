package state

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// digestKeyBytes is the length of the key.
const digestKeyBytes = 32

// KeyFile holds the key of the digests that replace values of Secrets. It is created once and never leaves the machine.
// Losing it restarts nothing, but existing digests can no longer be compared.
type KeyFile struct{ layout Layout }

// Path returns the file of the key.
func (k KeyFile) Path() string { return filepath.Join(k.layout.Root, "digest.key") }

// Read reads the key. If none exists, it returns a random key that is valid only for this process, because no digest
// can exist yet.
func (k KeyFile) Read() (*digest.Key, error) {
	key, err := k.Stored()
	if key != nil || err != nil {
		return key, err
	}
	secret, err := newKey()
	return digest.NewKey(secret), err
}

// Make creates the key unless one exists.
func (k KeyFile) Make() error {
	if key, err := k.Stored(); key != nil || err != nil {
		return err
	}
	return safefs.Wrapf(safefs.Cause(k.write()), "creating the key of digests %s", k.Path())
}

// Stored reads the key. It returns nil without an error if none exists.
func (k KeyFile) Stored() (*digest.Key, error) {
	secret, err := k.layout.dir().Read(k.Path(), digestKeyBytes, safefs.CheckPrivate)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && len(secret) != digestKeyBytes {
		err = fmt.Errorf("%w: it has %d bytes, %d are expected", ErrDamaged, len(secret), digestKeyBytes)
	}
	if errors.Is(err, ErrDamaged) {
		err = fmt.Errorf("%w; remove it: podctl makes another one, and no container restarts", err)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the key of digests %s: %w", k.Path(), safefs.Cause(err))
	}
	return digest.NewKey(secret), nil
}

// known returns the stored key, or nil if it cannot be used. The code that creates digests reports the error.
func (k KeyFile) known() *digest.Key {
	key, err := k.Stored()
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

// unfinishedKey is the prefix for the name of a key that is being written.
const unfinishedKey = ".digest.key"

// Sweep removes leftovers of processes that were killed while they created the key. A process that is still creating
// one will find the existing key.
func (k KeyFile) Sweep() error {
	if made, err := k.layout.dir().Exists(k.Path()); err != nil || !made {
		return err
	}
	entries, err := k.layout.dir().Entries(k.layout.Root)
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), unfinishedKey) {
			err = errors.Join(err, k.layout.dir().Remove(filepath.Join(k.layout.Root, entry.Name())))
		}
	}
	return safefs.Wrapf(err, "removing unfinished keys of digests")
}

// write creates the file under its final name only when it is complete. It keeps a key that another process created
// meanwhile, because digests of two keys cannot be compared.
func (k KeyFile) write() error {
	secret, err := newKey()
	unfinished := filepath.Join(k.layout.Root, unfinishedKey+rand.Text())
	if err == nil {
		err = k.layout.dir().Create(unfinished, secret, 0o600, statedir.Durable)
	}
	if err != nil {
		return err
	}
	err = k.layout.dir().In(k.Path(), func(root *os.Root, name string) error {
		return root.Link(filepath.Base(unfinished), name)
	})
	if made, lookErr := k.layout.dir().Exists(k.Path()); err != nil && made && lookErr == nil {
		err = nil
	}
	return errors.Join(err, k.layout.dir().Remove(unfinished), k.layout.dir().SyncDir(k.layout.Root, statedir.Durable))
}
