package fieldpath

import (
	"strconv"
	"strings"
)

// Split splits a field path into its parts: spec.containers[0].resources.limits[cpu] has the parts spec, containers, 0,
// resources, limits, cpu. Brackets may contain dots.
func Split(path string) []string {
	var parts []string
	for path != "" {
		switch i := strings.IndexAny(path, ".["); {
		case i < 0:
			return append(parts, path)
		case path[i] == '.':
			parts = appendPart(parts, path[:i])
			path = path[i+1:]
		default:
			parts = appendPart(parts, path[:i])
			end := strings.IndexByte(path[i:], ']')
			if end < 0 {
				return append(parts, path[i+1:])
			}
			parts = append(parts, path[i+1:i+end])
			path = strings.TrimPrefix(path[i+end+1:], ".")
		}
	}
	return parts
}

func appendPart(parts []string, part string) []string {
	if part == "" {
		return parts
	}
	return append(parts, part)
}

// Parent returns a path without its last part, which must be a field's name.
func Parent(path string) string { return path[:max(strings.LastIndexByte(path, '.'), 0)] }

// Join adds the name of a field to a path.
func Join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// Key adds the key of a map to a path. A key may contain dots.
func Key(path, key string) string {
	if strings.ContainsAny(key, ".[") {
		return path + "[" + key + "]"
	}
	return Join(path, key)
}

// Index adds the index of a list's item to a path.
func Index(path string, i int) string {
	return path + "[" + strconv.Itoa(i) + "]"
}
