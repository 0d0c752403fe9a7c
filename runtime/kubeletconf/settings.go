package kubeletconf

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/podctl/podctl/podspec/fieldpath"
)

// setting is the value of one row.
type setting struct {
	row *Row
	// name is the name in messages; row is nil if podctl does not know it.
	name, text, origin string
	// note is what happens to a field that has no row, instead of an effect.
	note string
	// problem is the reason why the value is invalid.
	problem error
}

// settings returns all settings: those of the configurations, and then those of flags, which take precedence. k3s
// writes some of its keys to the first configuration at its next start.
func (f *Files) settings() []setting {
	byName := map[string]int{}
	var all []setting
	put := func(s setting) {
		if i, known := byName[s.name]; known {
			all[i] = s
			return
		}
		byName[s.name] = len(all)
		all = append(all, s)
	}
	k, file := f.k3sSettings()
	keys, _ := f.table.parse(k.inFile())
	for _, s := range keys {
		put(s)
	}
	merged, origins := f.merged()
	for _, s := range f.walk(merged, "", origins) {
		if _, replaced := byName[s.name]; !replaced || !isK3sDefaults(s.origin) {
			put(s)
		}
	}
	for _, s := range f.flags() {
		put(s)
	}
	putDefaults := func(origin string, rows []Row) {
		for _, r := range rows {
			if _, isSet := byName[r.name()]; r.Default != "" && !isSet {
				put(setting{row: &r, name: r.name(), text: r.Default, origin: origin})
			}
		}
	}
	putDefaults("default of "+productOf(file), f.k3sDefaults())
	putDefaults(defaultOrigin, All())
	return all
}

// defaultOrigin is the origin of values of a kubelet that has no such setting.
const defaultOrigin = "default of a kubelet"

// merged merges the configurations as JSON merge patches (kubelet: mergeKubeletConfigurations), and returns the last
// file of each field of the first level.
func (f *Files) merged() (merged map[string]any, origins map[string]string) {
	merged, origins = map[string]any{}, map[string]string{}
	documents := slices.Clone(f.documents)
	if _, file := f.k3sSettings(); file != "" {
		slices.SortStableFunc(documents, func(a, b configuration) int {
			return strings.Compare(k3sOrder(f, a.file), k3sOrder(f, b.file))
		})
	}
	for _, c := range documents {
		mergePatch(merged, c.tree)
		for key := range c.tree {
			origins[key] = c.file
		}
	}
	return merged, origins
}

func mergePatch(into, patch map[string]any) {
	for key, value := range patch {
		tree, isTree := value.(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isTree:
			below, was := into[key].(map[string]any)
			if !was {
				below = map[string]any{}
				into[key] = below
			}
			mergePatch(below, tree)
		default:
			into[key] = value
		}
	}
}

// walk returns the settings of a configuration, without empty values.
func (f *Files) walk(tree map[string]any, path string, origins map[string]string) (all []setting) {
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		at, value := fieldpath.Join(path, key), tree[key]
		top, _, _ := strings.Cut(at, ".")
		sub, isTree := value.(map[string]any)
		switch row := f.table.rowOf(at); {
		case f.table.isDivided(at) && isTree:
			all = append(all, f.walk(sub, at, origins)...)
		case f.table.isDivided(at):
			all = append(all, setting{name: at, origin: origins[top], problem: errors.New("must be a map")})
		case row == nil || row.Path != at:
			all = append(all, setting{name: at, origin: origins[top], note: unknownField})
		default:
			for _, field := range row.Form.otherFields(value) {
				field.name, field.origin = fieldpath.Join(at, field.name), origins[top]
				all = append(all, field)
			}
			s := setting{row: row, name: row.name(), origin: origins[top]}
			s.text, s.problem = row.Form.read(value)
			if s.text = cmp.Or(s.text, row.Empty); s.problem != nil || s.isSet() {
				all = append(all, s)
			}
		}
	}
	return all
}

const unknownField = "A kubelet 1.36 does not have this field either, and ignores it."

// otherFields returns the fields of taints that are not in their text, with their names below the list. The other lists
// and maps have no fields, or no effect.
func (form Form) otherFields(value any) (all []setting) {
	list, _ := value.([]any)
	if form != Taints {
		return nil
	}
	found := map[string]bool{"key": true, "value": true, "effect": true}
	for _, one := range list {
		taint, _ := one.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(taint)) {
			note := unknownField
			if name == "timeAdded" {
				note = "podctl does not set this time."
			}
			if !found[name] {
				all = append(all, setting{name: name, note: note})
			}
			found[name] = true
		}
	}
	return all
}

// isSet reports whether a value in a file is a setting. Empty values mean the default of the kubelet.
func (s *setting) isSet() bool {
	return s.text != "" && (s.row.Form != Duration || s.text != "0s")
}

// read returns the text of a value of a configuration.
func (form Form) read(value any) (string, error) {
	switch value := value.(type) {
	case map[string]any:
		return form.readPairs(value)
	case []any:
		return form.readList(value)
	default:
		if form == List || form == Pairs || form == Thresholds || form == Taints {
			return "", errors.New("must be a list or a map")
		}
		if err := form.checkType(value); err != nil {
			return "", err
		}
		return form.parse(fmt.Sprint(value))
	}
}

// checkType checks the type of a value in JSON. A number, true and false are no texts.
func (form Form) checkType(value any) error {
	_, isText := value.(string)
	_, isBoolean := value.(bool)
	switch {
	case (form == Text || form == Duration) && !isText:
		return errors.New("must be a text: put the value in quotes")
	case form == Number && (isText || isBoolean):
		return errors.New("must be a number without quotes")
	case form == Boolean && !isBoolean:
		return errors.New("must be true or false without quotes")
	}
	return nil
}

func (form Form) readPairs(tree map[string]any) (string, error) {
	sign := "="
	switch {
	case form == Tree && len(tree) == 0:
		return "", nil
	case form == Tree:
		return "{…}", nil
	case form == Thresholds:
		sign = "<"
	case form != Pairs:
		return "", errors.New("must not be a map")
	}
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		value, err := textsOf(tree[key])
		_, isNumber := tree[key].(json.Number)
		if err != nil || len(value) != 1 || isNumber {
			return "", fmt.Errorf("must have a text in quotes as the value of %s", key)
		}
		pairs = append(pairs, key+sign+value[0])
	}
	return strings.Join(pairs, ","), nil
}

func (form Form) readList(list []any) (string, error) {
	switch {
	case form == Tree && len(list) == 0:
		return "", nil
	case form == Tree:
		return "[…]", nil
	case form == List:
		texts, err := textsOf(list)
		return strings.Join(texts, ","), err
	case form == Taints:
		return taintsText(list)
	}
	return "", errors.New("must not be a list")
}

func taintsText(list []any) (string, error) {
	var texts []string
	for _, one := range list {
		taint, _ := one.(map[string]any)
		key, isText := taint["key"].(string)
		effect, hasEffect := taint["effect"].(string)
		value, isValue := taint["value"].(string)
		if !isText || !hasEffect || taint["value"] != nil && !isValue {
			return "", errors.New("must have a key and an effect in each taint, and texts as their values")
		}
		if value != "" {
			key += "=" + value
		}
		texts = append(texts, key+":"+effect)
	}
	return strings.Join(texts, ","), nil
}

// parse checks the text of a value, and returns it in one form for equal values.
func (form Form) parse(text string) (string, error) {
	switch form {
	case Number:
		if _, err := strconv.ParseInt(text, 10, 64); err != nil {
			return "", errors.New("must be a whole number")
		}
	case Boolean:
		value, err := strconv.ParseBool(text)
		if err != nil {
			return "", errors.New("must be true or false")
		}
		return strconv.FormatBool(value), nil
	case Duration:
		value, err := time.ParseDuration(text)
		if err != nil {
			return "", errors.New("must be a duration such as 30s")
		}
		return value.String(), nil
	case Tree, Text, List, Pairs, Thresholds, Taints:
	}
	return text, nil
}
