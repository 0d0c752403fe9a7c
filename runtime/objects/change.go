package objects

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/service"
	"github.com/podctl/podctl/runtime/state"
)

// Outcome is what becomes of an object that is stored, in kubectl's words.
type Outcome string

// What can become of an object.
const (
	Created    Outcome = "created"
	Configured Outcome = "configured"
	Unchanged  Outcome = "unchanged"
)

// Change is what becomes of one object.
type Change struct {
	Key     state.ObjectKey
	Outcome Outcome
	// Fields are the paths of what differs, without values.
	Fields []string
	// Texts are the values of a ConfigMap that differ.
	Texts []Text
	// Notes are sentences about the object that the user should read.
	Notes []string

	// kept is the object as it is stored then.
	kept *podspec.Object
}

// Text is a value of a ConfigMap before and after; empty where there is none.
type Text struct{ Path, Before, After string }

// FrozenError says that an object cannot become what a manifest says.
type FrozenError struct {
	Key   state.ObjectKey
	Field string
}

// Error says what to do.
func (e *FrozenError) Error() string {
	return fmt.Sprintf("%s: %s cannot change: delete it and apply it again", e.Key, e.Field)
}

// RedactedError says that a Secret has what podctl prints in the place of a value.
type RedactedError struct {
	Key  state.ObjectKey
	Data string
}

// Error says what to do.
func (e *RedactedError) Error() string {
	return fmt.Sprintf("%s: its key %s has what podctl prints in the place of values: give it its value", e.Key, e.Data)
}

// IsRefusal reports whether an error is of the object itself, and not of the store.
func IsRefusal(err error) bool {
	frozen, redacted, taken := (*FrozenError)(nil), (*RedactedError)(nil), (*service.TakenError)(nil)
	return errors.As(err, &frozen) || errors.As(err, &redacted) || errors.As(err, &taken)
}

// IsFinal reports whether an object stays refused until somebody changes it or the stored one. A port or an address that is taken
// may become free.
func IsFinal(err error) bool {
	taken := (*service.TakenError)(nil)
	return IsRefusal(err) && !errors.As(err, &taken)
}

// StaysKept reports whether something that a source of the agent brought stays the source's when it is applied by hand (keeper is
// empty): it is applied from the same file. Standard input (-) is no file.
func StaysKept(keeperBefore, fileBefore, keeper, file string) bool {
	if keeper != "" || keeperBefore == "" || fileBefore == "" || fileBefore == "-" {
		return false
	}
	return SameFile(fileBefore, file)
}

// SameFile reports whether two paths lead to one file. Paths that are equal do, also where there is no file any more.
func SameFile(a, b string) bool {
	one, oneErr := filepath.Abs(a)
	other, otherErr := filepath.Abs(b)
	if err := errors.Join(oneErr, otherErr); err == nil && one == other {
		return true
	}
	here, hereErr := os.Stat(a)
	there, thereErr := os.Stat(b)
	return errors.Join(hereErr, thereErr) == nil && os.SameFile(here, there)
}

// changeOf compares an object with the stored one, which is nil if there is none.
func changeOf(key state.ObjectKey, before, after *podspec.Object) (Change, error) {
	if before == nil {
		return Change{Key: key, Outcome: Created}, nil
	}
	fields := fieldsThatDiffer(before, after)
	if len(fields) == 0 {
		return Change{Key: key, Outcome: Unchanged}, nil
	}
	return Change{Key: key, Outcome: Configured, Fields: fields, Texts: textsThatDiffer(before.ConfigMap, after.ConfigMap)}, frozen(key, before, fields)
}

// textsThatDiffer are the values in which two ConfigMaps differ. Those of Secrets are never told.
func textsThatDiffer(before, after *v1.ConfigMap) []Text {
	if before == nil || after == nil {
		return nil
	}
	var texts []Text
	for _, path := range keysThatDiffer("data", before.Data, after.Data) {
		key := strings.TrimPrefix(path, "data.")
		texts = append(texts, Text{Path: path, Before: before.Data[key], After: after.Data[key]})
	}
	return texts
}

// frozen refuses changes that the API server refuses: of an immutable object, and of the type of
// a Secret (ValidateConfigMapUpdate, ValidateSecretUpdate).
func frozen(key state.ObjectKey, before *podspec.Object, fields []string) error {
	immutable := false
	switch {
	case before.ConfigMap != nil:
		immutable = before.ConfigMap.Immutable != nil && *before.ConfigMap.Immutable
	case before.Secret != nil:
		immutable = before.Secret.Immutable != nil && *before.Secret.Immutable
	}
	for _, field := range fields {
		if field == "type" {
			return &FrozenError{Key: key, Field: "its type"}
		}
		if immutable && field != "metadata.labels" && field != "metadata.annotations" {
			return &FrozenError{Key: key, Field: field + " of an immutable " + key.Kind}
		}
	}
	return nil
}

// fieldsThatDiffer are the paths in which two objects of a kind differ.
func fieldsThatDiffer(before, after *podspec.Object) []string {
	var fields []string
	differs := func(path string, a, b any) {
		if !equality.Semantic.DeepEqual(a, b) {
			fields = append(fields, path)
		}
	}
	a, b := before.Meta(), after.Meta()
	differs("metadata.labels", a.Labels, b.Labels)
	differs("metadata.annotations", a.Annotations, b.Annotations)
	switch {
	case after.ConfigMap != nil:
		fields = append(fields, keysThatDiffer("data", before.ConfigMap.Data, after.ConfigMap.Data)...)
		fields = append(fields, keysThatDiffer("binaryData", before.ConfigMap.BinaryData, after.ConfigMap.BinaryData)...)
		differs("immutable", before.ConfigMap.Immutable, after.ConfigMap.Immutable)
	case after.Secret != nil:
		fields = append(fields, keysThatDiffer("data", before.Secret.Data, after.Secret.Data)...)
		differs("type", before.Secret.Type, after.Secret.Type)
		differs("immutable", before.Secret.Immutable, after.Secret.Immutable)
	case after.Service != nil:
		fields = append(fields, serviceFields(&before.Service.Spec, &after.Service.Spec)...)
	default:
		differs("spec", before.Claim.Spec, after.Claim.Spec)
		differs("volume", before.Volume, after.Volume)
	}
	return fields
}

func keysThatDiffer[T any](path string, before, after map[string]T) []string {
	all := maps.Clone(before)
	if all == nil {
		all = map[string]T{}
	}
	maps.Copy(all, after)
	var fields []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		a, had := before[key]
		b, has := after[key]
		if had != has || !equality.Semantic.DeepEqual(a, b) {
			fields = append(fields, path+"."+key)
		}
	}
	return fields
}

// serviceFields are the paths in which two Services differ, as far as something follows from them.
func serviceFields(before, after *v1.ServiceSpec) []string {
	var fields []string
	for path, pair := range map[string][2]any{
		"spec.selector": {before.Selector, after.Selector}, "spec.type": {before.Type, after.Type}, "spec.ports": {before.Ports, after.Ports},
		"spec.clusterIPs": {before.ClusterIPs, after.ClusterIPs}, "spec.sessionAffinity": {before.SessionAffinity, after.SessionAffinity},
		"spec.publishNotReadyAddresses": {before.PublishNotReadyAddresses, after.PublishNotReadyAddresses},
		"spec.externalName":             {before.ExternalName, after.ExternalName},
	} {
		if !equality.Semantic.DeepEqual(pair[0], pair[1]) {
			fields = append(fields, path)
		}
	}
	slices.Sort(fields)
	return fields
}
