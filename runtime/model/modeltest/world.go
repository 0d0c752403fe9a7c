// Package modeltest builds observed states of pods for tests.
package modeltest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/podspec/spechash"
	"github.com/podctl/podctl/runtime/model"
)

// Noon is the time of the observation.
func Noon() time.Time { return time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC) }

// WebPod is the manifest of a pod with one init container and two regular ones.
const WebPod = `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  initContainers:
  - {name: seed, image: i:1}
  containers:
  - {name: app, image: i:1}
  - {name: log, image: i:1}
`

// Load reads the manifest of one pod.
func Load(tb testing.TB, text string) *podspec.Desired {
	tb.Helper()
	return podspectest.Desired(tb, text)
}

// World is an observed state that is built step by step.
type World struct {
	model.Observed
	// Desired is the desired pod.
	Desired *podspec.Desired
}

// New returns a world in which all images are present, but no part of the pod.
func New(d *podspec.Desired) *World {
	w := &World{Desired: d}
	w.Images = map[string]model.Image{}
	for _, ref := range podspec.Containers(d.Pod) {
		w.Images[ref.Image] = model.Image{ID: "sha256:" + ref.Image}
	}
	w.Volumes = map[string]model.Volume{}
	w.Runtime = model.Runtime{
		Name: "containerd", Version: "2.4.2", Handler: ptr.Deref(d.Pod.Spec.RuntimeClassName, ""),
	}
	w.Memory.Backoffs = map[string]model.Backoff{}
	return w
}

// Running returns a world in which WebPod, or a pod with its containers, runs as desired.
func Running(d *podspec.Desired) *World {
	w := New(d).Sandbox("s0", 0, model.SandboxReady)
	w.Container("s0", "seed", 0, model.Exited)
	w.Container("s0", "app", 0, model.Running)
	w.Container("s0", "log", 0, model.Running)
	return w
}

// Sandbox adds a sandbox that podctl created from the manifest.
func (w *World) Sandbox(id string, attempt uint32, state model.SandboxState) *World {
	w.Sandboxes = append(w.Sandboxes, model.Sandbox{
		ID:        id,
		Attempt:   attempt,
		State:     state,
		CreatedAt: Noon().Add(-time.Hour),
		IPs:       []string{"10.0.0.2"},
		SpecHash:  spechash.Sandbox(w.Desired),
	})
	return w
}

// Container adds a record that podctl created from the manifest. The returned pointer is valid until the next record is
// added.
func (w *World) Container(sandbox, name string, attempt uint32, state model.ContainerState) *model.Container {
	c := model.Container{
		ID:           fmt.Sprintf("%s-%d-of-%s", name, attempt, sandbox),
		SandboxID:    sandbox,
		Name:         name,
		Attempt:      attempt,
		RestartCount: attempt,
		State:        state,
		CreatedAt:    Noon().Add(-time.Minute + time.Duration(attempt)*time.Second),
		StartedAt:    Noon().Add(-time.Minute),
	}
	if ref, ok := podspec.FindContainer(w.Desired.Pod, name); ok {
		c.SpecHash, c.Hash = spechash.Container(w.Desired, ref.Container), spechash.Kubelet(ref.Container)
	}
	if state == model.Exited {
		c.FinishedAt = Noon().Add(-30 * time.Second)
	}
	w.Containers = append(w.Containers, c)
	return w.Find(c.ID)
}

// States adds records to the sandbox s0 by their states: "app=Running log=Exited:1".
func (w *World) States(text string) *World {
	for one := range strings.FieldsSeq(text) {
		name, state, _ := strings.Cut(one, "=")
		state, code, _ := strings.Cut(state, ":")
		rec := w.Container("s0", name, 0, model.ContainerState(strings.ToUpper(state)))
		if n, err := strconv.Atoi(code); err == nil {
			rec.ExitCode = int32(n)
		}
	}
	return w
}

// Find returns the record with that ID.
func (w *World) Find(id string) *model.Container {
	for i := range w.Containers {
		if w.Containers[i].ID == id {
			return &w.Containers[i]
		}
	}
	return nil
}

// End ends the newest record of a name with an exit code, the given time before noon.
func (w *World) End(name string, code int32, ago time.Duration) *model.Container {
	for i := len(w.Containers) - 1; i >= 0; i-- {
		if c := &w.Containers[i]; c.Name == name {
			c.State, c.ExitCode, c.FinishedAt = model.Exited, code, Noon().Add(-ago)
			return c
		}
	}
	return nil
}

// Probed gives a record the verdict of a probe with the given age.
func (w *World) Probed(id string, t model.ProbeType, result model.ProbeResult, ago time.Duration) {
	if w.Memory.Probes == nil {
		w.Memory.Probes = map[string]map[model.ProbeType]model.ProbeRecord{}
	}
	if w.Memory.Probes[id] == nil {
		w.Memory.Probes[id] = map[model.ProbeType]model.ProbeRecord{}
	}
	w.Memory.Probes[id][t] = model.ProbeRecord{
		Result:    result,
		Last:      result,
		CountedAt: Noon().Add(-ago),
		Message:   "refused",
	}
}

// Pod returns the manifest of the pod web with a spec in YAML, indented by two spaces.
func Pod(spec string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n" + spec
}
