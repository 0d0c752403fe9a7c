package node

import (
	"strings"
	"testing"
	"unicode"

	"github.com/distribution/reference"
)

// FuzzFullName: whatever an archive calls its image, the name it is loaded under is one
// that can be asked for, and is its own full name.
func FuzzFullName(f *testing.F) {
	for _, seed := range []string{"web:1", "registry.local/web", "1.5", "docker.io/library/web@sha256:" + strings.Repeat("0", 64), "../../etc:1", "a\x1b[0m:1", "UPPER/x:1", "-x/y:1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		full := fullName(name)
		if full == "" {
			return
		}
		if _, err := reference.ParseNormalizedNamed(full); err != nil || fullName(full) != full {
			t.Errorf("%q becomes %q (%v), which becomes %q", name, full, err, fullName(full))
		}
		if strings.IndexFunc(full, func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' }) >= 0 || strings.Contains(full, "/.") {
			t.Errorf("%q becomes %q", name, full)
		}
	})
}
