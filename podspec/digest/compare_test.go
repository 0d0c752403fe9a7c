package digest

import "testing"

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want Sameness
	}{
		{"v1:a", "v1:a", Same},
		{"v1:a", "v1:b", Different},
		{"v1:a", "v2:a:k:x", Different},
		{"v2:a:k:x", "v2:a:k:x", Same},
		{"v2:a:k:x", "v2:a:k:y", Different},
		{"v2:a:k:x", "v2:a:other:y", Unknown},
		{"v2:a:k:x", "v2:a:none:", Unknown},
		{"v2:a:none:", "v2:a:none:", Unknown},
		{"v2:a:k:x", "v2:b:other:y", Different},
		{"incomplete", "sha256:a:k:x", Different},
		{"", "", Same},
	} {
		if got := Compare(c.a, c.b); got != c.want {
			t.Errorf("%q and %q: %d, want %d", c.a, c.b, got, c.want)
		}
		if got := Compare(c.b, c.a); got != c.want {
			t.Errorf("%q and %q: %d, want %d", c.b, c.a, got, c.want)
		}
	}
}
