package fieldpath

import (
	"maps"
	"slices"
)

// EachLeaf calls visit for every value of a decoded JSON document without parts, including empty maps and lists. Maps
// are visited in the order of their keys. Null values are omitted.
func EachLeaf(value any, path string, visit func(path string, value any)) {
	switch value := value.(type) {
	case nil:
		return
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			EachLeaf(value[key], Join(path, key), visit)
		}
		if len(value) > 0 {
			return
		}
	case []any:
		for i, item := range value {
			EachLeaf(item, Index(path, i), visit)
		}
		if len(value) > 0 {
			return
		}
	}
	visit(path, value)
}
