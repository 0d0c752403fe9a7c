package podspec

import "strings"

// SysctlName turns the form of a sysctl's name with slashes into the one with dots; in it, dots
// are part of a name and become slashes (kubelet: NormalizeName).
func SysctlName(name string) string {
	if i := strings.IndexAny(name, "./"); i < 0 || name[i] == '.' {
		return name
	}
	return strings.NewReplacer(".", "/", "/", ".").Replace(name)
}
