package input

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestReadNamed checks that a file of exactly the limit is read, and a larger one is not.
func TestReadNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := ReadNamed(t.Context(), path, 5); err != nil || string(text) != "12345" {
		t.Errorf("%q %v", text, err)
	}
	var large *TooLargeError
	if text, err := ReadNamed(t.Context(), path, 4); !errors.As(err, &large) || large.Max != 4 || text != nil {
		t.Errorf("%q %v", text, err)
	}
	if _, err := ReadNamed(t.Context(), path+"x", 4); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}
