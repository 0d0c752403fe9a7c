package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/plan"
)

// FuzzPlan checks that any manifest and snapshot that can be read give a plan and a status, and the same ones each
// time.
func FuzzPlan(f *testing.F) {
	examples, err := filepath.Glob("../../docs/examples/*.yaml")
	if err != nil || len(examples) == 0 {
		f.Fatalf("no examples: %v", err)
	}
	for _, path := range examples {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), `{"apiVersion":"podctl.io/v1alpha1","kind":"Snapshot","takenAt":"2026-05-04T12:00:00Z"}`)
		f.Add(string(text), fuzzSnapshot)
	}
	f.Fuzz(func(t *testing.T, manifest, observed string) {
		m := load.Parse(input.Source{Name: "-", Text: []byte(manifest)})
		recording, err := Read([]byte(observed))
		if err != nil {
			return
		}
		for _, d := range m.Pods {
			planTwice(t, recording, d)
		}
		for _, d := range recording.Applied() {
			planTwice(t, recording, d)
		}
	})
}

func planTwice(t *testing.T, r Recording, d *podspec.Desired) {
	t.Helper()
	p, err := r.Plan(t.Context(), d, plan.Options{})
	if err != nil {
		return
	}
	again, err := r.Plan(t.Context(), d, plan.Options{})
	first, firstErr := json.Marshal(p)
	second, secondErr := json.Marshal(again)
	if err = errors.Join(err, firstErr, secondErr); err != nil || !bytes.Equal(first, second) {
		t.Errorf("the same input gave another plan: %v\n%s\n%s", err, first, second)
	}
	pods, err := r.List(t.Context(), []*podspec.Desired{d})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(pods); err != nil {
		t.Error(err)
	}
}

const fuzzSnapshot = `{"apiVersion":"podctl.io/v1alpha1","kind":"Snapshot","takenAt":"2026-05-04T12:00:00Z",
"runtime":{"name":"containerd","version":"2","conditions":[{"type":"NetworkReady","status":false,"message":"no"}]},
"sandboxes":[{"id":"s","metadata":{"attempt":1},"state":"SANDBOX_READY","created_at":"1","network":{"ip":"10.0.0.1"}}],
"containers":[{"podSandboxId":"s","status":{"id":"c","metadata":{"name":"web"},"state":"CONTAINER_EXITED","exit_code":1,"finished_at":"2",
"labels":{"io.kubernetes.container.name":"web"},"annotations":{"io.kubernetes.container.restartCount":"3",
"io.podctl.container.spec-hash":"v1:00","io.podctl.container.spec":"{\"image\":\"x\"}","io.kubernetes.container.hash":"zz"}}}],
"images":[{"reference":"registry.local/podctl/demo:1","id":"sha256:1","user":"1000"}],
"probes":[{"containerID":"c","type":"liveness","result":"Failure"}],
"backoffs":[{"container":"web","duration":"20s","lastUpdate":"2026-05-04T11:59:00Z"}],
"actuated":{"containers":{"web":{"limits":{"cpu":"1"}}},"pod":{"limits":{"memory":"1Gi"}}},
"disk":{"volumes":{"site":{"prepared":true}},"cgroup":false,"logAttempts":{"web":4}},
"checkpoint":{"generation":1,"lastRun":{"sandbox":"x","containers":{"web":"c"}},
"completion":{"phase":"Succeeded","at":"2026-05-04T11:59:00Z"},
"applied":{"pod":{"metadata":{"name":"hello"},"spec":{"containers":[{"name":"web","image":"i"}]}},"objects":{},"source":"-"}}}`
