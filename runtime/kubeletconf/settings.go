package kubeletconf

import (
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
	// problem is the reason why the value is invalid.
	problem error
}

// settings returns all settings: those of the configurations, and then those of flags, which take precedence.
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
	merged, origins := f.merged()
	for _, s := range f.walk(merged, "", origins) {
		put(s)
	}
	for _, s := range f.flags() {
		put(s)
	}
	for _, r := range slices.Concat(All(), f.distribution) {
		if _, isSet := byName[r.name()]; r.Default != "" && !isSet {
			put(setting{row: &r, name: r.name(), text: r.Default, origin: defaultOrigin})
		}
	}
	return all
}

// defaultOrigin is the origin of values of a kubelet that has no such setting.
const defaultOrigin = "default of a kubelet"

// merged merges the configurations as JSON merge patches (kubelet: mergeKubeletConfigurations), and returns the last
// file of each field of the first level.
func (f *Files) merged() (merged map[string]any, origins map[string]string) {
	merged, origins = map[string]any{}, map[string]string{}
	for _, c := range f.documents {
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
			all = append(all, setting{name: at, origin: origins[top]})
		default:
			s := setting{row: row, name: row.name(), origin: origins[top]}
			if s.text, s.problem = row.Form.read(value); s.problem != nil || s.isSet() {
				all = append(all, s)
			}
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
		return form.parse(fmt.Sprint(value))
	}
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
		if err != nil || len(value) != 1 {
			return "", fmt.Errorf("the value of %s must be a text", key)
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
		key, value, effect := taint["key"], taint["value"], taint["effect"]
		if key == nil || effect == nil {
			return "", errors.New("must have a key and an effect in each taint")
		}
		text := fmt.Sprint(key)
		if value != nil && value != "" {
			text += "=" + fmt.Sprint(value)
		}
		texts = append(texts, fmt.Sprintf("%s:%v", text, effect))
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
