package containerd

import "testing"

func TestFullName(t *testing.T) {
	for name, want := range map[string]string{
		"busybox:1":               "docker.io/library/busybox:1",
		"registry.local/a/b:1":    "registry.local/a/b:1",
		"registry.local/Not Good": "",
	} {
		if got := fullName(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
