package state

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheStatePageNamesWhatLiesThere: what podctl writes below its state directory, and what
// it reads there, has a row in the page that tells users so.
func TestTheStatePageNamesWhatLiesThere(t *testing.T) {
	page, err := os.ReadFile("../../docs/state.md")
	if err != nil {
		t.Fatal(err)
	}
	l := Layout{Root: "/"}
	pod := l.Pod("UID")
	for _, path := range []string{
		pod.JournalFile(), pod.EtcHosts(), pod.userNamespaceFile(), pod.cgroupMark(), pod.lockFile(), l.lockFile(lockIDs), l.lockFile(lockPorts), pod.HistoryFile(),
		ok(pod.VolumeDir("KIND", "NAME")), ok(pod.SubPath("VOLUME", "CONTAINER", 0)), ok(pod.ContainerDir("NAME")), pod.Plugins(),
		ok(pod.ClaimDir("NS", "NAME")), l.Seccomp(), l.NodeDir() + "/", l.NodeDir() + ".lock",
	} {
		path = strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/0")
		if !strings.Contains(string(page), "| `"+filepath.ToSlash(path)) {
			t.Errorf("no row for %s", path)
		}
	}
}
