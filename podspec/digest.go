package podspec

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/podctl/podctl/podspec/digest"
)

// Digest identifies the wanted state: the pod with its defaults, and the ConfigMaps and Secrets it uses. Manifests with
// the same digest describe the same pod. digest.Compare compares digests of different keys. The digest of nil is empty.
func (d *Desired) Digest() string {
	if d == nil {
		return ""
	}
	return d.Once("digest", func() string {
		open := d.text(func(digest.SecretRef, []byte) string { return "" })
		sum := sha256.Sum256([]byte(open))
		secrets := slices.Sorted(maps.Keys(d.Objects.Secrets))
		return digest.SealAll("sha256:"+hex.EncodeToString(sum[:]), d.secretDigests(secrets))
	})
}

// secretDigests returns the digests of all values of the named Secrets that exist, with the names of Secret and key.
func (d *Desired) secretDigests(names []string) []digest.Named {
	var digests []digest.Named
	for _, name := range names {
		secret := d.Objects.Secrets[name]
		if secret == nil {
			continue
		}
		data := secret.Data
		for _, key := range slices.Sorted(maps.Keys(data)) {
			value := d.SecretDigest(digest.SecretRef{Name: name, Key: key}, data[key])
			digests = append(digests, digest.Named{Name: name + "/" + key, Digest: value})
		}
	}
	return digests
}

// Once returns the result of compute and caches it under key. For a pod that may still change, it computes it every
// time.
func (d *Desired) Once(key string, compute func() string) string { return d.memo.get(key, compute) }

// memo caches values computed from a pod that no longer changes.
type memo struct {
	lock   sync.Mutex
	values map[string]string
}

func newMemo() *memo { return &memo{values: map[string]string{}} }

// forget drops the values computed with another key.
func (m *memo) forget() {
	if m == nil {
		return
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	clear(m.values)
}

// get computes a value once, or every time if m is nil.
func (m *memo) get(key string, compute func() string) string {
	if m == nil {
		return compute()
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	if _, ok := m.values[key]; !ok {
		m.values[key] = compute()
	}
	return m.values[key]
}

// Seal returns a digest with the pod's key of data with secret values. open is the version and digest of everything
// that is not secret.
func (d *Desired) Seal(open string, secrets []byte) string {
	return d.usedKey().Seal(open, d.id(), secrets)
}

// UseKey sets the key of the digests that replace values of Secrets. They cannot be compared with digests of another
// key. A pod from New may be in use by other goroutines.
func (d *Desired) UseKey(key *digest.Key) {
	if d == nil {
		return
	}
	if d.key == nil {
		d.key = &atomic.Pointer[digest.Key]{}
	}
	if d.key.Swap(key) != key {
		d.memo.forget()
	}
}

// usedKey returns the key of digests, or nil if none is set.
func (d *Desired) usedKey() *digest.Key {
	if d.key == nil {
		return nil
	}
	return d.key.Load()
}
