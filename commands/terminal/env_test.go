package terminal

import (
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"testing"

	"k8s.io/klog/v2"
)

// TestLibrariesAreQuiet: errors that a library logs do not reach the terminal.
func TestLibrariesAreQuiet(t *testing.T) {
	quietLibraries()
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	stderr := os.Stderr //nolint:forbidigo // libraries write to it
	os.Stderr = file    //nolint:forbidigo // as above
	klog.ErrorS(errors.New("EOF"), "Copying stdin failed")
	klog.Flush()
	os.Stderr = stderr //nolint:forbidigo // as above
	if text, err := os.ReadFile(file.Name()); err != nil || len(text) > 0 {
		t.Errorf("%q %v", text, err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
}

// TestHome: without HOME, as in a systemd unit, it is the home directory of the user. Otherwise it stays.
func TestHome(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for home, want := range map[string]string{"": me.HomeDir, "/other": "/other"} {
		t.Setenv("HOME", home)
		if got := System().Getenv("HOME"); got != want {
			t.Errorf("%q becomes %q, want %q", home, got, want)
		}
	}
}
