package commands

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/model"
)

// goldenRow is a recorded situation of a real kubelet, in the form of its runtime's records.
type goldenRow struct {
	ID    string          `json:"id"`
	Group string          `json:"group"`
	Tags  []string        `json:"tags"`
	Now   int64           `json:"now"`
	Pod   json.RawMessage `json:"pod"`
	CRI   struct {
		Sandboxes  []goldenSandbox   `json:"sandboxes"`
		Containers []goldenContainer `json:"containers"`
	} `json:"cri"`
	Probes        map[string]map[string]string `json:"probes"`
	Actuated      json.RawMessage              `json:"actuated"`
	ImagesPresent []string                     `json:"imagesPresent"`
	KubeletPhase  v1.PodPhase                  `json:"kubeletPhase"`
	Expect        json.RawMessage              `json:"expect"`
	// Backoffs is the section of that name. Nil leaves it out.
	Backoffs []object `json:"-"`
}

type goldenSandbox struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Namespace string            `json:"namespace"`
	UID       string            `json:"uid"`
	Attempt   uint32            `json:"attempt"`
	State     string            `json:"state"`
	CreatedAt int64             `json:"createdAt"`
	Network   string            `json:"network"`
	IP        *string           `json:"ip"`
	Labels    map[string]string `json:"labels"`
}

type goldenContainer struct {
	ID          string            `json:"id"`
	SandboxID   string            `json:"sandboxId"`
	Name        string            `json:"name"`
	Attempt     uint32            `json:"attempt"`
	State       string            `json:"state"`
	CreatedAt   int64             `json:"createdAt"`
	StartedAt   int64             `json:"startedAt"`
	FinishedAt  int64             `json:"finishedAt"`
	ExitCode    int32             `json:"exitCode"`
	Reason      string            `json:"reason"`
	Message     string            `json:"message"`
	Image       string            `json:"image"`
	ImageRef    string            `json:"imageRef"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

type object = map[string]any

// snapshot converts the situation into the document of `podctl snapshot`.
func (r *goldenRow) snapshot() object {
	doc := object{
		"apiVersion": model.APIVersion, "kind": "Snapshot",
		"takenAt": time.Unix(0, r.Now).UTC().Format(time.RFC3339Nano),
		"runtime": object{"name": "containerd", "version": "2.4.2"},
		"probes":  r.probes(),
	}
	if r.Backoffs != nil {
		doc["backoffs"] = r.Backoffs
	}
	sandboxes, containers := []object{}, []object{}
	for i := range r.CRI.Sandboxes {
		sandboxes = append(sandboxes, r.CRI.Sandboxes[i].status())
	}
	for i := range r.CRI.Containers {
		c := &r.CRI.Containers[i]
		containers = append(containers, object{"podSandboxId": c.SandboxID, "status": c.status()})
	}
	doc["sandboxes"], doc["containers"] = sandboxes, containers
	if r.Actuated != nil {
		doc["actuated"] = r.Actuated
	}
	if r.ImagesPresent != nil {
		images := []object{}
		for _, name := range r.ImagesPresent {
			images = append(images, object{"reference": name, "id": "sha256:" + name})
		}
		doc["images"] = images
	}
	return doc
}

func (r *goldenRow) probes() []object {
	probes := []object{}
	for _, t := range []string{"liveness", "readiness", "startup"} {
		for id, result := range r.Probes[t] {
			probes = append(probes, object{"containerID": id, "type": t, "result": result})
		}
	}
	return probes
}

func (s *goldenSandbox) status() object {
	out := object{
		"id": s.ID, "state": "SANDBOX_" + s.State, "created_at": s.CreatedAt, "labels": s.Labels,
		"metadata": object{"name": s.Name, "namespace": s.Namespace, "uid": s.UID, "attempt": s.Attempt},
		"linux":    object{"namespaces": object{"options": object{"network": s.Network}}},
	}
	if s.IP != nil {
		out["network"] = object{"ip": *s.IP}
	}
	return out
}

func (c *goldenContainer) status() object {
	return object{
		"id": c.ID, "state": "CONTAINER_" + c.State, "metadata": object{"name": c.Name, "attempt": c.Attempt},
		"created_at": c.CreatedAt, "started_at": c.StartedAt, "finished_at": c.FinishedAt,
		"exit_code": c.ExitCode, "reason": c.Reason, "message": c.Message,
		"image": object{"image": c.Image}, "image_ref": c.ImageRef, "labels": c.Labels, "annotations": c.Annotations,
	}
}

// goldenCall runs one command on a row. The pod of the row is the manifest, and its records are the snapshot.
type goldenCall struct {
	dir string
	now time.Time
}

func (g *goldenCall) run(t *testing.T, r *goldenRow, args ...string) (int, []byte, string) {
	t.Helper()
	text, err := json.Marshal(r.snapshot())
	if err != nil {
		t.Fatal(err)
	}
	snapshot := filepath.Join(g.dir, "snapshot.json")
	if err := os.WriteFile(snapshot, text, 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	env := &Env{
		In: bytes.NewReader(r.Pod), Out: &out, Err: &errs,
		Now: func() time.Time { return g.now }, Getenv: func(string) string { return "" },
	}
	code := Main(t.Context(), env, append(args, "-f", "-", "--snapshot", snapshot, "-o", "json", "--state-dir", g.dir))
	return code, out.Bytes(), errs.String()
}

// differing reads the rows with an intended difference, each with the name of its rule.
func differing(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if id, rule, ok := strings.Cut(strings.TrimSpace(line), " "); ok && id != "#" {
			rows[id] = rule
		}
	}
	return rows
}
