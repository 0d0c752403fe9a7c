package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

const editedPod = `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 30
  hostAliases: [{ip: 192.0.2.1, hostnames: [one.test]}]
  nodeSelector: {disk: fast}
  initContainers:
  - {name: seed, image: "i:1", args: [a]}
  containers:
  - name: app
    image: i:1
    env: [{name: MODE, value: fast}]
    readinessProbe: {exec: {command: [a]}, failureThreshold: 1}
    volumeMounts: [{name: mem, mountPath: /m}, {name: disk, mountPath: /d}, {name: host, mountPath: /h}]
  - {name: log, image: "i:1", args: [b]}
  ephemeralContainers:
  - {name: look, image: "i:1", args: [c]}
  volumes:
  - {name: mem, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
  - {name: disk, emptyDir: {sizeLimit: 1Mi}}
  - {name: host, hostPath: {path: /h, type: File}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {mode: fast}
`

// recorded lists the edits that are only written into podctl's record.
func recorded(p *Plan) []string {
	var texts []string
	for _, e := range p.Record {
		texts = append(texts, string(e.TakesEffect)+": "+e.Path)
	}
	return texts
}

// TestEditsAreListedByWhenTheyTakeEffect checks that an edit without a step is listed, and that its effect is correct.
func TestEditsAreListedByWhenTheyTakeEffect(t *testing.T) {
	const live, start, sandbox, pod, none = "live: ", "nextStart: ", "newSandbox: ", "newPod: ", "none: "
	for name, c := range map[string]struct {
		before, after string
		want          []string
	}{
		"nothing":             {"one.test", "one.test", nil},
		"a probe":             {"Threshold: 1", "Threshold: 9", []string{live + "spec.containers[app].readinessProbe.failureThreshold"}},
		"a grace period":      {"Seconds: 30", "Seconds: 9", []string{live + "spec.terminationGracePeriodSeconds"}},
		"names in /etc/hosts": {"one.test", "two.test", []string{start + "spec.hostAliases"}},
		"memory": {
			"Memory, sizeLimit: 1Mi",
			"Memory, sizeLimit: 2Mi",
			[]string{pod + "spec.volumes[mem].emptyDir.sizeLimit"},
		},
		"memory without a limit": {"Memory, sizeLimit: 1Mi", "Memory", []string{pod + "spec.volumes[mem].emptyDir.sizeLimit"}},
		"a disk":                 {"{sizeLimit: 1Mi}", "{sizeLimit: 2Mi}", []string{live + "spec.volumes[disk].emptyDir.sizeLimit"}},
		"a check before a mount": {"type: File", "type: Socket", []string{start + "spec.volumes[host].hostPath.type"}},
		"scheduling fields":      {"disk: fast", "disk: slow", []string{none + "spec.nodeSelector.disk"}},
		"an init container":      {"args: [a]", "args: [z]", []string{sandbox + "spec.initContainers[seed].args"}},
		"a new init container": {
			"  containers:",
			"  - {name: new, image: \"i:1\"}\n  containers:",
			[]string{sandbox + "spec.initContainers[new]"},
		},
		"a finished container": {"args: [b]", "args: [z]", []string{start + "spec.containers[log].args"}},
		"a debug container":    {"args: [c]", "args: [z]", []string{pod + "spec.ephemeralContainers[look].args"}},
		"the same in another way": {"value: fast", "valueFrom: {configMapKeyRef: {name: settings, key: mode}}", []string{
			none + "configMaps.settings.data.mode", none + "spec.containers[app].env[MODE].value",
			none + "spec.containers[app].env[MODE].valueFrom",
		}},
		"a label":       {"{name: web}", "{name: web, labels: {tier: a}}", []string{live + "metadata.labels.tier"}},
		"an annotation": {"{name: web}", "{name: web, annotations: {a.b/c: d}}", []string{live + "metadata.annotations.a.b/c"}},
		"the order of volumes": {
			"  - {name: mem, emptyDir: {medium: Memory, sizeLimit: 1Mi}}\n  - {name: disk, emptyDir: {sizeLimit: 1Mi}}",
			"  - {name: disk, emptyDir: {sizeLimit: 1Mi}}\n  - {name: mem, emptyDir: {medium: Memory, sizeLimit: 1Mi}}",
			[]string{none + "spec.volumes"},
		},

		"a hook and its other half": {
			"    env:",
			"    lifecycle: {postStart: {sleep: {seconds: 1}}, preStop: {sleep: {seconds: 1}}}\n    env:",
			[]string{
				start + "spec.containers[app].lifecycle.postStart",
				live + "spec.containers[app].lifecycle.preStop",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := modeltest.Load(t, editedPod), modeltest.Load(t, strings.Replace(editedPod, c.before, c.after, 1))
			w := editedWorld(before, after)
			p := makePlan(w)
			if got := recorded(p); len(p.Steps) > 0 || !slices.Equal(got, c.want) || p.Summary.Record != len(c.want) {
				t.Errorf("%d steps, record %q, want %q", len(p.Steps), got, c.want)
			}
		})
	}
}

// editedWorld is a pod that runs as it was applied, except log, which has ended for good.
func editedWorld(before, after *podspec.Desired) *modeltest.World {
	for _, d := range []*podspec.Desired{before, after} {
		d.Pod.Spec.RestartPolicy = v1.RestartPolicyNever
	}
	w := modeltest.New(before).Sandbox("s", 0, model.SandboxReady)
	w.Container("s", "seed", 0, model.Exited)
	w.Container("s", "app", 0, model.Running)
	w.Container("s", "log", 0, model.Exited)
	w.Container("s", "look", 0, model.Running)
	w.Memory.Applied, w.Desired = before, after
	return w
}

// TestEquivalentSandboxEdits checks that a pod with restartPolicy Never gets no new sandbox, and that another
// spelling of the same settings changes nothing.
func TestEquivalentSandboxEdits(t *testing.T) {
	before := modeltest.Load(t, editedPod)
	for name, c := range map[string]struct {
		edit func(*v1.Pod)
		hold bool
	}{
		"another hostname": {func(pod *v1.Pod) { pod.Spec.Hostname = "other" }, true},
		"no sysctls":       {func(pod *v1.Pod) { pod.Spec.SecurityContext = &v1.PodSecurityContext{Sysctls: []v1.Sysctl{}} }, false},
	} {
		after := modeltest.Load(t, editedPod)
		c.edit(after.Pod)
		p := makePlan(editedWorld(before, after))
		if (len(p.Holds) > 0) != c.hold || len(p.Steps) > 0 || (!c.hold && len(p.Notes) > 0) {
			t.Errorf("%s: %v, notes %q", name, lines(p), p.Notes)
		}
	}
}

// TestEditOfAContainerThatRestarts checks that an edit waits for the next start, and that a resource changes in place.
func TestEditOfAContainerThatRestarts(t *testing.T) {
	const limited = "{name: app, image: i:1, resources: {requests: {cpu: 1m}, limits: {cpu: %s}}}"
	pod := func(cpu string) *podspec.Desired {
		return modeltest.Load(t, strings.Replace(modeltest.WebPod, "{name: app, image: i:1}", strings.Replace(limited, "%s", cpu, 1), 1))
	}
	w := modeltest.Running(pod("1"))
	w.Memory.Applied, w.Memory.Actuated = w.Desired, actuatedOf(w)
	w.Desired = pod("2")
	if got := lines(makePlan(w)); len(got) != 2 || !strings.HasPrefix(got[1], "update-app Resized") {
		t.Errorf("%v", got)
	}
	// Without a record of its resources, those of the previous manifest count.
	w.Memory.Actuated = nil
	if got := lines(makePlan(w)); len(got) != 2 || !strings.HasPrefix(got[1], "update-app Resized") {
		t.Errorf("%v", got)
	}
}

// TestRecordedEditsNeedNoStep checks that edits with a step are not recorded, and that held edits are listed as held.
func TestRecordedEditsNeedNoStep(t *testing.T) {
	const spec = "  hostAliases: [{ip: 192.0.2.1, hostnames: [one.test]}]\n  containers:\n" +
		"  - {name: app, image: \"i:1\", args: [a], envFrom: [{configMapRef: {name: c}}], volumeMounts: [{name: v, mountPath: /v}]}\n" +
		"  - {name: log, image: \"i:1\"}\n  volumes: [{name: v, configMap: {name: c, items: [{key: k, path: k}]}}]\n"
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {k: one, l: two}\n---\n" + modeltest.Pod(spec)
	for name, c := range map[string]struct {
		before, after string
		set           func(w *modeltest.World)
		want          []string
	}{
		"a container that is replaced": {"args: [a]", "args: [b]", nil, nil},
		"a container that left":        {"  - {name: log, image: \"i:1\"}\n", "", nil, nil},
		"a container that came":        {"  volumes:", "  - {name: new, image: \"i:1\"}\n  volumes:", nil, nil},
		"a sandbox that is replaced":   {"spec:\n", "spec:\n  hostname: other\n", nil, nil},
		"the environment":              {"k: one", "k: two", nil, nil},
		"a volume that is updated":     {"path: k}", "path: kk}", updatedVolume, nil},
		"a step, and what needs none": {
			"args: [a]",
			"args: [b], livenessProbe: {exec: {command: [a]}}",
			nil,
			[]string{"live: spec.containers[app].livenessProbe"},
		},
		"next-start field that running containers keep": {
			"[one.test]}]\n  containers:\n  - {name: app, image: \"i:1\", args: [a]",
			"[two.test]}]\n  containers:\n  - {name: app, image: \"i:1\", args: [b]",
			nil,
			[]string{"nextStart: spec.hostAliases"},
		},
		"a container that is held":      {"args: [a]", "args: [b]", noImage, []string{"held: spec.containers[app].args"}},
		"the environment of a held one": {"k: one", "k: two", noImage, []string{"held: configMaps.c.data.k"}},
		"a deletion that is taken back": {
			"args: [a]",
			"args: [a]",
			func(w *modeltest.World) { w.Memory.Deletion = &model.Deletion{At: modeltest.Noon()} },
			[]string{"live: metadata.deletionTimestamp"},
		},
		"an unknown pod": {"args: [a]", "args: [b]", func(w *modeltest.World) { w.Memory.Applied = nil }, nil},
	} {
		before, after := modeltest.Load(t, text), modeltest.Load(t, strings.Replace(text, c.before, c.after, 1))
		w := modeltest.New(before).Sandbox("s", 0, model.SandboxReady)
		w.Container("s", "app", 0, model.Running)
		w.Container("s", "log", 0, model.Running)
		w.Memory.Applied, w.Desired = before, after
		if c.set != nil {
			c.set(w)
		}
		if got := recorded(makePlan(w)); !slices.Equal(got, c.want) {
			t.Errorf("%s: edits %q, want %q; steps %q", name, got, c.want, lines(makePlan(w)))
		}
	}
}

// updatedVolume makes the content of a volume outdated.
func updatedVolume(w *modeltest.World) {
	w.Volumes = map[string]model.Volume{"v": {Prepared: true, Digest: "a", Wanted: "b"}}
}

// noImage holds the containers that start: the image is absent and must not be pulled.
func noImage(w *modeltest.World) {
	w.Images = map[string]model.Image{"i:1": {}}
	for i := range w.Desired.Pod.Spec.Containers {
		w.Desired.Pod.Spec.Containers[i].ImagePullPolicy = v1.PullNever
		w.Memory.Applied.Pod.Spec.Containers[i].ImagePullPolicy = v1.PullNever
	}
}

// TestRecordContainsNoSecret checks that the values of Secrets are left out, also where another field repeats one.
func TestRecordContainsNoSecret(t *testing.T) {
	const text = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {k: hunter2-XYZ}\n---\napiVersion: v1\nkind: Pod\n" +
		"metadata: {name: web, annotations: {a: \"no\"}}\nspec:\n  imagePullSecrets: [{name: s}]\n  containers: [{name: app, image: i:1}]\n"
	before := modeltest.Load(t, text)
	after := modeltest.Load(t, strings.NewReplacer("XYZ", "ABC", "\"no\"", "hunter2-XYZ").Replace(text))
	key := digest.NewKey([]byte("a key of 32 bytes, for this test."))
	before.UseKey(key)
	after.UseKey(key)
	w := modeltest.Running(before)
	w.Memory.Applied, w.Desired = before, after
	p := makePlan(w)
	if got := recorded(p); !slices.Equal(got, []string{"live: metadata.annotations.a", "live: secrets.s.data.k"}) ||
		!p.Record[1].Sensitive {
		t.Errorf("%+v", p.Record)
	}
	if text := fmt.Sprintf("%+v", p.Record); strings.Contains(text, "hunter2") {
		t.Errorf("the record contains the secret: %s", text)
	}
}

// TestAdoption checks that a running pod gets a record if podctl looked for one and found none. A pod without such a
// lookup gets no note, and a new pod is not adopted.
func TestAdoption(t *testing.T) {
	w := modeltest.Running(modeltest.Load(t, modeltest.WebPod))
	if p := makePlan(w); p.Adopts || p.Records() || len(p.Notes) > 0 {
		t.Errorf("adopts an unobserved container: %v, notes %q", p.Adopts, p.Notes)
	}
	w.Unrecorded = true
	if p := makePlan(w); !p.Adopts || !p.Records() || len(p.Notes) != 1 || len(p.Steps) > 0 {
		t.Errorf("%v, notes %q", p.Adopts, p.Notes)
	}
	fresh := modeltest.New(modeltest.Load(t, modeltest.WebPod))
	fresh.Unrecorded = true
	if p := makePlan(fresh); p.Adopts || p.Records() || len(p.Notes) > 0 {
		t.Errorf("adopts a new pod: %v, notes %q", p.Adopts, p.Notes)
	}
}

// TestSecretWithoutType checks that a Secret without a type equals the Opaque one that a server and podctl's own store
// make of it.
func TestSecretWithoutType(t *testing.T) {
	const text = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nTYPEstringData: {k: hunter2}\n---\napiVersion: v1\nkind: Pod\n" +
		"metadata: {name: web}\nspec:\n  imagePullSecrets: [{name: s}]\n  containers: [{name: app, image: i:1}]\n"
	before := modeltest.Load(t, strings.Replace(text, "TYPE", "type: Opaque\n", 1))
	w := modeltest.Running(before)
	w.Memory.Applied, w.Desired = before, modeltest.Load(t, strings.Replace(text, "TYPE", "", 1))
	if got := recorded(makePlan(w)); len(got) > 0 {
		t.Errorf("%q", got)
	}
}
