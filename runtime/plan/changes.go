package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/podspec/spechash"
	"github.com/podctl/podctl/runtime/model"
)

// difference is what differs between two versions of a definition, field by
// field, and how many fields are the same.
type difference struct {
	changes   []Change
	unchanged int
	// divides tells of which paths the parts are listed even where only one side has any;
	// nil means none.
	divides func(path string) bool
}

// definitionChanged tells whether a container no longer is what the manifest
// says, and field by field why. A container that podctl made is judged by the
// whole definition, one that a kubelet made by the kubelet's hash: name and
// image (kubelet: containerChanged).
func (v *view) definitionChanged(spec *v1.Container, c *model.Container) (bool, difference) {
	if !spechash.Known(c.SpecHash) {
		return v.kubeletHashChanged(spec, c)
	}
	if digest.Compare(c.SpecHash, spechash.Container(v.desired, spec)) != digest.Different {
		return false, difference{}
	}
	return true, v.containerChanges(spec, c)
}

func (v *view) kubeletHashChanged(spec *v1.Container, c *model.Container) (bool, difference) {
	if c.Hash == spechash.Kubelet(spec) {
		return false, difference{}
	}
	if c.Hash == "" {
		return true, difference{changes: []Change{{Path: "hash", Before: "unreadable", After: spechash.Kubelet(spec)}}}
	}
	return true, difference{changes: []Change{{Path: "image", Before: c.Image, After: spec.Image}}}
}

// containerChanges compares what the container was made from with what is
// wanted: its own record of the definition, or the manifest applied last.
func (v *view) containerChanges(spec *v1.Container, c *model.Container) difference {
	after := spechash.ContainerProjection(v.desired, spec)
	if before, ok := decodeTree(c.Spec); ok {
		return compareTrees(before, after)
	}
	applied := v.obs.Memory.Applied
	if applied == nil || applied.Pod == nil {
		return difference{}
	}
	if ref, ok := podspec.FindContainer(applied.Pod, spec.Name); ok {
		return compareTrees(spechash.ContainerProjection(applied, ref.Container), after)
	}
	return difference{}
}

func (v *view) sandboxChanges(s *model.Sandbox) difference {
	after := spechash.SandboxProjection(v.desired)
	if before, ok := decodeTree(s.Spec); ok {
		return compareTrees(before, after)
	}
	if applied := v.obs.Memory.Applied; applied != nil && applied.Pod != nil {
		return compareTrees(spechash.SandboxProjection(applied), after)
	}
	return difference{}
}

// changeText is the one line that names what changed.
func changeText(changes []Change) string {
	if len(changes) == 0 {
		return "its definition changed"
	}
	first := changes[0].String()
	if more := len(changes) - 1; more > 0 {
		return fmt.Sprintf("%s (and %d more)", first, more)
	}
	return first
}

// String writes a change as people read it: image: a -> b.
func (c Change) String() string {
	switch {
	case c.Sensitive:
		return c.Path + ": (secret changed)"
	case c.Before == "":
		return fmt.Sprintf("%s: + %s", c.Path, c.After)
	case c.After == "":
		return fmt.Sprintf("%s: - %s", c.Path, c.Before)
	}
	return fmt.Sprintf("%s: %s -> %s", c.Path, c.Before, c.After)
}

func decodeTree(text string) (map[string]any, bool) {
	if text == "" {
		return nil, false
	}
	var tree map[string]any
	if err := json.Unmarshal([]byte(text), &tree); err != nil {
		return nil, false
	}
	return tree, true
}

// compareTrees lists what differs between two projections, in the order of
// their paths. Entries of lists are matched by the key that names them, as
// kubectl's patches do.
func compareTrees(before, after map[string]any) difference {
	var d difference
	d.compareMaps("", before, normalised(after))
	return d
}

// normalised takes a tree through JSON, so that numbers and nested types are the
// same on both sides.
func normalised(tree map[string]any) map[string]any {
	text, err := json.Marshal(tree)
	if err != nil {
		return tree
	}
	again, _ := decodeTree(string(text))
	return again
}

func (d *difference) compareMaps(path string, before, after map[string]any) {
	keys := maps.Clone(before)
	if keys == nil {
		keys = map[string]any{}
	}
	maps.Copy(keys, after)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		d.compareValues(joined(path, key), before[key], after[key])
	}
}

func joined(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func (d *difference) compareValues(path string, before, after any) {
	if equalJSON(before, after) || sameSecret(before, after) {
		d.unchanged++
		return
	}
	beforeMap, okBefore := before.(map[string]any)
	afterMap, okAfter := after.(map[string]any)
	if okBefore && okAfter || d.divided(path, before, after) && (okBefore || okAfter) {
		d.compareMaps(path, beforeMap, afterMap)
		return
	}
	beforeList, okBefore := keyed(before)
	afterList, okAfter := keyed(after)
	if okBefore && okAfter {
		d.compareKeyed(path, beforeList, afterList)
		return
	}
	d.changes = append(d.changes, leafChange(path, before, after))
}

// divided tells that a value that came or went is listed by its parts.
func (d *difference) divided(path string, before, after any) bool {
	return (before == nil || after == nil) && d.divides != nil && d.divides(path)
}

// compareKeyed compares two lists whose entries have names: env[A], ports[http].
func (d *difference) compareKeyed(path string, before, after map[string]any) {
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		d.compareValues(fmt.Sprintf("%s[%s]", path, key), before[key], after[key])
	}
}

// keyed turns a list of named entries into a map by name; a missing list is an
// empty one.
func keyed(value any) (map[string]any, bool) {
	if value == nil {
		return map[string]any{}, true
	}
	list, ok := value.([]any)
	if !ok {
		return nil, false
	}
	entries := make(map[string]any, len(list))
	for _, entry := range list {
		key, ok := keyOf(entry)
		if _, twice := entries[key]; !ok || twice {
			return nil, false
		}
		entries[key] = entry
	}
	return entries, true
}

func keyOf(entry any) (string, bool) {
	m, ok := entry.(map[string]any)
	if !ok {
		return "", false
	}
	for _, name := range []string{"name", "mountPath", "devicePath"} {
		if key, ok := m[name].(string); ok {
			return key, true
		}
	}
	return "", false
}

// leafChange is the change of one value. A digest stands for a secret value,
// which is not shown.
func leafChange(path string, before, after any) Change {
	c := Change{Path: path, Before: valueText(before), After: valueText(after)}
	if digest.ContainsSecret(c.Before) || digest.ContainsSecret(c.After) {
		c.Before, c.After, c.Sensitive = "", "", true
	}
	return c
}

// sameSecret reports whether two values are digests of secret values that are not known
// to differ.
func sameSecret(before, after any) bool {
	a, okBefore := before.(string)
	b, okAfter := after.(string)
	return okBefore && okAfter && digest.CompareSecrets(a, b) != digest.Different
}

func valueText(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return value
	case map[string]any:
		if single, ok := value["value"].(string); ok {
			return single
		}
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "?"
	}
	return string(text)
}

func equalJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
