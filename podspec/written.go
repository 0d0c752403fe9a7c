package podspec

import "strings"

// asksNothing tells that a value without parts is an empty list or map. Of a volume even
// an empty one says something: its kind.
func asksNothing(value any, f Field) bool {
	switch value.(type) {
	case map[string]any, []any:
		return !strings.HasPrefix(f.Path, "volume")
	}
	return false
}
