package snapshot

import "testing"

func TestParseHash(t *testing.T) {
	for text, want := range map[string]string{"08e45cbd0": "8e45cbd0", "8e45cbd0": "8e45cbd0", "": "", "xyz": "", "0": ""} {
		if got := parseHash(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
