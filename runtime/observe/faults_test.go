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

// TestFaults checks that the observation finds the errors of a pass, except those that only a pull or a preparation
// shows.
func TestFaults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	host := func(path, kind string) string {
		return "  containers: [{name: a, image: 'i:1', volumeMounts: [{name: h, mountPath: /h}]}]\n" +
			"  volumes: [{name: h, hostPath: {path: " +
			path + ", type: " + kind + "}}]\n"
	}
	for name, c := range map[string]struct{ spec, of, reason, message string }{
		"nothing": {"  containers: [{name: a, image: 'i:1'}]\n", "", "", ""},
		"root": {
			"  containers: [{name: a, image: 'i:1', securityContext: {runAsNonRoot: true}}]\n",
			"a",
			"CreateContainerConfigError",
			"spec.containers[0].securityContext.runAsNonRoot: container has",
		},
		"the root of an absent image": {"  containers: [{name: a, image: 'i:2', securityContext: {runAsNonRoot: true}}]\n", "", "", ""},
		"a name of no image":          {"  containers: [{name: a, image: 'i:1:1'}]\n", "a", "InvalidImageName", "i:1:1"},
		"user namespaces": {
			"  hostUsers: false\n  containers: [{name: a, image: 'i:1'}]\n",
			"",
			"CreatePodSandboxError",
			"spec.hostUsers",
		},
		"a group without a user": {
			"  securityContext: {runAsGroup: 7}\n  containers: [{name: a, image: 'i:1'}]\n",
			"",
			"CreatePodSandboxError",
			"runAsGroup",
		},
		"a directory that is a file":    {host(file, "Directory"), "a", "FailedMount", "MountVolume.SetUp failed for volume \"h\""},
		"and its pod":                   {host(file, "Directory"), "", "FailedMount", "MountVolume.SetUp failed for volume \"h\""},
		"a directory that is not there": {host(file+"x", "Directory"), "a", "FailedMount", "is not a directory"},
		"a directory that is created":   {host(file+"x", "DirectoryOrCreate"), "", "", ""},
	} {
		l := newLab(t, "i:1")
		d := loadPod(t, oddPod+c.spec)
		in, _, err := l.observer.Input(t.Context(), model.RefOf(d.Pod), d, plan.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, known := in.Observed.Faults[c.of]
		if known != (c.reason != "") || string(got.Reason) != c.reason || !strings.Contains(got.Message, c.message) ||
			got.ImageUser != (name == "root") {
			t.Errorf("%s: %+v of %+v", name, got, in.Observed.Faults)
		}
		if (c.reason == "") && len(in.Observed.Faults) > 0 {
			t.Errorf("%s: %+v", name, in.Observed.Faults)
		}
	}
}

// TestFaultsOfOtherManifestsAreIgnored checks that a snapshot has no faults for another manifest.
func TestFaultsOfOtherManifestsAreIgnored(t *testing.T) {
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

// TestOutdatedContentIsNotAFault checks that the present content of a volume does not count if other content will be
// written.
func TestOutdatedContentIsNotAFault(t *testing.T) {
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
	if err := volume.Prepare(t.Context(), volume.Context{Pod: l.observer.world.Layout.Pod(d.Pod.UID), Desired: d}, "v"); err != nil {
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

// TestFaultTextsOfTheKubelet compares the texts with those of kubelet 1.36.3 for the same pod. They lack the place in
// the manifest that the plan names.
func TestFaultTextsOfTheKubelet(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	mounting := func(env, mount string) string {
		return "  containers: [{name: a, image: 'i:1', env: [{name: X, value: " + env +
			"}], volumeMounts: [{name: v, mountPath: /v, " + mount +
			"}]}]\n  volumes: [{name: v, hostPath: {path: /etc}}]\n"
	}
	for name, c := range map[string]struct{ spec, of, want string }{
		"root": {
			"  containers: [{name: a, image: 'i:1', securityContext: {runAsNonRoot: true}}]\n",
			"a",
			`container has runAsNonRoot and image will run as root (pod: "p_ns(u)", container: a)`,
		},
		"an invalid name": {
			"  containers: [{name: a, image: 'REGISTRY/Foo:1'}]\n",
			"a",
			`Failed to apply default image tag "REGISTRY/Foo:1": couldn't parse image name "REGISTRY/Foo:1": ` +
				`invalid reference format: repository name (Foo) must be lowercase`,
		},
		"no user namespaces": {
			"  hostUsers: false\n  containers: [{name: a, image: 'i:1'}]\n",
			"",
			"can't set `spec.hostUsers: false`, runtime does not support user namespaces",
		},
		"a hostPath of another type": {
			"  containers: [{name: a, image: 'i:1', volumeMounts: [{name: h, mountPath: /h}]}]\n" +
				"  volumes: [{name: h, hostPath: {path: " +
				file + ", type: Directory}}]\n",
			"",
			`MountVolume.SetUp failed for volume "h" : hostPath type check failed: ` + file + " is not a directory",
		},
		"an unset variable":   {mounting("x", "subPathExpr: $(NOPE)"), "a", "missing value for NOPE"},
		"an absolute subPath": {mounting("/abs", "subPathExpr: $(X)"), "a", "error SubPath `/abs` must not be an absolute path"},
		"a subPath that leaves": {
			mounting("..", "subPathExpr: $(X)/y"),
			"a",
			"unable to provision SubPath `../y`: must not contain '..'",
		},
		"a subPath in a file": {
			mounting("x", "subPath: passwd/x"),
			"a",
			`failed to prepare subPath for volumeMount "v" of container "a"`,
		},
		"recursive read-only": {
			mounting("x", "readOnly: true, recursiveReadOnly: Enabled"),
			"a",
			`failed to resolve recursive read-only mode: volume "v" requested recursive read-only mode, ` +
				`but it is not supported by the runtime`,
		},
		"strict groups": {
			"  securityContext: {supplementalGroupsPolicy: Strict}\n  containers: [{name: a, image: 'i:1'}]\n",
			"a",
			"SupplementalGroupsPolicy=Strict is not supported in this node",
		},
	} {
		l := newLab(t, "i:1")
		d := loadPod(t, oddPod+c.spec)
		in, _, err := l.observer.Input(t.Context(), model.RefOf(d.Pod), d, plan.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := strings.ReplaceAll(c.want, "p_ns(u)", model.RefOf(d.Pod).Full())
		if got := in.Observed.Faults[c.of]; got.Status != want || got.Message == want {
			t.Errorf("%s: %+v, not %s", name, got, want)
		}
	}
}
