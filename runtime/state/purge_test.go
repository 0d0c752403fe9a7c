package state

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// TestPurge checks that podctl's files are removed, and that other files stay with their directories. Links are not
// followed.
func TestPurge(t *testing.T) {
	top := t.TempDir()
	l := Layout{Root: filepath.Join(top, "state"), LogRoot: filepath.Join(top, "pods"), ContainerLogRoot: filepath.Join(top, "containers")}
	agent, err := l.Locks().Agent(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	victim := filepath.Join(top, "victim")
	for _, path := range []string{
		"victim/file", "state/pods/u/checkpoint.json", "state/claims/default/data/file", "state/objects/default/secrets/a",
		"state/services.json", "state/.localnet.json",
		"state/locks/u.lock", "state/node/network.json", "state/node.lock", "state/digest.key", "state/seccomp/mine.json",
		"pods/default_web_u/a/0.log", "pods/.deleted/default_old_v.1/a/0.log", "pods/kube-system_theirs_w/a/0.log", "containers/theirs.log",
	} {
		if err = os.MkdirAll(filepath.Dir(filepath.Join(top, path)), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(top, path), "x")
	}
	for link, target := range map[string]string{
		"state/pulled":              victim,
		"state/claims/default/link": victim,
		"containers/gone.log":       l.LogRoot + "/default_web_u/a/0.log",
		"containers/there.log":      l.LogRoot + "/kube-system_theirs_w/a/0.log",
	} {
		if err = os.Symlink(target, filepath.Join(top, link)); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := l.Purge([]types.UID{"u"}, agent)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	err = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if !d.IsDir() {
			left = append(left, strings.TrimPrefix(path, top+"/"))
		}
		return err
	})
	want := []string{
		"containers/theirs.log", "containers/there.log", "pods/kube-system_theirs_w/a/0.log", "state/seccomp/mine.json",
		"victim/file",
	}
	if err != nil || !slices.Equal(left, want) {
		t.Errorf("left are %q, %v", left, err)
	}
	names := []string{
		l.LogRoot + "/kube-system_theirs_w", l.ContainerLogRoot + "/theirs.log", l.ContainerLogRoot + "/there.log",
		l.Root + "/seccomp",
	}
	if !slices.Equal(kept, names) {
		t.Errorf("kept are %q", kept)
	}
}

// TestPurgeKnowsAllEntries checks that each path of the state directory is removed or belongs to the user.
func TestPurgeKnowsAllEntries(t *testing.T) {
	l := Layout{Root: "/s", LogRoot: "/l"}
	pod := l.Pod("u")
	for _, path := range []string{
		l.pods(), pod.Dir(), pod.History().Path(), l.Claims().dir(), l.Objects().dir(), l.Workloads().dir(),
		l.NodeDir(), l.AgentSocket(), l.PodsSocket(), PodResourcesSocket(l),
		l.ServiceNames().Path(), l.Localnet().unfinished(), l.Histories().dir(),
	} {
		name, _, _ := strings.Cut(strings.TrimPrefix(path, "/s/"), "/")
		if !slices.Contains(ownEntries(l), name) {
			t.Errorf("%s stays", path)
		}
	}
}
