package podstatus

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

const sizedSpec = "  containers: [{name: app, image: i:1, resources: {limits: {cpu: 500m, " +
	"memory: 64Mi}, requests: {cpu: 100m, memory: 32Mi}}}]\n"

func amounts(pairs ...string) v1.ResourceList {
	list := v1.ResourceList{}
	for _, pair := range pairs {
		name, amount, _ := strings.Cut(pair, "=")
		list[v1.ResourceName(name)] = resource.MustParse(amount)
	}
	return list
}

// amountText formats resources as "limits cpu=1 requests cpu=10m".
func amountText(r *v1.ResourceRequirements) string {
	if r == nil {
		return "unknown"
	}
	list := func(title string, l v1.ResourceList) string {
		parts := []string{title}
		for name, q := range l {
			parts = append(parts, fmt.Sprintf("%s=%s", name, q.String()))
		}
		slices.Sort(parts[1:])
		return strings.Join(parts, " ")
	}
	return list("limits", r.Limits) + " " + list("requests", r.Requests)
}

// TestRecordedResources checks that a running container shows the known resources of the runtime, and any other those
// of the manifest.
func TestRecordedResources(t *testing.T) {
	manifest := "limits cpu=500m memory=64Mi requests cpu=100m memory=32Mi"
	for name, c := range map[string]struct {
		states      string
		fromRuntime *v1.ResourceRequirements
		want        string
	}{
		"no record":                   {"", nil, "unknown"},
		"the container has ended":     {"app=Exited", &v1.ResourceRequirements{Limits: amounts("cpu=1")}, manifest},
		"the runtime reports nothing": {"app=Running", nil, manifest},
		"the runtime has the same": {
			"app=Running",
			&v1.ResourceRequirements{Limits: amounts("cpu=500m", "memory=64Mi"), Requests: amounts("cpu=100m")},
			manifest,
		},
		"the runtime has more": {
			"app=Running",
			&v1.ResourceRequirements{Limits: amounts("cpu=1", "memory=128Mi"), Requests: amounts("cpu=200m")},
			"limits cpu=1 memory=128Mi requests cpu=200m memory=32Mi",
		},
		"the runtime has no requests": {
			"app=Running",
			&v1.ResourceRequirements{Limits: amounts("cpu=1")},
			"limits cpu=1 memory=64Mi requests cpu=100m memory=32Mi",
		},
		"the runtime has other resources": {"app=Running", &v1.ResourceRequirements{Limits: amounts("hugepages-2Mi=2Mi")}, manifest},
		"a request of memory of it":       {"app=Running", &v1.ResourceRequirements{Requests: amounts("memory=1Mi")}, manifest},
	} {
		w := web(t, sizedSpec).Sandbox("s0", 0, model.SandboxReady).States(c.states)
		for i := range w.Containers {
			w.Containers[i].Resources = c.fromRuntime
		}
		got := shownOf(t, w, "app")
		if amountText(got.Resources) != c.want {
			t.Errorf("%s: %s, not %s", name, amountText(got.Resources), c.want)
		}
	}
}

// TestSmallAmountsOfCPU checks that the requested amount is shown below the kernel's minimum: ten thousandths of a core
// for a limit, two for a request.
func TestSmallAmountsOfCPU(t *testing.T) {
	spec := "  containers: [{name: app, image: i:1, resources: {limits: {cpu: 5m}, requests: {cpu: 1m}}}]\n"
	for fromRuntime, want := range map[string]string{"10m": "limits cpu=5m requests cpu=1m", "11m": "limits cpu=11m requests cpu=1m"} {
		w := web(t, spec).Sandbox("s0", 0, model.SandboxReady).States("app=Running")
		w.Containers[0].Resources = &v1.ResourceRequirements{Limits: amounts("cpu=" + fromRuntime), Requests: amounts("cpu=2m")}
		if got := amountText(shownOf(t, w, "app").Resources); got != want {
			t.Errorf("%s: %s", fromRuntime, got)
		}
	}
}

// TestAllocatedResources checks that a running container shows the last resources it was given.
func TestAllocatedResources(t *testing.T) {
	actuated := &model.Actuated{
		Containers: map[string]v1.ResourceRequirements{"app": {Requests: amounts("cpu=1"), Limits: amounts("cpu=2")}},
	}
	for name, c := range map[string]struct {
		states   string
		actuated *model.Actuated
		want     string
	}{
		"nothing was noted": {"app=Running", nil, "100m"},
		"given":             {"app=Running", actuated, "1"},
		"given, and ended":  {"app=Exited", actuated, "100m"},
		"given to others":   {"app=Running", &model.Actuated{Containers: map[string]v1.ResourceRequirements{}}, "100m"},
	} {
		w := web(t, sizedSpec).Sandbox("s0", 0, model.SandboxReady).States(c.states)
		w.Memory.Actuated = c.actuated
		s := statusOf(w)
		if got := s.ContainerStatuses[0].AllocatedResources.Cpu().String(); got != c.want {
			t.Errorf("%s: the container has %s", name, got)
		}
		if got := s.AllocatedResources.Cpu().String(); got != c.want {
			t.Errorf("%s: the pod has %s", name, got)
		}
	}
}

// TestPodResources checks that a running pod shows the values of its own cgroup, if it has one, and any other the sum
// of its containers.
func TestPodResources(t *testing.T) {
	spec := "  containers: [{name: app, image: i:1, resources: {limits: {cpu: 500m, memory: 64Mi}, " +
		"requests: {cpu: 100m, memory: 32Mi}}}, {name: log, image: i:1, " +
		"resources: {limits: {memory: 64Mi}, requests: {cpu: 100m}}}]\n"
	own := "  resources: {limits: {cpu: \"2\", memory: 1Gi}, requests: {cpu: \"1\"}}\n"
	for name, c := range map[string]struct {
		spec, states string
		cgroup       *bool
		want         string
	}{
		"the pod is pending": {spec, "", new(true), "limits cpu=500m memory=128Mi requests cpu=200m memory=96Mi"},
		"no separate cgroup": {spec, "app=Running log=Running", nil, "limits requests memory=96Mi"},
		"the cgroup is gone": {spec, "app=Running log=Running", new(false), "limits requests memory=96Mi"},
		"its cgroup":         {spec, "app=Running log=Running", new(true), "limits memory=128Mi requests cpu=200m memory=96Mi"},
		"limits of the pod":  {own + spec, "app=Running log=Running", new(true), "limits cpu=2 memory=1Gi requests cpu=1 memory=96Mi"},
	} {
		w := web(t, c.spec).Sandbox("s0", 0, model.SandboxReady).States(c.states)
		w.CgroupExists = c.cgroup
		if got := amountText(statusOf(w).Resources); got != c.want {
			t.Errorf("%s: %s, not %s", name, got, c.want)
		}
	}
}

// TestResizedPodShowsAppliedResources checks that the old values are shown until the edit of its resources is done.
func TestResizedPodShowsAppliedResources(t *testing.T) {
	w := web(t, "  resources: {limits: {cpu: \"2\"}}\n"+sizedSpec).Sandbox("s0", 0, model.SandboxReady).States("app=Running")
	w.CgroupExists = new(true)
	w.Memory.Actuated = &model.Actuated{Pod: &v1.ResourceRequirements{Limits: amounts("cpu=4"), Requests: amounts("cpu=3")}}
	if got, want := amountText(statusOf(w).Resources), "limits cpu=4 memory=64Mi requests cpu=3 memory=32Mi"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
}

// TestVolumeMounts checks that mounts are shown as in the manifest, and that recursive read-only depends on the
// runtime's handler.
func TestVolumeMounts(t *testing.T) {
	spec := `  containers:
  - name: app
    image: i:1
    volumeMounts:
    - {name: v, mountPath: /w}
    - {name: v, mountPath: /r, readOnly: true}
    - {name: v, mountPath: /d, readOnly: true, recursiveReadOnly: Disabled}
    - {name: v, mountPath: /p, readOnly: true, recursiveReadOnly: IfPossible}
  volumes: [{name: v, emptyDir: {}}]
`
	for able, want := range map[bool]string{
		false: "/w false -, /r true Disabled, /d true Disabled, /p true Disabled",
		true:  "/w false -, /r true Disabled, /d true Disabled, /p true Enabled",
	} {
		w := web(t, spec).Sandbox("s0", 0, model.SandboxReady)
		if able {
			w.Runtime.RecursiveReadOnly = []string{""}
		}
		var got []string
		for _, m := range shownOf(t, w, "app").VolumeMounts {
			got = append(got, fmt.Sprintf("%s %t %s", m.MountPath, m.ReadOnly, ptr.Deref(m.RecursiveReadOnly, "-")))
		}
		if diff := cmp.Diff(want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("able %t: (-want +got)\n%s", able, diff)
		}
	}
}

// TestUserIsShown checks the user that the runtime reports.
func TestUserIsShown(t *testing.T) {
	w := web(t, sizedSpec).Sandbox("s0", 0, model.SandboxReady).States("app=Running")
	w.Containers[0].User = &v1.ContainerUser{Linux: &v1.LinuxContainerUser{UID: 1000}}
	if got := shownOf(t, w, "app").User; got == nil || got.Linux.UID != 1000 {
		t.Errorf("%+v", got)
	}
	if got := shownOf(t, modeltest.Running(modeltest.Load(t, modeltest.WebPod)), "app").User; got != nil {
		t.Errorf("a user that was not reported: %+v", got)
	}
}
