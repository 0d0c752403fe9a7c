package filelock

import (
	"os"
	"path/filepath"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzHolder checks that the description of the holder is one short line that is safe for a terminal, for any content
// of the file.
func FuzzHolder(f *testing.F) {
	for _, seed := range []string{"", "pid 1 (podctl apply web)\n", "\x1b[2J", "pid 1 (\xff\xfe)", "a\nb"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "x.lock")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		holder := (&File{Path: path}).readHolder()
		if holder == "" || len(holder) > 2*commandMax || !utf8.ValidString(holder) {
			t.Errorf("holder %q", holder)
		}
		for _, r := range holder {
			if unicode.IsControl(r) {
				t.Errorf("holder %q", holder)
			}
		}
	})
}
