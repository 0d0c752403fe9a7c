package nodestatus

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/nodedeclaredfeatures/features"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/machine"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// list returns resources: cpu=4 memory=1Gi.
func list(text string) v1.ResourceList {
	all := v1.ResourceList{}
	for field := range strings.FieldsSeq(text) {
		name, amount, _ := strings.Cut(field, "=")
		all[v1.ResourceName(name)] = resource.MustParse(amount)
	}
	return all
}

// usualFacts returns the facts of a ready node.
func usualFacts() Facts {
	yes := true
	return Facts{
		Now: noon, Addresses: Addresses([]string{"10.0.0.1"}, "h"), Port: 10250, Version: Version("v0.9.0"),
		Machine:  machine.Identity{MachineID: "m", SystemUUID: "s", BootID: "b1", KernelVersion: "6.1", OSImage: "Debian"},
		Capacity: list("cpu=4 memory=1Gi pods=110 ephemeral-storage=10Gi"), Allocatable: list("cpu=3 memory=900Mi pods=110 ephemeral-storage=9Gi"),
		Runtime: &RuntimeFacts{
			Version:  "containerd://2.1.4",
			Handlers: []v1.NodeRuntimeHandler{{Name: ""}, {Name: "runc"}}, Features: &v1.NodeFeatures{SupplementalGroupsPolicy: &yes},
			Images: []v1.ContainerImage{{Names: []string{"a:1"}, SizeBytes: 1}},
		},
		Pressures: []v1.NodeConditionType{},
	}
}

// show returns the conditions of a node: MemoryPressure=False@12:00.
func show(node *v1.Node) string {
	var all []string
	for _, c := range node.Status.Conditions {
		all = append(all, fmt.Sprintf("%s=%s@%s", c.Type, c.Status, c.LastTransitionTime.UTC().Format("15:04")))
	}
	return strings.Join(all, " ")
}

func reasons(events []Event) string {
	var all []string
	for _, e := range events {
		all = append(all, e.Reason)
	}
	return strings.Join(all, " ")
}

// TestNew checks the Node that is registered.
func TestNew(t *testing.T) {
	f := usualFacts()
	taint := v1.Taint{Key: "k", Effect: v1.TaintEffectNoSchedule}
	node := newNode(&Node{
		Name: "n", HostName: "h", Taints: []v1.Taint{taint}, ProviderID: "p://1",
		Labels: map[string]string{"own": "1", v1.LabelHostname: "given"},
	}, &f)
	if node.Name != "n" || node.Spec.ProviderID != "p://1" || !slices.Equal(node.Spec.Taints, []v1.Taint{taint}) {
		t.Errorf("%+v", node)
	}
	for key, want := range map[string]string{
		"own": "1", v1.LabelHostname: "given", "kubernetes.io/os": "linux", "beta.kubernetes.io/os": "linux",
	} {
		if node.Labels[key] != want {
			t.Errorf("%s=%s, want %s", key, node.Labels[key], want)
		}
	}
	info := node.Status.NodeInfo
	if info.KubeletVersion != "v1.36.3+podctl.0.9.0" || info.ContainerRuntimeVersion != "containerd://2.1.4" ||
		info.BootID != "b1" || info.MachineID != "m" || info.SystemUUID != "s" || info.KernelVersion != "6.1" ||
		info.OSImage != "Debian" || info.OperatingSystem != "linux" || info.Swap != nil {
		t.Errorf("%+v", info)
	}
	if got := show(node); got != "MemoryPressure=False@12:00 DiskPressure=False@12:00 PIDPressure=False@12:00 Ready=True@12:00" {
		t.Error(got)
	}
	if got := node.Status.Addresses; len(got) != 2 || got[0].Address != "10.0.0.1" || got[1].Type != v1.NodeHostName {
		t.Error(got)
	}
	if got := node.Status.DeclaredFeatures; !slices.Equal(got, declaredFeatures()) || !slices.IsSorted(got) {
		t.Error(got)
	}
	if got := reasons(eventsOf(&v1.Node{}, node)); got != "NodeHasSufficientMemory NodeHasNoDiskPressure NodeHasSufficientPID" {
		t.Error(got)
	}
}

// TestDeclaredFeatures checks that the API server knows all features that a node declares.
func TestDeclaredFeatures(t *testing.T) {
	var known []string
	for _, f := range features.AllFeatures {
		known = append(known, f.Name())
	}
	for _, name := range declaredFeatures() {
		if !slices.Contains(known, name) {
			t.Errorf("%s is not among %v", name, known)
		}
	}
}

// TestVersion checks that any version of podctl is a valid part of a version of Kubernetes.
func TestVersion(t *testing.T) {
	for podctl, want := range map[string]string{
		"v0.9.0": "v1.36.3+podctl.0.9.0", "v0.9.0-3-gabc+dirty": "v1.36.3+podctl.0.9.0-3-gabc-dirty", "(devel)": "v1.36.3+podctl.-devel-",
	} {
		if got := Version(podctl); got != want {
			t.Errorf("%s: %s", podctl, got)
		}
	}
}

// TestAddresses checks that there is one address of each family.
func TestAddresses(t *testing.T) {
	var got []string
	for _, a := range Addresses([]string{"fd00::1", "10.0.0.1", "10.0.0.2", "fd00::2"}, "h") {
		got = append(got, string(a.Type)+"="+a.Address)
	}
	if want := []string{"InternalIP=fd00::1", "InternalIP=10.0.0.1", "Hostname=h"}; !slices.Equal(got, want) {
		t.Error(got)
	}
}

// TestReconcile checks what an existing Node gets at a registration.
func TestReconcile(t *testing.T) {
	f := usualFacts()
	f.Capacity["hugepages-2Mi"], f.Allocatable["hugepages-2Mi"] = resource.MustParse("4Mi"), resource.MustParse("4Mi")
	initial := newNode(&Node{Name: "n", HostName: "h", Labels: map[string]string{
		"own": "1", v1.LabelTopologyZone: "z", v1.LabelTopologyRegion: "",
	}}, &f)
	existing := &v1.Node{ObjectMeta: metav1.ObjectMeta{
		Labels:      map[string]string{"other": "x", "own": "old", v1.LabelHostname: "old", v1.LabelTopologyRegion: "old"},
		Annotations: map[string]string{"a": "b"},
	}, Spec: v1.NodeSpec{Unschedulable: true, Taints: []v1.Taint{{Key: "t"}}}}
	existing.Status.Capacity = list("cpu=1 hugepages-1Gi=1Gi example.com/gpu=2")
	existing.Status.Allocatable = list("cpu=1 hugepages-1Gi=1Gi example.com/gpu=2")
	node, changed := reconcile(initial, existing)
	if !changed || !node.Spec.Unschedulable || len(node.Spec.Taints) != 1 || len(node.Annotations) != 1 {
		t.Errorf("%v, %+v", changed, node)
	}
	labels := fmt.Sprint(node.Labels)
	if want := "map[beta.kubernetes.io/arch:" + initial.Labels[oldLabelArch] + " beta.kubernetes.io/os:linux kubernetes.io/arch:" +
		initial.Labels[oldLabelArch] + " kubernetes.io/hostname:h kubernetes.io/os:linux other:x own:old topology.kubernetes.io/zone:z]"; labels != want {
		t.Errorf("%s\n%s", labels, want)
	}
	pages, gpus, cpus := node.Status.Capacity["hugepages-2Mi"], node.Status.Capacity["example.com/gpu"], node.Status.Capacity["cpu"]
	if len(node.Status.Capacity) != 3 || pages.String() != "4Mi" || gpus.Value() != 2 || cpus.Value() != 1 {
		t.Error(node.Status.Capacity)
	}
	if !resetDevices(&node.Status) || resetDevices(&node.Status) {
		t.Error("the devices of an earlier machine are not removed, or twice")
	}
	gpus, cpus = node.Status.Allocatable["example.com/gpu"], node.Status.Allocatable["cpu"]
	if len(node.Status.Allocatable) != 3 || !gpus.IsZero() || cpus.Value() != 1 {
		t.Error(node.Status.Allocatable)
	}
	if _, again := reconcile(initial, node); again {
		t.Error("a second time changes something")
	}
	if _, empty := reconcile(initial, &v1.Node{}); !empty {
		t.Error("nothing is set on an empty Node")
	}
}

// TestUpdate checks which changes of facts change the status, and the events that follow.
func TestUpdate(t *testing.T) {
	both := []v1.NodeConditionType{v1.NodeDiskPressure, v1.NodeMemoryPressure}
	for name, c := range map[string]struct {
		change     func(*Facts)
		conditions string
		changed    bool
		events     string
	}{
		"nothing": {func(*Facts) {}, "", false, ""},
		"memory and disk": {
			func(f *Facts) { f.Pressures = both }, "MemoryPressure=True@12:05 DiskPressure=True@12:05", true,
			"NodeHasInsufficientMemory NodeHasDiskPressure",
		},
		"process IDs": {
			func(f *Facts) { f.Pressures = []v1.NodeConditionType{v1.NodePIDPressure} }, "PIDPressure=True@12:05", true, "NodeHasInsufficientPID",
		},
		"pressure is not known":     {func(f *Facts) { f.Pressures = nil }, "", false, ""},
		"not ready":                 {func(f *Facts) { f.Causes = []string{"x"} }, "Ready=False@12:05", true, "NodeNotReady"},
		"a reboot":                  {func(f *Facts) { f.Machine.BootID = "b2" }, "", true, "Rebooted"},
		"an image":                  {func(f *Facts) { f.Runtime.Images = f.Runtime.Images[:0] }, "", true, ""},
		"images are not known":      {func(f *Facts) { f.Runtime.Images = nil }, "", false, ""},
		"the runtime is not known":  {func(f *Facts) { f.Runtime = nil }, "", false, ""},
		"the version is not known":  {func(f *Facts) { f.Runtime.Version = "" }, "", false, ""},
		"no address is known":       {func(f *Facts) { f.Addresses = Addresses(nil, "h") }, "", false, ""},
		"capacity":                  {func(f *Facts) { f.Capacity["memory"] = resource.MustParse("2Gi") }, "", true, ""},
		"capacity is not measured":  {func(f *Facts) { delete(f.Capacity, "memory") }, "", false, ""},
		"capacity in another form":  {func(f *Facts) { f.Capacity["memory"] = resource.MustParse("1024Mi") }, "", false, ""},
		"the amount for pods":       {func(f *Facts) { f.Allocatable["cpu"] = resource.MustParse("2") }, "", true, ""},
		"swap":                      {func(f *Facts) { f.Machine.SwapBytes = 7 }, "", true, ""},
		"the port":                  {func(f *Facts) { f.Port++ }, "", true, ""},
		"a handler":                 {func(f *Facts) { f.Runtime.Handlers = f.Runtime.Handlers[:1] }, "", true, ""},
		"features are not reported": {func(f *Facts) { f.Runtime.Features = nil }, "", false, ""},
	} {
		f := usualFacts()
		before := newNode(&Node{Name: "n"}, &f)
		before.Status.Conditions = slices.Insert(before.Status.Conditions, 0, v1.NodeCondition{Type: "Other", Status: v1.ConditionTrue})
		before.Status.Capacity["example.com/gpu"] = resource.MustParse("3")
		before = withFacts(before, &f)
		runtime := *f.Runtime
		f.Runtime, f.Now = &runtime, noon.Add(5*time.Minute)
		copied := before.DeepCopy()
		c.change(&f)
		now := withFacts(before, &f)
		want := "Other=True@00:00 MemoryPressure=False@12:00 DiskPressure=False@12:00 PIDPressure=False@12:00 Ready=True@12:00"
		for condition := range strings.FieldsSeq(c.conditions) {
			kind, _, _ := strings.Cut(condition, "=")
			for old := range strings.FieldsSeq(want) {
				if strings.HasPrefix(old, kind+"=") {
					want = strings.Replace(want, old, condition, 1)
				}
			}
		}
		if got := show(now); got != want {
			t.Errorf("%s: %s", name, got)
		}
		if got := hasChanged(before, now); got != c.changed {
			t.Errorf("%s: changed %v", name, got)
		}
		if got := conditionsChanged(before, now); got != (c.conditions != "") {
			t.Errorf("%s: conditions changed %v", name, got)
		}
		if got := reasons(eventsOf(before, now)); got != c.events {
			t.Errorf("%s: %s", name, got)
		}
		gpus := now.Status.Allocatable["example.com/gpu"]
		if beat := now.Status.Conditions[4].LastHeartbeatTime; !beat.Time.Equal(f.Now) || gpus.Value() != 3 {
			t.Errorf("%s: %v, %v", name, beat, now.Status.Allocatable)
		}
		if hasChanged(copied, before) {
			t.Errorf("%s: the existing Node was changed", name)
		}
	}
}

// TestUnknown checks that facts that are not known leave a status as it is.
func TestUnknown(t *testing.T) {
	f := usualFacts()
	f.Pressures = []v1.NodeConditionType{v1.NodeDiskPressure}
	before := newNode(&Node{Name: "n"}, &f)
	f.Pressures = nil
	runtime := *f.Runtime
	f.Runtime = &runtime
	f.Runtime.Images, f.Runtime.Handlers = nil, f.Runtime.Handlers[:1]
	now := withFacts(before, &f)
	if statusOf(now, v1.NodeDiskPressure) != v1.ConditionTrue || len(now.Status.Images) != 1 || len(now.Status.RuntimeHandlers) != 1 {
		t.Errorf("%+v", now.Status)
	}
}

// TestEventTexts checks messages and types of events.
func TestEventTexts(t *testing.T) {
	f := usualFacts()
	before := newNode(&Node{Name: "n"}, &f)
	f.Machine.BootID, f.Causes = "b2", []string{"x"}
	now := withFacts(before, &f)
	want := []Event{
		{"Warning", "Rebooted", "Node n has been rebooted, boot id: b2"}, {"Normal", "NodeNotReady", "Node n status is now: NodeNotReady"},
	}
	if got := eventsOf(before, now); !slices.Equal(got, want) {
		t.Error(got)
	}
	if got := eventsOf(now, before); got[1] != statusEvent("n", "NodeReady") {
		t.Error(got)
	}
	if got := []Event{schedulable(now), starting()}; got[0].Reason != "NodeSchedulable" || got[1].Reason != "Starting" {
		t.Error(got)
	}
	now.Spec.Unschedulable = true
	if got := schedulable(now); got.Message != "Node n status is now: NodeNotSchedulable" {
		t.Error(got)
	}
}

// TestReadiness checks the message of a node that is not ready.
func TestReadiness(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		want   string
	}{
		"ready":     {func(*Facts) {}, "KubeletReady: kubelet is posting ready status"},
		"one cause": {func(f *Facts) { f.Causes = []string{"a"} }, "KubeletNotReady: a"},
		"equal":     {func(f *Facts) { f.Causes = []string{"a", "a", "b"} }, "KubeletNotReady: [a, b]"},
		"capacity": {
			func(f *Facts) { f.Capacity, f.Causes = list("cpu=1 pods=1"), []string{"a"} },
			"KubeletNotReady: [a, missing node capacity for resources: memory, ephemeral-storage]",
		},
	} {
		f := usualFacts()
		c.change(&f)
		ready := newNode(&Node{}, &f).Status.Conditions[3]
		if got := ready.Reason + ": " + ready.Message; got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestPace checks when a status without changes is sent.
func TestPace(t *testing.T) {
	if !(pace{}).Due(noon) {
		t.Error("the first status is not due")
	}
	for name, c := range map[string]struct {
		last    pace
		changed bool
		random  float64
		due     time.Duration
	}{
		"the first, early":    {pace{}, false, 0, 150 * time.Second},
		"the first, late":     {pace{}, false, 0.9, 420 * time.Second},
		"a change":            {pace{Sent: noon, Shift: time.Hour}, true, 0.5, 300 * time.Second},
		"without a change":    {pace{Sent: noon, Shift: time.Hour}, false, 0, 300 * time.Second},
		"a change, some time": {pace{Sent: noon}, true, 0.25, 225 * time.Second},
	} {
		next := c.last.Next(noon, c.changed, c.random)
		if next.Due(noon.Add(c.due-time.Millisecond)) || !next.Due(noon.Add(c.due+time.Millisecond)) {
			t.Errorf("%s: %+v", name, next)
		}
	}
	if a, b := pause(0), pause(1); a != 10*time.Second || b != 10400*time.Millisecond {
		t.Error(a, b)
	}
}

// TestCauses checks for which reasons a node is not ready.
func TestCauses(t *testing.T) {
	facts := &RuntimeFacts{}
	for name, c := range map[string]struct {
		state    RuntimeState
		relisted time.Time
		shutdown bool
		want     []string
	}{
		"ready": {RuntimeState{Facts: facts, ReadyAt: noon}, noon, false, nil},
		"never": {RuntimeState{}, time.Time{}, false, []string{
			"container runtime status check may not have completed yet", "PLEG is not healthy: pleg has yet to be successful", "network state unknown",
		}},
		"just up":   {RuntimeState{Facts: facts, ReadyAt: noon.Add(-29 * time.Second)}, noon, false, nil},
		"down":      {RuntimeState{Facts: facts, ReadyAt: noon.Add(-30 * time.Second)}, noon, false, []string{"container runtime is down"}},
		"no events": {RuntimeState{Facts: facts, ReadyAt: noon}, noon.Add(-3 * time.Minute), false, nil},
		"no events for long": {
			RuntimeState{Facts: facts, ReadyAt: noon},
			noon.Add(-5*time.Minute - time.Second), false,
			[]string{"PLEG is not healthy: pleg was last seen active 5m0s ago; threshold is 3m0s"},
		},
		"all": {
			RuntimeState{Facts: facts, ReadyAt: noon, Runtime: "r", Network: "n"},
			noon, true,
			[]string{"r", "n", "node is shutting down"},
		},
	} {
		if got := c.state.Causes(noon, c.relisted, c.shutdown); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestAnswers checks the state after an answer of the runtime.
func TestAnswers(t *testing.T) {
	condition := func(kind string, ok bool) *runtimeapi.RuntimeCondition {
		return &runtimeapi.RuntimeCondition{Type: kind, Status: ok, Reason: "R", Message: "m"}
	}
	reply := func(c ...*runtimeapi.RuntimeCondition) *runtimeapi.StatusResponse {
		return &runtimeapi.StatusResponse{
			Status: &runtimeapi.RuntimeStatus{Conditions: c}, Features: &runtimeapi.RuntimeFeatures{SupplementalGroupsPolicy: true},
			RuntimeHandlers: []*runtimeapi.RuntimeHandler{{Name: "b", Features: &runtimeapi.RuntimeHandlerFeatures{UserNamespaces: true}}, {Name: "a"}},
		}
	}
	up := RuntimeState{}.answered(noon, reply(condition("RuntimeReady", true), condition("NetworkReady", true)), "c://1")
	if h := up.Facts.Handlers; up.ReadyAt != noon || up.Runtime+up.Network != "" || len(h) != 2 || h[0].Name != "a" ||
		!*h[1].Features.UserNamespaces || !*up.Facts.Features.SupplementalGroupsPolicy || up.Facts.Version != "c://1" {
		t.Errorf("%+v", up)
	}
	down := up.answered(noon.Add(time.Minute), reply(condition("NetworkReady", false)), "")
	if down.ReadyAt != noon || down.Runtime != "container runtime not ready: <nil>" || down.Facts.Version != "c://1" ||
		down.Network != "container runtime network not ready: NetworkReady=false reason:R message:m" || len(down.Facts.Handlers) != 2 {
		t.Errorf("%+v", down)
	}
}

// TestEarlyState checks until when the first answer and the first list of a runtime are awaited.
func TestEarlyState(t *testing.T) {
	for name, c := range map[string]struct {
		answered, relisted time.Time
		after              time.Duration
		want               bool
	}{
		"no answer":             {time.Time{}, time.Time{}, 29 * time.Second, true},
		"no list":               {noon, time.Time{}, 29 * time.Second, true},
		"a list, no answer":     {time.Time{}, noon, 29 * time.Second, true},
		"no list for long":      {noon, time.Time{}, 30 * time.Second, false},
		"no answer for long":    {time.Time{}, noon, 30 * time.Second, false},
		"an answer, and a list": {noon, noon, 0, false},
	} {
		s := RuntimeState{Begun: noon, ReadyAt: c.answered}
		if got := s.Early(noon.Add(c.after), c.relisted); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestImages checks selection, order and names of images.
func TestImages(t *testing.T) {
	var all []*runtimeapi.Image
	for i := range 60 {
		all = append(all, &runtimeapi.Image{Id: fmt.Sprintf("i%02d", i), Size: uint64(i / 2), RepoTags: []string{fmt.Sprintf("t%02d", i)}})
	}
	all[59].RepoTags, all[59].RepoDigests = []string{"c", "b", "a", "d"}, []string{"y@1", "x@1"}
	got := imagesOf(all)
	if len(got) != 50 || !slices.Equal(got[0].Names, []string{"x@1", "y@1", "a", "b", "c"}) || got[1].Names[0] != "t58" || got[49].Names[0] != "t10" {
		t.Error(got)
	}
	slices.Reverse(all)
	if again := imagesOf(all); fmt.Sprint(again) != fmt.Sprint(got) {
		t.Error("the order depends on that of the runtime")
	}
	if got := imagesOf(nil); got == nil || len(got) != 0 {
		t.Errorf("%#v", got)
	}
}
