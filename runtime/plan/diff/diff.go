package diff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/podctl/podctl/podspec/digest"
)

// Change is one field that differs. Values of a sensitive one are left out.
type Change struct {
	Path      string `json:"path"`
	Before    string `json:"before"`
	After     string `json:"after"`
	Sensitive bool   `json:"sensitive,omitempty"`
}

// Diff is what differs between two versions of a definition, field by
// field, and how many fields are the same.
type Diff struct {
	Changes   []Change
	Unchanged int
}

// Text is the one line that names what changed.
func (d Diff) Text() string {
	if len(d.Changes) == 0 {
		return "its definition changed"
	}
	first := d.Changes[0].String()
	if more := len(d.Changes) - 1; more > 0 {
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

// Decode reads a tree that was kept as JSON; false when there is none.
func Decode(text string) (map[string]any, bool) {
	if text == "" {
		return nil, false
	}
	var tree map[string]any
	if err := json.Unmarshal([]byte(text), &tree); err != nil {
		return nil, false
	}
	return tree, true
}

// Trees lists what differs between two projections, in the order of
// their paths. Entries of lists are matched by the key that names them, as
// kubectl's patches do.
func Trees(before, after map[string]any) Diff {
	return Divided(before, after, func(string) bool { return false })
}

// Divided is like Trees, and lists what came or went below some paths by its parts.
func Divided(before, after map[string]any, divides func(path string) bool) Diff {
	c := comparison{divides: divides}
	c.compareMaps("", before, Plain(after))
	return c.diff
}

// Plain takes a tree through JSON, so that numbers and nested types are the
// same on both sides.
func Plain(tree map[string]any) map[string]any {
	text, err := json.Marshal(tree)
	if err != nil {
		return tree
	}
	again, _ := Decode(string(text))
	return again
}

// comparison is one walk through two trees.
type comparison struct {
	diff Diff
	// divides reports of which paths the parts are listed even where only one side has any.
	divides func(path string) bool
}

func (c *comparison) compareMaps(path string, before, after map[string]any) {
	for _, key := range keysOf(before, after) {
		c.compareValues(strings.TrimPrefix(path+"."+key, "."), before[key], after[key])
	}
}

// keysOf are the keys of two maps in their order.
func keysOf(a, b map[string]any) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}

func (c *comparison) compareValues(path string, before, after any) {
	if equalJSON(before, after) || sameSecret(before, after) {
		c.diff.Unchanged++
		return
	}
	beforeMap, okBefore := before.(map[string]any)
	afterMap, okAfter := after.(map[string]any)
	if okBefore && okAfter || c.divided(path, before, after) && (okBefore || okAfter) {
		c.compareMaps(path, beforeMap, afterMap)
		return
	}
	beforeList, okBefore := keyed(before)
	afterList, okAfter := keyed(after)
	if okBefore && okAfter {
		known := len(c.diff.Changes)
		c.compareKeyed(path, beforeList, afterList)
		if names, now := valueText(namesOf(before)), valueText(namesOf(after)); len(c.diff.Changes) == known && names != now {
			// The order alone differs.
			c.diff.Changes = append(c.diff.Changes, Change{Path: path, Before: names, After: now})
		}
		return
	}
	c.diff.Changes = append(c.diff.Changes, leafChange(path, before, after))
}

// divided reports whether a value that came or went is listed by its parts.
func (c *comparison) divided(path string, before, after any) bool {
	return (before == nil || after == nil) && c.divides(path)
}

// compareKeyed compares two lists whose entries have names: env[A], ports[http].
func (c *comparison) compareKeyed(path string, before, after map[string]any) {
	for _, key := range keysOf(before, after) {
		c.compareValues(fmt.Sprintf("%s[%s]", path, key), before[key], after[key])
	}
}

// namesOf are the names of a list's entries in their order.
func namesOf(value any) []string {
	list, _ := value.([]any)
	names := make([]string, 0, len(list))
	for _, entry := range list {
		name, _ := keyOf(entry)
		names = append(names, name)
	}
	return names
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
	if digest.IsSecret(c.Before) || digest.IsSecret(c.After) {
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
	text, err := plainJSON(value)
	if err != nil {
		return "?"
	}
	return text
}

// plainJSON is a value as JSON for people: < and > stand as they are.
func plainJSON(value any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return strings.TrimSuffix(b.String(), "\n"), err
}

func equalJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
