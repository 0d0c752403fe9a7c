package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

const specialPod = `apiVersion: v1
kind: Pod
metadata: {name: special}
spec:
  runtimeClassName: kata
  containers:
  - name: app
    image: i:1
    ports: [{containerPort: 80, hostPort: 8080}]
    resources: {requests: {memory: 64Gi}}
    volumeMounts: [{name: tools, mountPath: /tools}]
  volumes:
  - {name: tools, image: {reference: "i:1"}}
`

// TestMissingCapabilitiesHoldThePod checks that a pod is held before anything starts if the runtime or the node lacks
// something it needs. Unknown capabilities hold nothing.
func TestMissingCapabilitiesHoldThePod(t *testing.T) {
	cases := map[string]struct {
		change func(*model.Observed)
		want   string
	}{
		"unknown handlers": {func(o *model.Observed) { o.Runtime.Handlers = nil }, ""},
		"a handler it has": {func(o *model.Observed) { o.Runtime.Handlers = []string{"", "kata"} }, ""},
		"a handler it has not": {
			func(o *model.Observed) { o.Runtime.Handlers = []string{"", "runc"} },
			`has no handler "kata"; it has runc`,
		},
		"only the default": {func(o *model.Observed) { o.Runtime.Handlers = []string{""} }, "only its default one"},
		"a port that is taken": {
			func(o *model.Observed) { o.Ports = map[string]string{"8080/TCP": "pod default/web"} },
			"hostPort 8080/TCP is used by pod default/web",
		},
		"another port is taken": {func(o *model.Observed) { o.Ports = map[string]string{"8080/UDP": "pod default/web"} }, ""},
		"an old containerd":     {func(o *model.Observed) { o.Runtime.Version = "1.6.20~ds1" }, "which containerd 1.6.20~ds1 cannot mount"},
		"a strange version":     {func(o *model.Observed) { o.Runtime.Version = "unknown" }, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := modeltest.New(modeltest.Load(t, specialPod))
			c.change(&w.Observed)
			p := makePlan(w)
			held := slices.ContainsFunc(p.Holds, func(h Hold) bool { return strings.Contains(h.Message, c.want) })
			if held != (c.want != "") || (c.want == "" && len(p.Holds) > 0) {
				t.Errorf("holds %+v, want %q", p.Holds, c.want)
			}
			if starts := slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Kind == StartContainer }); starts != (c.want == "") {
				t.Errorf("steps %v", lines(p))
			}
		})
	}
}

// TestImageVolumeThatMayNotBePulled checks that exactly the containers that mount the volume are held, also in a
// running pod.
func TestImageVolumeThatMayNotBePulled(t *testing.T) {
	const text = `apiVersion: v1
kind: Pod
metadata: {name: mounting}
spec:
  containers:
  - {name: app, image: i:1, volumeMounts: [{name: data, mountPath: /data}]}
  - {name: log, image: i:1}
  volumes:
  - {name: data, image: {reference: "data:1", pullPolicy: Never}}
`
	hold := "hold app ErrImageNeverPull Container image \"data:1\" of volume data is not present with pull policy of Never"
	d := modeltest.Load(t, text)
	w := modeltest.New(d)
	w.Images["data:1"] = model.Image{}
	want := []string{"check-log BeforeStart", "run-sandbox SandboxMissing", "start-log NotCreated after run-sandbox,check-log", hold}
	if diff := cmp.Diff(want, lines(makePlan(w))); diff != "" {
		t.Errorf("notes of a new pod (-want +got)\n%s", diff)
	}
	w = modeltest.New(d).Sandbox("s0", 0, model.SandboxReady)
	w.Container("s0", "app", 0, model.Running)
	w.Container("s0", "log", 0, model.Running)
	w.Images["data:1"] = model.Image{}
	w.Desired = modeltest.Load(t, strings.Replace(text, "{name: app,", "{name: app, command: [other],", 1))
	if diff := cmp.Diff([]string{hold}, lines(makePlan(w))); diff != "" {
		t.Errorf("notes of a running pod (-want +got)\n%s", diff)
	}
	w.Images["data:1"] = model.Image{ID: "sha256:da7a"}
	if p := makePlan(w); len(p.Holds) > 0 {
		t.Errorf("pod with a present image has holds %+v", p.Holds)
	}
}

func TestPodTooLargeForTheNodeIsNoted(t *testing.T) {
	w := modeltest.New(modeltest.Load(t, specialPod))
	w.Capacity = v1.ResourceList{v1.ResourceMemory: resource.MustParse("24Gi"), v1.ResourceCPU: resource.MustParse("2")}
	want := "the pod requests 64Gi of memory, and this machine has 24Gi: a kubelet would refuse it (OutOfmemory)"
	if p := makePlan(w); !slices.Contains(p.Notes, want) {
		t.Errorf("notes %q", p.Notes)
	}
}

// TestMissingHugePagesAreNoted covers a machine with too few huge pages, and a kernel without that size.
func TestMissingHugePagesAreNoted(t *testing.T) {
	pages := strings.Replace(specialPod, "requests: {memory: 64Gi}", "limits: {memory: 1Gi, hugepages-2Mi: 64Mi, hugepages-1Gi: 1Gi}", 1)
	for name, c := range map[string]struct {
		capacity v1.ResourceList
		want     []string
	}{
		"few": {
			v1.ResourceList{
				v1.ResourceCPU:    resource.MustParse("2"),
				v1.ResourceMemory: resource.MustParse("24Gi"),
				"hugepages-2Mi":   resource.MustParse("32Mi"),
			},
			[]string{
				"the pod requests 1Gi of hugepages-1Gi, and this machine has 0: " +
					"a kubelet would refuse it (OutOfhugepages-1Gi)",
				"the pod requests 64Mi of hugepages-2Mi, and this machine has 32Mi: " +
					"a kubelet would refuse it (OutOfhugepages-2Mi)",
			},
		},
		"unknown": {nil, []string{}},
	} {
		w := modeltest.New(modeltest.Load(t, pages))
		w.Capacity = c.capacity
		if diff := cmp.Diff(c.want, makePlan(w).Notes); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}
