package plan

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
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

// TestEditsAreNotedByWhenTheyTakeEffect: what needs no step is not called as it was, and
// what has no effect on what runs is not said to have one.
func TestEditsAreNotedByWhenTheyTakeEffect(t *testing.T) {
	const live, start, sandbox, pod = "takes effect without a step: ", "takes effect only when a container starts next: ",
		"takes effect only in a new sandbox: ", "takes effect only in a new pod: "
	for name, c := range map[string]struct {
		before, after string
		want          []string
	}{
		"nothing":                 {"one.test", "one.test", nil},
		"a probe":                 {"Threshold: 1", "Threshold: 9", []string{live + "spec.containers[app].readinessProbe.failureThreshold"}},
		"a grace period":          {"Seconds: 30", "Seconds: 9", []string{live + "spec.terminationGracePeriodSeconds"}},
		"names in /etc/hosts":     {"one.test", "two.test", []string{start + "spec.hostAliases"}},
		"memory":                  {"Memory, sizeLimit: 1Mi", "Memory, sizeLimit: 2Mi", []string{pod + "spec.volumes[mem].emptyDir.sizeLimit"}},
		"memory without a limit":  {"Memory, sizeLimit: 1Mi", "Memory", []string{pod + "spec.volumes[mem].emptyDir.sizeLimit"}},
		"a disk":                  {"{sizeLimit: 1Mi}", "{sizeLimit: 2Mi}", nil},
		"a check before a mount":  {"type: File", "type: Socket", []string{start + "spec.volumes[host].hostPath.type"}},
		"what places pods":        {"disk: fast", "disk: slow", nil},
		"an init container":       {"args: [a]", "args: [z]", []string{sandbox + "spec.initContainers[seed].args"}},
		"a new init container":    {"  containers:", "  - {name: new, image: \"i:1\"}\n  containers:", []string{sandbox + "spec.initContainers[new]"}},
		"a finished container":    {"args: [b]", "args: [z]", []string{start + "spec.containers[log].args"}},
		"a debug container":       {"args: [c]", "args: [z]", []string{pod + "spec.ephemeralContainers[look].args"}},
		"the same in another way": {"value: fast", "valueFrom: {configMapKeyRef: {name: settings, key: mode}}", nil},
		"a hook and its other half": {"    env:", "    lifecycle: {postStart: {sleep: {seconds: 1}}, preStop: {sleep: {seconds: 1}}}\n    env:", []string{
			live + "spec.containers[app].lifecycle.preStop", start + "spec.containers[app].lifecycle.postStart",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := modeltest.Load(t, editedPod), modeltest.Load(t, strings.Replace(editedPod, c.before, c.after, 1))
			w := editedWorld(before, after)
			p := makePlan(w)
			if len(p.Steps) > 0 || !slices.Equal(p.Notes, c.want) {
				t.Errorf("%d steps, notes %q, not %q", len(p.Steps), p.Notes, c.want)
			}
		})
	}
}

// editedWorld is a pod that runs as it was applied, all but log, which has ended for good.
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

// TestEditsOfTheSandboxUnderNever: a pod that runs once gets no other one, and what the same
// settings say in other words changes nothing.
func TestEditsOfTheSandboxThatSayTheSame(t *testing.T) {
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

// TestEditOfAContainerThatRestarts waits for its next start, and that of a resource is done
// in place.
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
	// Nobody knows what was applied to it: it has the new resources once it starts.
	w.Memory.Actuated = nil
	want := []string{"takes effect only when a container starts next: spec.containers[app].resources.limits[cpu]"}
	if got := makePlan(w).Notes; len(got) != 1 || !strings.HasPrefix(got[0], strings.TrimSuffix(want[0], "[cpu]")) {
		t.Errorf("%q", got)
	}
}
