package machine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// rootWith returns a root directory with files.
func rootWith(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range files {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestIdentityOf checks from which files a machine's identity is read.
func TestIdentityOf(t *testing.T) {
	const release = "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  Identity
	}{
		"nothing": {nil, Identity{OSImage: "Linux"}},
		"usual": {map[string]string{
			"etc/machine-id": "m1\n", "sys/class/dmi/id/product_uuid": "u1\n",
			"proc/sys/kernel/random/boot_id": "b1\n", "proc/sys/kernel/osrelease": "6.12.1\n",
			"etc/os-release": release, "proc/meminfo": "MemTotal: 8 kB\nSwapTotal: 4 kB\n",
		}, Identity{"m1", "u1", "b1", "6.12.1", "Debian GNU/Linux 13 (trixie)", 4096}},
		"a machine without DMI": {map[string]string{
			"etc/machine-id": "\n", "var/lib/dbus/machine-id": "m2\n", "proc/device-tree/vm,uuid": "u2\x00",
			"usr/lib/os-release": "PRETTY_NAME='x'\n",
		}, Identity{MachineID: "m2", SystemUUID: "u2", OSImage: "x"}},
		"hostile": {map[string]string{
			"etc/machine-id": "a\x1b[1m\x00b\nc", "etc/os-release": "PRETTY_NAME=" + strings.Repeat("y", 1<<17),
		}, Identity{MachineID: "a[1mb", SystemUUID: "a[1mb", OSImage: strings.Repeat("y", identityLine)}},
	} {
		if got := IdentityOf(rootWith(t, c.files)); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestIdentityOfPipe checks that a pipe in the place of a file does not block.
func TestIdentityOfPipe(t *testing.T) {
	root := rootWith(t, map[string]string{"etc/other": ""})
	if err := unix.Mkfifo(filepath.Join(root, "etc/machine-id"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := IdentityOf(root); got.MachineID != "" {
		t.Errorf("%+v", got)
	}
}
