package podspec

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// sizeLimit is the field that is honoured of some volumes only.
const sizeLimit = "volume.emptyDir.sizeLimit"

// inMemory tells that the emptyDir which a field belongs to lies in memory.
func (c *classifier) inMemory(path string) bool {
	medium := splitPath(joinPath(parent(path), "medium"))
	return c.o.report.Scalar(medium...) == string(v1.StorageMediumMemory)
}

// asksNothing tells that a value without parts is an empty list or map. Of a volume even
// an empty one says something: its kind.
func asksNothing(value any, f Field) bool {
	switch value.(type) {
	case map[string]any, []any:
		return !strings.HasPrefix(f.Path, "volume")
	}
	return false
}

// walkLeaves calls visit for every value that has no parts of its own,
// empty maps and lists included. It goes through what was decoded and not through the
// tree of positions: merges and aliases have been replaced there as the decoder does it.
func walkLeaves(value any, path string, visit func(path string, value any)) {
	switch value := value.(type) {
	case nil:
		return
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			walkLeaves(value[key], joinPath(path, key), visit)
		}
		if len(value) > 0 {
			return
		}
	case []any:
		for i, item := range value {
			walkLeaves(item, indexed(path, i), visit)
		}
		if len(value) > 0 {
			return
		}
	}
	visit(path, value)
}
