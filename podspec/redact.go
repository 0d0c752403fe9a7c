package podspec

import (
	"encoding/json"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// WithoutSecrets is a copy of what is desired that may leave the machine: digests
// stand for the values of Secrets. Hashes and digests of the copy are those of
// the original, so that the same plan is made of it; it cannot be applied.
func (d *Desired) WithoutSecrets() *Desired {
	without := *d
	without.Redacted = true
	without.Objects = d.objectsWith(d.secretDigest)
	return &without
}

// objectsWith are the objects with something else in the place of secret values.
func (d *Desired) objectsWith(standIn func(ref secretRef, value []byte) string) Objects {
	without := Objects{ConfigMaps: d.Objects.ConfigMaps}
	for name, s := range d.Objects.Secrets {
		hidden := s.DeepCopy()
		hidden.StringData, hidden.Annotations = nil, nil
		for key, value := range s.Data {
			hidden.Data[key] = []byte(standIn(secretRef{name, key}, value))
		}
		if without.Secrets == nil {
			without.Secrets = map[string]*v1.Secret{}
		}
		without.Secrets[name] = hidden
	}
	return without
}

// secretDigest stands for a secret value. Of a copy without secrets it is what stands
// there already.
func (d *Desired) secretDigest(ref secretRef, value []byte) string {
	switch {
	case !d.Redacted:
		return d.key.secretDigest(d.id(), ref, value)
	case strings.HasPrefix(string(value), SecretDigestPrefix):
		return string(value)
	}
	// It was written by an older podctl, or by hand.
	return (*DigestKey)(nil).secretDigest("", secretRef{}, nil)
}

// id tells pods apart in digests.
func (d *Desired) id() string { return d.Pod.Namespace + "/" + d.Pod.Name }

// Seal makes a digest of something that holds secret values with the pod's key: open is
// the version and digest of all that is not secret.
func (d *Desired) Seal(open string, secrets []byte) string { return d.key.seal(open, d.id(), secrets) }

// UseKey sets the key of the digests that stand for values of Secrets. Digests made
// with another key cannot be compared with them.
func (d *Desired) UseKey(key *DigestKey) {
	if d == nil || d.key == key {
		return
	}
	d.key = key
	if d.memo != nil {
		d.memo = newMemo()
	}
}

// SameAs reports whether two manifests ask for the same pod with the same objects, the
// values of Secrets included. Neither may be a copy without secrets.
func (d *Desired) SameAs(other *Desired) bool {
	plain := func(_ secretRef, value []byte) string { return string(value) }
	return d.text(plain) == other.text(plain)
}

// text is what is desired as JSON, with something in the place of secret values.
func (d *Desired) text(standIn func(ref secretRef, value []byte) string) string {
	text, err := json.Marshal(struct {
		Pod     *v1.Pod
		Objects Objects
	}{d.Pod, d.objectsWith(standIn)})
	if err != nil {
		return ""
	}
	return string(text)
}

// UsesSecret tells that a volume's content comes from a Secret.
func UsesSecret(vol *v1.Volume) bool {
	if vol.Secret != nil {
		return true
	}
	if vol.Projected == nil {
		return false
	}
	for i := range vol.Projected.Sources {
		if vol.Projected.Sources[i].Secret != nil {
			return true
		}
	}
	return false
}
