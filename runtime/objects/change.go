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

// Outcome is the result of storing an object, in kubectl's words.
type Outcome string

// The outcomes.
const (
	Created    Outcome = "created"
	Configured Outcome = "configured"
	Unchanged  Outcome = "unchanged"
)

// Change is the effect of storing one object.
type Change struct {
	Key     state.ObjectKey
	Outcome Outcome
	// Fields are the paths of the differences, without values.
	Fields []string
	// Texts are the values of a ConfigMap that differ.
	Texts []Text
	// Notes are sentences about the object for the user.
	Notes []string

	// kept is the object in its new stored form.
	kept *podspec.Object
}

// Text is a value of a ConfigMap before and after; empty if there is none.
type Text struct{ Path, Before, After string }

// FrozenError reports a change that is not allowed.
type FrozenError struct {
	Key   state.ObjectKey
	Field string
}

// Error names the fix.
func (e *FrozenError) Error() string {
	return fmt.Sprintf("%s: %s cannot change: delete it and apply it again", e.Key, e.Field)
}

// RedactedError reports that a Secret contains the text that podctl prints in place of a value.
type RedactedError struct {
	Key  state.ObjectKey
	Data string
}

// Error names the fix.
func (e *RedactedError) Error() string {
	return fmt.Sprintf("%s: the value of key %s is the placeholder that podctl prints instead of values: "+
		"set the real value", e.Key, e.Data)
}

// IsRefusal reports whether the object itself causes the error, and not the store.
func IsRefusal(err error) bool {
	frozen, redacted, taken := (*FrozenError)(nil), (*RedactedError)(nil), (*service.TakenError)(nil)
	return errors.As(err, &frozen) || errors.As(err, &redacted) || errors.As(err, &taken)
}

// IsFinal reports whether an object stays refused until it or the stored one changes. A port or an address in use may
// become free.
func IsFinal(err error) bool {
	taken := (*service.TakenError)(nil)
	return IsRefusal(err) && !errors.As(err, &taken)
}

// KeepsOwner reports whether an object that is applied by hand (owner is empty) still belongs to a source of the agent,
// because it comes from the same file. Standard input (-) is no file.
func KeepsOwner(ownerBefore, fileBefore, owner, file string) bool {
	if owner != "" || ownerBefore == "" || fileBefore == "" || fileBefore == "-" {
		return false
	}
	return SameFile(fileBefore, file)
}

// SameFile reports whether two paths lead to one file. Equal paths do, even if the file no longer exists.
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
	change := Change{
		Key:     key,
		Outcome: Configured,
		Fields:  fields,
		Texts:   textsThatDiffer(before.ConfigMap, after.ConfigMap),
	}
	return change, frozen(key, before, fields)
}

// textsThatDiffer returns the values in which two ConfigMaps differ. Values of Secrets are never returned.
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

// frozen refuses changes that the API server refuses: of an immutable object, and of the type of a Secret
// (ValidateConfigMapUpdate, ValidateSecretUpdate).
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

// fieldsThatDiffer returns the paths in which two objects of a kind differ.
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
		binary := keysThatDiffer("binaryData", before.ConfigMap.BinaryData, after.ConfigMap.BinaryData)
		fields = append(fields, binary...)
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

// serviceFields returns the paths in which two Services differ, if podctl uses the field.
func serviceFields(before, after *v1.ServiceSpec) []string {
	var fields []string
	for path, pair := range map[string][2]any{
		"spec.selector":                 {before.Selector, after.Selector},
		"spec.type":                     {before.Type, after.Type},
		"spec.ports":                    {before.Ports, after.Ports},
		"spec.clusterIPs":               {before.ClusterIPs, after.ClusterIPs},
		"spec.sessionAffinity":          {before.SessionAffinity, after.SessionAffinity},
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
