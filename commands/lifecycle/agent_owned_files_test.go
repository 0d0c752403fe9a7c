package lifecycle_test

import (
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

// brought stores the objects of a text in the same way as an agent that reads them from a file of a source.
func brought(l *lab, file, text string) {
	l.T().Helper()
	m, err := load.Loader{Workloads: true}.Parse(input.Source{Name: file, Text: []byte(text)})
	if err == nil {
		err = m.Err()
	}
	locker := &state.Locker{
		Layout: state.Layout{Root: l.Path("state"), LogRoot: l.Path("logs")}, Waiting: func(string) {},
	}
	for _, w := range m.Workloads {
		w.Owner = "/pods"
		if err == nil {
			_, err = controller.NewStore(locker, time.Now).Put(l.T().Context(), w)
		}
	}
	for _, o := range m.Objects {
		o.Owner = "/pods"
	}
	if err == nil {
		err = objects.New(locker, time.Now).Put(l.T().Context(), m.Objects, func(objects.Change) {})
	}
	if err != nil {
		l.T().Fatal(err)
	}
}

const apart = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: apart}\ndata: {a: one}\n"

// TestFilesRule checks that commands do not change an object in a source of the agent, and name its file. A restart is
// allowed, a deleted object comes back, and the file itself can be applied.
func TestFilesRule(t *testing.T) {
	l := newLab(t)
	text := deployment(1, "i:1", "") + "---\n" + apart
	file := written(l, "file", text)
	brought(l, file, text)
	l.ServeStatus(&api.Status{
		Sources: []api.Source{{Name: "/pods"}},
		Workloads: []api.Workload{
			{Kind: podspec.KindDeployment, Namespace: "default", Name: "web", Source: "/pods", File: file},
		},
	})
	other := written(l, "other", deployment(1, "i:2", "")+"---\n"+strings.Replace(apart, "one", "two", 1))
	for _, key := range []string{"deployment default/web", "configmap default/apart"} {
		wantMessage := key + ": the agent applies it from " + file + ": edit that file"
		if code, _, stderr := l.Call("apply", other); code != exit.Refused || !strings.Contains(stderr, wantMessage) {
			t.Errorf("apply: %d %s", code, stderr)
		}
		if _, stderr := l.Must("plan", other); !strings.Contains(stderr, "note: "+wantMessage) {
			t.Errorf("plan: %s", stderr)
		}
	}
	for _, args := range [][]string{
		{"scale", "--replicas=2", "deployment/web"}, {"rollout", "undo", "deployment/web"},
	} {
		if code, _, stderr := l.Call(args...); code != 1 || !strings.Contains(stderr, "applies it from "+file) {
			t.Errorf("%v: %d %s", args, code, stderr)
		}
	}
	l.Must("apply", written(l, "copy", text))
	if err := os.WriteFile(file, []byte(deployment(1, "i:3", "")), 0o600); err != nil {
		t.Fatal(err)
	}
	l.Must("apply", file)
	l.Must("rollout", "restart", "deployment/web")
	brought(l, file, text)
	_, stderr := l.Must("delete", "deployment/web", "configmap/apart")
	for _, key := range []string{"deployment default/web", "configmap default/apart"} {
		if !strings.Contains(stderr, "note: the agent recreates "+key+": its manifest is in "+file) {
			t.Errorf("delete: %s", stderr)
		}
	}
}

// TestFilesRuleLater checks that, without an agent, a command changes an object from a source, and reports that an
// agent will undo the change.
func TestFilesRuleLater(t *testing.T) {
	l := newLab(t)
	l.Must("get")
	brought(l, "/pods/web.yaml", deployment(1, "i:1", ""))
	_, stderr := l.Must("scale", "--replicas=2", "deployment/web")
	if !strings.Contains(stderr, "the agent applies /pods/web.yaml when it starts") {
		t.Errorf("scale: %s", stderr)
	}
	if _, stderr := l.Must("delete", "deployment/web"); strings.Contains(stderr, "the agent recreates") {
		t.Errorf("delete: %s", stderr)
	}
}

// TestFilesRuleOfUnresponsiveAgent checks that objects from sources are not changed while the agent runs and does not
// answer.
func TestFilesRuleOfUnresponsiveAgent(t *testing.T) {
	l := newLab(t)
	l.Must("get")
	text := deployment(1, "i:1", "") + "---\n" + apart
	file := written(l, "file", text)
	brought(l, file, text)
	layout := state.Layout{Root: l.Path("state"), LogRoot: l.Path("logs")}
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", layout.AgentSocket())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() //nolint:errcheck // the test is over
	other := written(l, "other", strings.Replace(apart, "one", "two", 1))
	for _, args := range [][]string{{"scale", "--replicas=2", "deployment/web"}, {"apply", other}} {
		if code, _, stderr := l.Call(args...); code == 0 ||
			!strings.Contains(stderr, "applies it from "+file+": edit that file") ||
			!strings.Contains(stderr, "note: ") {
			t.Errorf("%v: %d %s", args, code, stderr)
		}
	}
}
