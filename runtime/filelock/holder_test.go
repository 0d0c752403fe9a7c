package filelock

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCommandContainsNoSecrets(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"plain words":           {[]string{"/usr/local/bin/podctl", "apply", "web.yaml"}, "podctl apply web.yaml"},
		"no arguments at all":   {nil, "podctl"},
		"flags are left out":    {[]string{"podctl", "-n", "prod", "--token", "delete", ""}, "podctl prod delete"},
		"URLs are left out":     {[]string{"podctl", "apply", "https://me:secret@host/web.yaml"}, "podctl apply"},
		"settings are left out": {[]string{"podctl", "run", "PASSWORD=secret", "web"}, "podctl run web"},
		"long lines are cut":    {[]string{"podctl", strings.Repeat("a", 200)}, "podctl " + strings.Repeat("a", 73)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := command(test.args); got != test.want {
				t.Errorf("command(%q) = %q, want %q", test.args, got, test.want)
			}
		})
	}
}

func TestHolderIsPrintable(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"a holder":           {"pid 7 (podctl apply)\n", "pid 7 (podctl apply)"},
		"empty file":         {"", "another process"},
		"escape sequences":   {"pid 7 \x1b]0;owned\x07\x1b[31m(podctl)\n", "pid 7 ]0;owned[31m(podctl)"},
		"not text":           {"\xff\xfe\x00", "another process"},
		"longer than needed": {strings.Repeat("x", 1000), strings.Repeat("x", 160)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir() + "/lock"
			if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := (&File{Path: path}).readHolder(); got != test.want {
				t.Errorf("readHolder = %q, want %q", got, test.want)
			}
		})
	}
	if got := (&File{Path: t.TempDir() + "/missing"}).readHolder(); got != "another process" {
		t.Errorf("holder of a missing lock is %q", got)
	}
}

// TestHolderWithoutRecord checks that a lock held by another program is not attributed to its previous holder.
func TestHolderWithoutRecord(t *testing.T) {
	path := t.TempDir() + "/lock"
	if err := os.WriteFile(path, []byte("pid 4194305 (podctl agent)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	name, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("pid %d (%s)", os.Getpid(), strings.TrimSpace(string(name)))
	if got := (&File{Path: path}).readHolder(); got != want {
		t.Errorf("readHolder = %q, want %q", got, want)
	}
}
