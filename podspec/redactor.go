package podspec

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec/redaction"
)

// NewRedactor returns a redactor of the Secrets of pods; a pod that is nil has none.
func NewRedactor(pods ...*Desired) *redaction.Redactor {
	var values [][]byte
	for _, d := range pods {
		if d != nil {
			values = append(values, d.Objects.SecretValues()...)
		}
	}
	return redaction.New(values...)
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
		if !isSecretDigest(string(s.Data[key])) {
			values = append(values, s.Data[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.StringData)) {
		values = append(values, []byte(s.StringData[key]))
	}
	return values
}
