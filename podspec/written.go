package podspec

import (
	"strings"

	v1 "k8s.io/api/core/v1"
)

// sizeLimit is the field that is honoured of some volumes only.
const sizeLimit = "volume.emptyDir.sizeLimit"

// inMemory tells that the emptyDir which a field belongs to lies in memory.
func (c *classifier) inMemory(path string) bool {
	medium := splitPath(joinPath(parent(path), "medium"))
	return scalarAt(c.o.doc.root, medium...) == string(v1.StorageMediumMemory)
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
