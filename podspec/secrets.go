package podspec

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/podctl/podctl/podspec/digest"
)

// WithoutSecrets returns a copy that may leave the machine: digests replace the values of Secrets. The copy has the
// same hashes and digests as the original, so it results in the same plan. It cannot be applied.
func (d *Desired) WithoutSecrets() *Desired {
	without := *d
	without.Redacted = true
	without.Objects = d.objectsWith(d.SecretDigest)
	return &without
}

// Reveal puts values of Secrets in place of the digests of a copy without secrets. If they are not the values of these
// digests, it changes nothing and returns false.
func Reveal(d *Desired, secrets map[string]*v1.Secret) bool {
	with := *d
	with.Redacted, with.Objects.Secrets = false, secrets
	if !equality.Semantic.DeepEqual(with.WithoutSecrets().Objects.Secrets, d.Objects.Secrets) {
		return false
	}
	d.Redacted, d.Objects.Secrets = false, secrets
	return true
}

// KnowsSecrets reports whether a redactor with the values of these versions of a pod has all Secrets that messages of
// the pod may repeat. One version with all values is enough, unless it was rebuilt and is not a user's. A version may
// be nil.
func KnowsSecrets(versions ...*Desired) bool {
	return slices.ContainsFunc(versions, knowsSecrets)
}

func knowsSecrets(d *Desired) bool {
	if d == nil || d.Rebuilt || d.MemorySecrets && d.Redacted {
		return false
	}
	for name := range d.Unread {
		if d.MemorySecrets && name.Kind == KindSecret {
			return false
		}
	}
	return true
}

// objectsWith returns the objects with all secret values replaced.
func (d *Desired) objectsWith(standIn func(ref digest.SecretRef, value []byte) string) Objects {
	without := Objects{ConfigMaps: d.Objects.ConfigMaps, Volumes: d.Objects.Volumes}
	for name, s := range d.Objects.Secrets {
		hidden := s.DeepCopy()
		hidden.StringData, hidden.Annotations = nil, nil
		for key, value := range s.Data {
			hidden.Data[key] = []byte(standIn(digest.SecretRef{Name: name, Key: key}, value))
		}
		if without.Secrets == nil {
			without.Secrets = map[string]*v1.Secret{}
		}
		without.Secrets[name] = hidden
	}
	return without
}

// SecretDigest returns the digest that replaces a secret value. In a copy without secrets, that is the value itself.
func (d *Desired) SecretDigest(ref digest.SecretRef, value []byte) string {
	switch {
	case !d.Redacted:
		return d.usedKey().Secret(d.id(), ref, value)
	case strings.HasPrefix(string(value), digest.SecretPrefix):
		return string(value)
	}
	// The value was written by hand.
	return (*digest.Key)(nil).Secret("", digest.SecretRef{}, nil)
}

// PullDigest returns a digest of the credentials in the pod's pull secrets, or an empty string if there are none.
func (d *Desired) PullDigest() string {
	names := make([]string, 0, len(d.Pod.Spec.ImagePullSecrets))
	for _, ref := range d.Pod.Spec.ImagePullSecrets {
		names = append(names, ref.Name)
	}
	if digests := d.secretDigests(names); len(digests) > 0 {
		return digest.SealAll("pull:v1", digests)
	}
	return ""
}

// id names the pod in digests.
func (d *Desired) id() string { return d.Pod.Namespace + "/" + d.Pod.Name }

// SameAs reports whether two manifests describe the same pod with the same objects, including the values of Secrets. If
// one is a copy without secrets, their digests are compared.
func (d *Desired) SameAs(other *Desired) bool {
	if d.Redacted || other.Redacted {
		return d.text(d.SecretDigest) == other.text(other.SecretDigest)
	}
	plain := func(_ digest.SecretRef, value []byte) string { return string(value) }
	return d.text(plain) == other.text(plain)
}

// text returns the pod and its objects as JSON, with all secret values replaced.
func (d *Desired) text(standIn func(ref digest.SecretRef, value []byte) string) string {
	text, err := json.Marshal(struct {
		Pod     *v1.Pod
		Objects Objects
	}{d.Compared(), d.objectsWith(standIn)})
	if err != nil {
		return ""
	}
	return string(text)
}

// UsesSecret reports whether a volume has content from a Secret.
func UsesSecret(vol *v1.Volume) bool {
	return slices.ContainsFunc(VolumeReferences(vol, ""), func(r Reference) bool { return r.Kind == KindSecret })
}

// SecretValues returns the values of the Secrets in the order of their names and keys. It omits digests that replace
// values, and the times of tokens, because many texts have such times.
func (o Objects) SecretValues() [][]byte {
	var values [][]byte
	for _, name := range slices.Sorted(maps.Keys(o.Secrets)) {
		values = append(values, valuesOf(name, o.Secrets[name])...)
	}
	return values
}

func valuesOf(name string, s *v1.Secret) [][]byte {
	if s == nil {
		return nil
	}
	var values [][]byte
	for _, key := range slices.Sorted(maps.Keys(s.Data)) {
		isTime := IsToken(KindSecret, name) && key != TokenKey
		if !isTime && !digest.IsSecret(string(s.Data[key])) {
			values = append(values, s.Data[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.StringData)) {
		values = append(values, []byte(s.StringData[key]))
	}
	return values
}
