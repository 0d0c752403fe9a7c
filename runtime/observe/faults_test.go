package observe

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/volume"
)

const oddPod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n"

// TestFaults: what a pass would fail with is known when the pod has been observed; what only a pull
// or a preparation shows is not.
func TestFaults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	host := func(path, kind string) string {
		return "  containers: [{name: a, image: 'i:1', volumeMounts: [{name: h, mountPath: /h}]}]\n  volumes: [{name: h, hostPath: {path: " + path + ", type: " + kind + "}}]\n"
	}
	for name, c := range map[string]struct{ spec, of, reason, message string }{
		"nothing":                       {"  containers: [{name: a, image: 'i:1'}]\n", "", "", ""},
		"root":                          {"  containers: [{name: a, image: 'i:1', securityContext: {runAsNonRoot: true}}]\n", "a", "CreateContainerConfigError", "runAsNonRoot"},
		"the root of an absent image":   {"  containers: [{name: a, image: 'i:2', securityContext: {runAsNonRoot: true}}]\n", "", "", ""},
		"a name of no image":            {"  containers: [{name: a, image: 'i:1:1'}]\n", "a", "InvalidImageName", "i:1:1"},
		"user namespaces":               {"  hostUsers: false\n  containers: [{name: a, image: 'i:1'}]\n", "", "CreatePodSandboxError", "spec.hostUsers"},
		"a group without a user":        {"  securityContext: {runAsGroup: 7}\n  containers: [{name: a, image: 'i:1'}]\n", "", "CreatePodSandboxError", "runAsGroup"},
		"a directory that is a file":    {host(file, "Directory"), "a", "FailedMount", "MountVolume.SetUp failed for volume \"h\""},
		"and its pod":                   {host(file, "Directory"), "", "FailedMount", "MountVolume.SetUp failed for volume \"h\""},
		"a directory that is not there": {host(file+"x", "Directory"), "a", "FailedMount", "is not a directory"},
		"a directory that is made":      {host(file+"x", "DirectoryOrCreate"), "", "", ""},
	} {
		l := newLab(t, "i:1")
		d := loadPod(t, oddPod+c.spec)
		in, _, err := l.observer.Input(t.Context(), model.RefOf(d.Pod), d, plan.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, known := in.Observed.Faults[c.of]
		if known != (c.reason != "") || string(got.Reason) != c.reason || !strings.Contains(got.Message, c.message) || got.ImageUser != (name == "root") {
			t.Errorf("%s: %+v of %+v", name, got, in.Observed.Faults)
		}
		if (c.reason == "") && len(in.Observed.Faults) > 0 {
			t.Errorf("%s: %+v", name, in.Observed.Faults)
		}
	}
}

// TestFaultsAreOfOneManifest: of another one a snapshot knows none.
func TestFaultsAreOfOneManifest(t *testing.T) {
	l := newLab(t, "i:1")
	d := loadPod(t, oddPod+"  containers: [{name: a, image: 'i:1', securityContext: {runAsNonRoot: true}}]\n")
	s, err := l.observer.Observe(t.Context(), model.RefOf(d.Pod), d)
	if err != nil {
		t.Fatal(err)
	}
	other := loadPod(t, oddPod+"  containers: [{name: a, image: 'i:1', securityContext: {runAsNonRoot: true, runAsUser: 7}}]\n")
	if known, others := s.Observed(s.Pod, d).Faults, s.Observed(s.Pod, other).Faults; len(known) != 1 || len(others) > 0 {
		t.Errorf("%+v, of another %+v", known, others)
	}
}

// TestUnwrittenContentIsNoFault: what lies in a volume now says nothing once other content is to
// be written.
func TestUnwrittenContentIsNoFault(t *testing.T) {
	text := func(data, sub string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {" + data + "}\n---\n" + oddPod +
			"  containers: [{name: a, image: 'i:1', volumeMounts: [{name: v, mountPath: /v, subPath: " + sub + "}]}]\n" +
			"  volumes: [{name: v, configMap: {name: c, items: [{key: k, path: " + strings.Split(data, " ")[1] + "}]}}]\n"
	}
	l := newLab(t, "i:1")
	d := loadPod(t, text("k: x", "x/y"))
	faults := func() map[string]model.Fault {
		t.Helper()
		in, _, err := l.observer.Input(t.Context(), model.RefOf(d.Pod), d, plan.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return in.Observed.Faults
	}
	if got := faults(); len(got) > 0 {
		t.Errorf("before it is there: %+v", got)
	}
	if err := volume.Prepare(t.Context(), l.observer.volumeContext(d), "v"); err != nil {
		t.Fatal(err)
	}
	if got := faults()["a"]; !strings.Contains(got.Message, `"x/y": not a directory`) {
		t.Errorf("once it is there: %+v", got)
	}
	d = loadPod(t, strings.Replace(text("k: x", "x/y"), "data: {k: x}", "data: {k: z}", 1))
	if got := faults(); len(got) > 0 {
		t.Errorf("when it changes: %+v", got)
	}
}
