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

// Digest identifies what is wanted: the pod with its defaults, and the ConfigMaps
// and Secrets it uses. Two manifests with the same digest ask for the same pod; digest.Compare
// compares digests of different keys. The digest of no pod is empty.
func (d *Desired) Digest() string {
	if d == nil {
		return ""
	}
	return d.Once("digest", func() string {
		open := d.text(func(digest.SecretRef, []byte) string { return "" })
		sum := sha256.Sum256([]byte(open))
		return digest.SealAll("sha256:"+hex.EncodeToString(sum[:]), d.secretDigests(slices.Sorted(maps.Keys(d.Objects.Secrets))))
	})
}

// secretDigests are the digests of all values of Secrets that are there, by the names of Secret and key.
func (d *Desired) secretDigests(names []string) []digest.Named {
	var digests []digest.Named
	for _, name := range names {
		secret := d.Objects.Secrets[name]
		if secret == nil {
			continue
		}
		data := secret.Data
		for _, key := range slices.Sorted(maps.Keys(data)) {
			digests = append(digests, digest.Named{Name: name + "/" + key, Digest: d.SecretDigest(digest.SecretRef{Name: name, Key: key}, data[key])})
		}
	}
	return digests
}

// Once returns what a function computes of the pod, and keeps it under a key. Where the pod
// may still change, it computes it each time.
func (d *Desired) Once(key string, compute func() string) string { return d.memo.get(key, compute) }

// memo keeps what was computed of a pod that does not change any more.
type memo struct {
	lock   sync.Mutex
	values map[string]string
}

func newMemo() *memo { return &memo{values: map[string]string{}} }

// forget drops what was computed with another key.
func (m *memo) forget() {
	if m == nil {
		return
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	clear(m.values)
}

// get computes a value once; without a memo, each time.
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

// Seal makes a digest of something that holds secret values with the pod's key: open is
// the version and digest of all that is not secret.
func (d *Desired) Seal(open string, secrets []byte) string {
	return d.usedKey().Seal(open, d.id(), secrets)
}

// UseKey sets the key of the digests that stand for values of Secrets. Digests made
// with another key cannot be compared with them. A pod that New returned may be in use elsewhere.
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

// usedKey is the key of digests; nil if none is set.
func (d *Desired) usedKey() *digest.Key {
	if d.key == nil {
		return nil
	}
	return d.key.Load()
}
