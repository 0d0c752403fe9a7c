package state

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStatePageListsEveryFile checks that docs/state.md has a row for every file that podctl reads or writes
// below its state directory.
func TestStatePageListsEveryFile(t *testing.T) {
	page, err := os.ReadFile("../../docs/state.md")
	if err != nil {
		t.Fatal(err)
	}
	l := Layout{Root: "/"}
	pod := l.Pod("UID")
	for _, path := range []string{
		pod.Checkpoint().Path(), pod.EtcHosts(), pod.IDs().Path(), pod.CgroupMark().path(), pod.lockFile(),
		l.Locks().file(lockIDs), l.Locks().file(lockPorts), l.Locks().file(lockNode), l.Locks().file(lockObjects),
		pod.History().Path(),
		ok(pod.VolumeDir("KIND", "NAME")), ok(pod.SubPath("VOLUME", "CONTAINER", 0)), ok(pod.TerminationLogs("NAME").Dir()), pod.Plugins(),
		ok(pod.Claims().Dir(Claim{Namespace: "NS", Name: "NAME"})), ok(l.Objects().Path(ObjectKey{"NS", "ConfigMap", "NAME"})),
		ok(l.Objects().Path(ObjectKey{"NS", "Secret", "NAME"})),
		ok(l.Objects().Path(ObjectKey{"NS", "PersistentVolumeClaim", "NAME"})), l.Seccomp(), l.NodeDir() + "/",
		l.NodeDir() + ".lock", "/pki/", PodResourcesSocket(l),
	} {
		path = strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/0")
		if !strings.Contains(string(page), "| `"+filepath.ToSlash(path)) {
			t.Errorf("no row for %s", path)
		}
	}
}
