package observe

import (
	"sync"

	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/runtime/state"
)

// Digests has the key of the digests of Secrets.
type Digests struct {
	layout state.Layout

	mu  sync.Mutex
	key *digest.Key
}

// NewDigests returns the Digests of a state directory.
func NewDigests(layout state.Layout) *Digests { return &Digests{layout: layout} }

// Keep creates the machine's key of digests if it has none. Digests made from then on can be compared with later ones,
// so Keep must be called before any are made.
func (d *Digests) Keep() error {
	if err := d.layout.DigestKey().Make(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	key, err := d.layout.DigestKey().Read()
	if err == nil && (d.key == nil || d.key.ID() != key.ID()) {
		d.key = key
	}
	return err
}

// Key returns the machine's key of digests, or if it has none, one for this process.
func (d *Digests) Key() (key *digest.Key, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.key == nil {
		d.key, err = d.layout.DigestKey().Read()
	}
	return d.key, err
}
