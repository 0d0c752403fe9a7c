package syncpod

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// TestRuntimeClass checks that a pod of the API server waits for its RuntimeClass with the messages of a kubelet, runs
// with the handler of the class, and keeps its sandbox when the class changes or is deleted.
func TestRuntimeClass(t *testing.T) {
	l := newLab(t, "i:1")
	l.server.SetHandlers("one", "two")
	text := strings.Replace(web, "spec:", "spec:\n  runtimeClassName: fast", 1)
	pass := func() *executor.Outcome {
		t.Helper()
		d := loadPod(t, text)
		d.Owner = podspec.OwnerAPI
		o, err := l.Apply(t.Context(), d, executor.Options{ClusterPods: true})
		if err != nil || o.Err() != nil {
			t.Fatal(err, o.Err())
		}
		return o
	}
	classes := func(c model.RuntimeClasses) {
		t.Helper()
		text, err := c.Encode()
		if err == nil {
			err = state.ClusterClasses(l.layout).Write(text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	events := func() (texts []string) {
		t.Helper()
		h, err := l.layout.Pod(loadPod(t, text).Pod.UID).History().Read()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range h.Events {
			if e.Type == state.Warning {
				texts = append(texts, e.Reason+": "+e.Message)
			}
		}
		return texts
	}
	waits := func(why string) {
		t.Helper()
		o := pass()
		if len(o.Plan.Steps) > 0 || len(o.Plan.Holds) != 1 || o.Plan.Holds[0].Reason != model.CreatePodSandboxError {
			t.Errorf("%s: steps %s, holds %+v", why, kinds(o.Plan), o.Plan.Holds)
		}
		want := "FailedCreatePodSandBox: Failed to create pod sandbox: " + why
		if got := events(); !slices.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	waits("failed to lookup RuntimeClass fast: RuntimeClasses have not yet been read at least once")
	classes(model.RuntimeClasses{"slow": "two"})
	l.clock.Advance(2 * time.Minute)
	waits(`runtimeclass.node.k8s.io "fast" not found`)
	classes(model.RuntimeClasses{"fast": "one", "slow": "two"})
	pass()
	if calls := l.server.Calls(); !slices.Contains(calls, "RunPodSandbox web 0 one") {
		t.Errorf("%v", calls)
	}
	for name, c := range map[string]model.RuntimeClasses{"changed": {"fast": "two"}, "deleted": {}} {
		classes(c)
		if o := pass(); len(o.Plan.Steps)+len(o.Plan.Holds) > 0 {
			t.Errorf("%s: steps %s, holds %+v", name, kinds(o.Plan), o.Plan.Holds)
		}
	}
	l.server.Exit("a", 1)
	l.clock.Advance(time.Hour)
	if o := pass(); !strings.Contains(kinds(o.Plan), "StartContainer") || strings.Contains(kinds(o.Plan), "RunSandbox") {
		t.Errorf("without the class, a container in a running sandbox restarts: %s, %+v", kinds(o.Plan), o.Plan.Holds)
	}
}
