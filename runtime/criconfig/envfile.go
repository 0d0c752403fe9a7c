package criconfig

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// fileValue reads one key of an environment file that an init container wrote
// into an emptyDir; false when it is optional and absent.
func fileValue(in *ContainerInput, ref *v1.FileKeySelector) (string, bool, error) {
	optional := isTrue(ref.Optional)
	text, ok := in.Files[FileKey{Volume: ref.VolumeName, Path: ref.Path}]
	if !ok {
		if optional {
			return "", false, nil
		}
		return "", false, fmt.Errorf("file %s does not exist in volume %s", ref.Path, ref.VolumeName)
	}
	values, err := parseEnvFile(string(text))
	if err != nil {
		return "", false, fmt.Errorf("file %s in volume %s: %w", ref.Path, ref.VolumeName, err)
	}
	value := values[ref.Key]
	if value == "" && !optional {
		return "", false, fmt.Errorf("file %s in volume %s has no key %s", ref.Path, ref.VolumeName, ref.Key)
	}
	return value, value != "", nil
}

// parseEnvFile reads lines of the form KEY='value'. The quotes are part of the
// form, a value may span lines, and nothing in it is interpreted
// (https://kubernetes.io/docs/concepts/containers, "environment files").
func parseEnvFile(text string) (map[string]string, error) {
	values := map[string]string{}
	for line := 1; text != ""; {
		head, rest, _ := strings.Cut(text, "\n")
		if trimmed := strings.TrimSpace(head); trimmed == "" || trimmed[0] == '#' {
			text = rest
			line++
			continue
		}
		key, value, found := strings.Cut(text, "=")
		if !found || key != strings.TrimSpace(key) || strings.Contains(key, "\n") {
			return nil, fmt.Errorf("line %d: KEY='value' is expected, without spaces before =", line)
		}
		if !strings.HasPrefix(value, "'") {
			if strings.TrimSpace(firstLine(value)) == "" || strings.HasPrefix(value, " ") {
				values[key] = ""
				_, text, _ = strings.Cut(value, "\n")
				line++
				continue
			}
			return nil, fmt.Errorf("line %d: the value must stand in single quotes", line)
		}
		inner, after, closed := strings.Cut(value[1:], "'")
		if !closed {
			return nil, fmt.Errorf("line %d: the closing quote is missing", line)
		}
		values[key] = inner
		line += strings.Count(inner, "\n") + 1
		_, text, _ = strings.Cut(after, "\n")
	}
	return values, nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
