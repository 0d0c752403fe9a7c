package state

import (
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/state/podlogs"
)

// made is a path built from names, and its place in docs/state.md: the number of elements below a directory of podctl.
type made struct {
	path  string
	err   error
	below string
	depth int
}

// fuzzedNames holds all names in paths.
type fuzzedNames struct {
	uid                                          types.UID
	namespace, pod, container, volume, claim, id string
	index                                        int
}

// allPaths returns all paths built from names.
func allPaths(l Layout, n *fuzzedNames) map[string]made {
	p := l.Pod(n.uid)
	paths := map[string]made{}
	add := func(what, below string, depth int, path string, err error) {
		paths[what] = made{path, err, below, depth}
	}
	with := func(path string, err error) func(what, below string, depth int) {
		return func(what, below string, depth int) { add(what, below, depth, path, err) }
	}
	add("pod", "/root/pods", 1, p.Dir(), p.check())
	for what, path := range map[string]string{
		"checkpoint": p.Checkpoint().Path(), "etc-hosts": p.EtcHosts(), "userns": p.IDs().Path(), "cgroup mark": p.CgroupMark().path(),
		"volumes": p.Volumes(), "plugins": p.Plugins(), "subpaths": p.SubPaths(), "containers": p.TerminationLogs("").above(),
	} {
		add(what, p.Dir(), 1, path, p.check())
	}
	add("events", "/root/events", 1, p.History().Path(), p.check())
	add("events that are being written", "/root/events", 1, p.History().unfinished(), p.check())
	add("lock", "/root/locks", 1, p.lockFile(), p.check())
	with(p.VolumeDir(podspec.EmptyDir, n.volume))("volume", p.Volumes(), 2)
	with(p.VolumeDir(n.volume, "x"))("plugin", p.Volumes(), 2)
	with(p.VolumeMarker(podspec.EmptyDir, n.volume))("marker", p.Plugins(), 3)
	with(p.VolumeMarker("configmap", n.volume))("marker of content", p.Plugins(), 3)
	with(p.SubPath(n.volume, n.container, n.index))("subpath", p.SubPaths(), 3)
	with(p.TerminationLogs(n.container).Dir())("container", p.TerminationLogs("").above(), 1)
	with(l.Claims().Dir(Claim{n.namespace, n.claim}))("claim", "/root/claims", 2)
	with(l.Objects().Path(ObjectKey{n.namespace, "ConfigMap", n.claim}))("ConfigMap", "/root/objects", 3)
	with(l.Objects().Path(ObjectKey{n.namespace, "Secret", n.claim}))("Secret", "/root/objects", 3)
	with(l.Objects().Path(ObjectKey{n.namespace, "PersistentVolumeClaim", n.claim}))("stored claim", "/root/objects", 3)
	with(l.Workloads().Path(ObjectKey{n.namespace, "Deployment", n.claim}))("workload", "/root/workloads", 3)
	with(p.Logs(n.namespace, n.pod).Dir())("logs", "/logs", 1)
	with(p.Logs(n.namespace, n.pod).ContainerDir(n.container))("logs of a container", "/logs", 2)
	with(p.Logs(n.namespace, n.pod).File(n.container, uint32(n.index)))("log", "/logs", 3)
	with(p.Logs(n.namespace, n.pod).LinkPath(n.container, n.id))("link", "/links", 1)
	return paths
}

// FuzzPaths checks that each path built from arbitrary names is refused or lies where docs/state.md says. No two kinds
// share a path, and no path has a name reserved for podctl.
func FuzzPaths(f *testing.F) {
	for _, seed := range []string{
		"web", "", ".", "..", "../../../victim", "a/b", "/etc", ".aside", ".removed", ".deleted", "_ids", "_ports",
		"_objects", "ports", "a\x00b", "a\nb", ".long", "checkpoint.json", "wrapped_x", "a_b",
	} {
		f.Add(seed, "default", "web", "app", "data", "data", "id", 0)
		f.Add("u1", seed, seed, seed, seed, seed, seed, -1)
	}
	f.Fuzz(func(t *testing.T, uid, namespace, pod, container, volume, claim, id string, index int) {
		l := Layout{Root: "/root", LogRoot: "/logs", ContainerLogRoot: "/links"}
		seen := map[string]string{}
		for what, m := range allPaths(l, &fuzzedNames{types.UID(uid), namespace, pod, container, volume, claim, id, index}) {
			if m.err != nil {
				if refused := (*NameError)(nil); !errors.As(m.err, &refused) {
					t.Errorf("%s: %v is not a NameError", what, m.err)
				}
				continue
			}
			rest, below := strings.CutPrefix(m.path, m.below+"/")
			if !below || filepath.Clean(m.path) != m.path || !filepath.IsLocal(rest) ||
				strings.Count(rest, "/")+1 != m.depth || strings.ContainsFunc(rest, unicode.IsControl) {
				t.Errorf("%s lies at %q, want %d below %s", what, m.path, m.depth, m.below)
			}
			if other, taken := seen[m.path]; taken && what != "plugin" && other != "plugin" {
				t.Errorf("%s and %s both lie at %q", what, other, m.path)
			}
			seen[m.path] = what
		}
		for _, own := range []string{
			l.Locks().file(lockIDs), l.Locks().file(lockPorts), l.Locks().file(lockNode), l.Locks().file(lockObjects),
			l.Locks().file(lockWorkloads), l.Locks().file(lockServices), l.Locks().file(lockClaims),
			l.ServiceNames().Path(), l.Localnet().Path(), l.DeletedLogs().Dir(),
			filepath.Join("/root/claims", namespace, claimsRemoved),
		} {
			if what, taken := seen[own]; taken {
				t.Errorf("%s lies at %q, which is podctl's own", what, own)
			}
		}
		_, _ = podlogs.ParseDeleted(strconv.Itoa(index) + uid)
		p := l.Pod(types.UID(uid))
		if dir, err := p.Logs(namespace, pod).Dir(); err == nil {
			d, ok := podlogs.ParseDeleted(filepath.Base(dir) + "." + testTime().Format("20060102-150405.000000"))
			if !ok || d.UID != p.uid || d.Namespace != namespace || d.Name != pod {
				t.Errorf("logs of %s/%s/%s are read as %+v", namespace, pod, uid, d)
			}
		}
	})
}

// TestUIDsThatAreRefusedHaveNoPlace checks that the path of a pod with an invalid uid is used for nothing else.
func TestUIDsThatAreRefusedHaveNoPlace(t *testing.T) {
	l := Layout{Root: "/root", LogRoot: "/logs"}
	for _, uid := range []types.UID{"", ".", "..", "../x", "a/b", "_ids", "a\x00", "a\nb"} {
		if p := l.Pod(uid); p.check() == nil || p.Dir() != "/root/pods/.refused" || p.lockFile() != "/root/locks/.refused.lock" {
			t.Errorf("uid %q: %s, %s", uid, p.Dir(), p.lockFile())
		}
	}
	for _, uid := range []types.UID{"0b4f6c1e-8d0a-5c39-9b1f-3f6f2f7a9c01", "ports", "A", "a.b", types.UID(strings.Repeat("u", 64))} {
		if p := l.Pod(uid); p.check() != nil || filepath.Base(p.Dir()) != string(uid) {
			t.Errorf("uid %q: %s %v", uid, p.Dir(), p.check())
		}
	}
}
