package kubernetes

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestVersion checks that the kubelet has the version whose rules podctl follows.
func TestVersion(t *testing.T) {
	ours, theirs := required(t, "../../go.mod"), required(t, "go.mod")
	if ours != theirs {
		t.Errorf("go.mod of podctl requires k8s.io/kubernetes %s, that of these tests %s", ours, theirs)
	}
	output, err := exec.CommandContext(t.Context(), setting(t, "KUBELET_BIN"), "--version").Output()
	if want := "Kubernetes " + ours; err != nil || strings.TrimSpace(string(output)) != want {
		t.Errorf("the kubelet says %q, %v, want %s", output, err, want)
	}
}

// required returns the version of k8s.io/kubernetes in a go.mod.
func required(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if version, found := strings.CutPrefix(strings.TrimPrefix(strings.TrimSpace(line), "require "), "k8s.io/kubernetes "); found {
			return version
		}
	}
	t.Fatalf("%s does not require k8s.io/kubernetes", path)
	return ""
}
