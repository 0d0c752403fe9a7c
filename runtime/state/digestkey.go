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

// digestKeyBytes is the length of the key of digests.
const digestKeyBytes = 32

// KeyFile holds the key of the digests that stand for values of Secrets. It is made
// once and never leaves the machine. Losing it restarts nothing: what it was made for can
// then no longer be compared.
type KeyFile struct{ layout Layout }

// Path is the file of the key.
func (k KeyFile) Path() string { return filepath.Join(k.layout.Root, "digest.key") }

// Read reads the key. Where none was made yet it is one that is good for this process alone:
// nothing that is known of can have been digested with another.
func (k KeyFile) Read() (*digest.Key, error) {
	key, err := k.Stored()
	if key != nil || err != nil {
		return key, err
	}
	secret, err := newKey()
	return digest.NewKey(secret), err
}

// Make makes the key unless there is one.
func (k KeyFile) Make() error {
	if key, err := k.Stored(); key != nil || err != nil {
		return err
	}
	if err := k.write(); err != nil {
		return fmt.Errorf("making the key of digests %s: %w", k.Path(), safefs.Cause(err))
	}
	return nil
}

// Stored reads the key; nil without an error where none was made yet.
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

// known is the stored key; nil also where it cannot be used, which whoever makes digests reports.
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

// unfinishedKey begins the name of a key that is being made.
const unfinishedKey = ".digest.key"

// Sweep removes what a process left that was killed while it made the key. Whoever is still making one finds that there is a key.
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
	if err != nil {
		return fmt.Errorf("removing unfinished keys of digests: %w", err)
	}
	return nil
}

// write gives the file its name when it is complete, and leaves one that another
// process made meanwhile: digests of two keys cannot be compared.
func (k KeyFile) write() error {
	secret, err := newKey()
	unfinished := filepath.Join(k.layout.Root, unfinishedKey+rand.Text())
	if err == nil {
		err = k.layout.dir().Create(unfinished, secret, 0o600, statedir.Durable)
	}
	if err != nil {
		return err
	}
	err = k.layout.dir().In(k.Path(), func(root *os.Root, name string) error { return root.Link(filepath.Base(unfinished), name) })
	if made, lookErr := k.layout.dir().Exists(k.Path()); err != nil && made && lookErr == nil {
		err = nil
	}
	return errors.Join(err, k.layout.dir().Remove(unfinished), k.layout.dir().SyncDir(k.layout.Root, statedir.Durable))
}
