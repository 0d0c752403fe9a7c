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

// Change is one field that differs. If it is sensitive, its values are left out.
type Change struct {
	Path      string `json:"path"`
	Before    string `json:"before"`
	After     string `json:"after"`
	Sensitive bool   `json:"sensitive,omitempty"`
}

// Diff lists the differences between two versions of a definition, field by field, and counts the equal fields.
type Diff struct {
	Changes   []Change
	Unchanged int
}

// Text returns the change in one line.
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

// String formats a change for users: image: a -> b.
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

// Decode parses a tree stored as JSON; false if there is none.
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

// Trees returns the differences between two projections, ordered by path. Entries of lists are matched by their key
// field, as kubectl's patches do.
func Trees(before, after map[string]any) Diff {
	return Divided(before, after, func(string) bool { return false })
}

// Divided is like Trees. Below the paths that divides selects, it lists an added or removed value by its parts.
func Divided(before, after map[string]any, divides func(path string) bool) Diff {
	c := comparison{divides: divides}
	c.compareMaps("", before, Plain(after))
	return c.diff
}

// Plain converts a tree to JSON and back, so that both sides have the same number and struct types.
func Plain(tree map[string]any) map[string]any {
	text, err := json.Marshal(tree)
	if err != nil {
		return tree
	}
	again, _ := Decode(string(text))
	return again
}

// comparison compares two trees.
type comparison struct {
	diff Diff
	// divides reports whether an added or removed value at a path is listed by its parts.
	divides func(path string) bool
}

func (c *comparison) compareMaps(path string, before, after map[string]any) {
	for _, key := range keysOf(before, after) {
		c.compareValues(strings.TrimPrefix(path+"."+key, "."), before[key], after[key])
	}
}

// keysOf returns the sorted keys of two maps.
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
		names, now := valueText(namesOf(before)), valueText(namesOf(after))
		if len(c.diff.Changes) == known && names != now {
			// Only the order differs.
			c.diff.Changes = append(c.diff.Changes, Change{Path: path, Before: names, After: now})
		}
		return
	}
	c.diff.Changes = append(c.diff.Changes, leafChange(path, before, after))
}

// divided reports whether an added or removed value is listed by its parts.
func (c *comparison) divided(path string, before, after any) bool {
	return (before == nil || after == nil) && c.divides(path)
}

// compareKeyed compares two lists whose entries have names: env[A], ports[http].
func (c *comparison) compareKeyed(path string, before, after map[string]any) {
	for _, key := range keysOf(before, after) {
		c.compareValues(fmt.Sprintf("%s[%s]", path, key), before[key], after[key])
	}
}

// namesOf returns the names of a list's entries in their order.
func namesOf(value any) []string {
	list, _ := value.([]any)
	names := make([]string, 0, len(list))
	for _, entry := range list {
		name, _ := keyOf(entry)
		names = append(names, name)
	}
	return names
}

// keyed turns a list of named entries into a map by name; a missing list becomes an empty map.
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

// leafChange returns the change of one value. Digests stand for secret values and are not shown.
func leafChange(path string, before, after any) Change {
	c := Change{Path: path, Before: valueText(before), After: valueText(after)}
	if digest.IsSecret(c.Before) || digest.IsSecret(c.After) {
		c.Before, c.After, c.Sensitive = "", "", true
	}
	return c
}

// sameSecret reports whether two values are digests of secret values that are not known to differ.
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

// plainJSON formats a value as JSON for users, without escaping < and >.
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
