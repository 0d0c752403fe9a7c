package runtime

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/podctl/podctl/runtime/runtimetest"
)

// logNames are the logs of a container, and the links to logs.
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
	if err != nil {
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

// TestACrashLoopKeepsTwoLogs: a disk does not fill with the logs of runs that have no record
// any more, whether newer ones have followed or a rule restarts all containers.
func TestACrashLoopKeepsTwoLogs(t *testing.T) {
	const rules = "restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [1]}}]"
	for name, rules := range map[string]string{"one container": "", "all containers": "restartPolicy: Never, " + rules} {
		t.Run(name, func(t *testing.T) {
			f := newFaultLab(t, faultShape{})
			f.layout.ContainerLogRoot = filepath.Join(filepath.Dir(f.layout.LogRoot), "links")
			f.engine = NewEngine(f.engine.client, Settings{Layout: f.layout, Now: f.clock.Now, Cgroups: f.engine.cgroups})
			f.server.Behave("a", slices.Repeat([]runtimetest.Behaviour{{After: time.Second, ExitCode: 1}}, 9)...)
			text := fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers: [{name: a, image: 'i:1', %s}, {name: b, image: 'i:1'}]\n", rules)
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
