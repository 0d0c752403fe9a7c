package containerd

import (
	"strings"
	"testing"
	"unicode"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// FuzzFullName checks that the full name for any name in an archive can be used to request the image, and is its own
// full name.
func FuzzFullName(f *testing.F) {
	for _, seed := range []string{
		"web:1", "registry.local/web", "1.5", "docker.io/library/web@sha256:" + strings.Repeat("0", 64),
		"../../etc:1", "a\x1b[0m:1", "UPPER/x:1", "-x/y:1",
	} {
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

// FuzzArchiveName checks that an image with any name in an archive is loaded under no other digest and under no id.
// Errors about it must be safe for a terminal.
func FuzzArchiveName(f *testing.F) {
	own := digest.FromString("own")
	for _, seed := range []string{
		"web:1", "1.5", own.String(), own.Encoded(), "r.local/web@" + own.String(),
		"r.local/web:1@sha256:" + strings.Repeat("0", 64), "a@b@c", "@", "R/x@" + own.String(), "a\x1b[0m:1",
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, given string, containerds bool) {
		annotation := ocispec.AnnotationRefName
		if containerds {
			annotation = images.AnnotationImageName
		}
		name, err := nameOf(ocispec.Descriptor{Digest: own, Annotations: map[string]string{annotation: given}})
		if err != nil {
			if strings.ContainsFunc(err.Error(), unicode.IsControl) {
				t.Errorf("%q", err)
			}
			return
		}
		if name != "" && fullName(name) != name {
			t.Errorf("%q becomes %q, which is not its full name", given, name)
		}
		if _, claimed, has := strings.Cut(name, "@"); (has && claimed != own.String()) || isID(name) {
			t.Errorf("%q becomes %q", given, name)
		}
	})
}
