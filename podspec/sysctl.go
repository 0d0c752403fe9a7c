package podspec

import "strings"

// SysctlName converts a sysctl name with slashes to the form with dots. Dots in such a name become slashes (kubelet:
// NormalizeName).
func SysctlName(name string) string {
	if i := strings.IndexAny(name, "./"); i < 0 || name[i] == '.' {
		return name
	}
	return strings.NewReplacer(".", "/", "/", ".").Replace(name)
}
