package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/podctl/podctl/runtime/gc"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/state"
)

// logNames returns the logs of a container, and the links to logs.
func (l *lab) logNames(container string) (logs, links []string) {
	l.t.Helper()
	found, err := filepath.Glob(filepath.Join(l.layout.LogRoot, "*", container, "*"))
	if err != nil {
		l.t.Fatal(err)
	}
	for _, path := range found {
		logs = append(logs, filepath.Base(path))
	}
	entries, err := os.ReadDir(l.layout.ContainerLogRoot)
	if err != nil && l.layout.ContainerLogRoot != "" {
		l.t.Fatal(err)
	}
	for _, entry := range entries {
		path := filepath.Join(l.layout.ContainerLogRoot, entry.Name())
		if target, err := os.Readlink(path); err == nil && filepath.Base(filepath.Dir(target)) == container {
			if _, err := os.Stat(path); err != nil {
				l.t.Errorf("the link dangles: %v", err)
			}
			links = append(links, filepath.Base(target))
		}
	}
	slices.Sort(links)
	return logs, links
}

// TestACrashLoopKeepsTwoLogs checks that logs of runs without a record do not fill the disk, whether newer runs
// followed or a rule restarts all containers.
func TestACrashLoopKeepsTwoLogs(t *testing.T) {
	const rules = "restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [1]}}]"
	for name, rules := range map[string]string{"one container": "", "all containers": "restartPolicy: Never, " + rules} {
		t.Run(name, func(t *testing.T) {
			f := newFaultLab(t, faultShape{})
			f.restart(f.engine.Client, func(s *Settings) {
				s.Layout.ContainerLogRoot = filepath.Join(filepath.Dir(f.layout.LogRoot), "links")
			})
			f.server.Behave("a", slices.Repeat([]runtimetest.Behaviour{{After: time.Second, ExitCode: 1}}, 9)...)
			text := fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"+
				"spec:\n  containers: [{name: a, image: 'i:1', %s}, {name: b, image: 'i:1'}]\n", rules)
			for range 60 {
				if _, err := f.once(text); err != nil {
					t.Fatal(err)
				}
				f.clock.Advance(time.Minute)
			}
			logs, links := f.logNames("a")
			if want := []string{"8.log", "9.log"}; !slices.Equal(logs, want) || !slices.Equal(links, want) {
				t.Errorf("logs %v, links %v", logs, links)
			}
		})
	}
}

// TestPruneRotatesFullLogs checks that logs of podctl's own pods are rotated only once: also while another process works
// on the pod, but not while another process rotates them.
func TestPruneRotatesFullLogs(t *testing.T) {
	f := newFaultLab(t, faultShape{before: tripPod("web")})
	ref := model.RefOf(f.load(tripPod("web")).Pod)
	pod := f.layout.Pod(ref.UID)
	path := ok(pod.Logs(ref.Namespace, ref.Name).File("a", 0))
	if err := os.Truncate(path, 10<<20); err != nil {
		t.Fatal(err)
	}
	found, err := f.engine.Garbage.List(t.Context())
	if err != nil || len(found) != 1 || found[0].Kind != gc.GarbageFullLog || found[0].Name != "a" || found[0].Path != path {
		t.Fatalf("%+v %v", found, err)
	}
	if logs, _ := f.logNames("a"); len(logs) != 1 {
		t.Errorf("an observation has changed the logs to %v", logs)
	}
	lock, err := pod.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rotating, err := state.LockLogs(pod, "a")
	if err != nil {
		t.Fatal(err)
	}
	err = f.engine.Garbage.Remove(t.Context(), found[0])
	if err != nil || f.proxy.Count("ReopenContainerLog") > 0 {
		t.Fatalf("it was rotated twice at the same time: %v", err)
	}
	err = errors.Join(rotating.Close(), f.engine.Garbage.Remove(t.Context(), found[0]), lock.Unlock())
	if err != nil {
		t.Fatal(err)
	}
	if logs, _ := f.logNames("a"); len(logs) != 2 || f.proxy.Count("ReopenContainerLog") != 1 {
		t.Errorf("the logs are %v", logs)
	}
	if err := f.engine.Garbage.Remove(t.Context(), found[0]); !errors.Is(err, gc.ErrNeeded) {
		t.Errorf("the second time: %v", err)
	}
	if again, err := f.engine.Garbage.List(t.Context()); err != nil || len(again) > 0 {
		t.Errorf("%+v %v", again, err)
	}
}
