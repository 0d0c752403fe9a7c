package podspec

import (
	"strings"

	v1 "k8s.io/api/core/v1"
)

// WithoutSecrets is a copy of what is desired that may leave the machine: digests
// stand for the values of Secrets. Hashes and digests of the copy are those of
// the original, so that the same plan is made of it; it cannot be applied.
func (d *Desired) WithoutSecrets() *Desired {
	without := *d
	without.Redacted = true
	without.Objects = d.Objects.withoutSecrets()
	return &without
}

func (o Objects) withoutSecrets() Objects {
	without := Objects{ConfigMaps: o.ConfigMaps}
	for name, s := range o.Secrets {
		hidden := s.DeepCopy()
		hidden.StringData, hidden.Annotations = nil, nil
		for key, value := range s.Data {
			hidden.Data[key] = []byte(secretDigest(value))
		}
		if without.Secrets == nil {
			without.Secrets = map[string]*v1.Secret{}
		}
		without.Secrets[name] = hidden
	}
	return without
}

// hiddenAlready tells that a value is the digest of a value that was left out.
func hiddenAlready(value []byte) bool {
	return strings.HasPrefix(string(value), SecretDigestPrefix) && len(value) == len(SecretDigestPrefix)+2*secretDigestBytes
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
