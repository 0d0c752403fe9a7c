package podspec

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec/digest"
)

// WithoutSecrets returns a copy that may leave the machine: digests stand for the values of
// Secrets. Hashes and digests of the copy are those of the original, so that the same plan is
// made of it. It cannot be applied.
func (d *Desired) WithoutSecrets() *Desired {
	without := *d
	without.Redacted = true
	without.Objects = d.objectsWith(d.SecretDigest)
	return &without
}

// objectsWith are the objects with something else in the place of secret values.
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

// SecretDigest returns the digest that stands for a secret value. In a copy without secrets
// it is what stands there already.
func (d *Desired) SecretDigest(ref digest.SecretRef, value []byte) string {
	switch {
	case !d.Redacted:
		return d.usedKey().Secret(d.id(), ref, value)
	case strings.HasPrefix(string(value), digest.SecretPrefix):
		return string(value)
	}
	// It was written by hand.
	return (*digest.Key)(nil).Secret("", digest.SecretRef{}, nil)
}

// PullDigest stands for the credentials in the pod's pull secrets; empty if it has none.
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

// SameAs reports whether two manifests ask for the same pod with the same objects, the
// values of Secrets included. Neither may be a copy without secrets.
func (d *Desired) SameAs(other *Desired) bool {
	plain := func(_ digest.SecretRef, value []byte) string { return string(value) }
	return d.text(plain) == other.text(plain)
}

// text is the pod and its objects as JSON, with something in the place of secret values.
func (d *Desired) text(standIn func(ref digest.SecretRef, value []byte) string) string {
	text, err := json.Marshal(struct {
		Pod     *v1.Pod
		Objects Objects
	}{d.Pod, d.objectsWith(standIn)})
	if err != nil {
		return ""
	}
	return string(text)
}

// UsesSecret reports whether a volume's content comes from a Secret.
func UsesSecret(vol *v1.Volume) bool {
	return slices.ContainsFunc(VolumeReferences(vol, ""), func(r Reference) bool { return r.Kind == KindSecret })
}

// SecretValues lists the values of the Secrets, in the order of their names and keys.
// Digests that stand for values are left out.
func (o Objects) SecretValues() [][]byte {
	var values [][]byte
	for _, name := range slices.Sorted(maps.Keys(o.Secrets)) {
		values = append(values, valuesOf(o.Secrets[name])...)
	}
	return values
}

func valuesOf(s *v1.Secret) [][]byte {
	if s == nil {
		return nil
	}
	var values [][]byte
	for _, key := range slices.Sorted(maps.Keys(s.Data)) {
		if !digest.IsSecret(string(s.Data[key])) {
			values = append(values, s.Data[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.StringData)) {
		values = append(values, []byte(s.StringData[key]))
	}
	return values
}
