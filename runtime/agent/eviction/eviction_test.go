package eviction

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/admission"
)

// TestParse covers the kubelet's cases in TestParseThresholdConfig and TestParsePercentage.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "",
		"memory.available<150Mi": "memory.available<150Mi",
		Default: "memory.available<100Mi nodefs.available<10% nodefs.inodesFree<5% " +
			"imagefs.available<15% imagefs.inodesFree<5%",
		" nodefs.available < 10.5% , memory.available<1Gi": "memory.available<1Gi nodefs.available<10.5%",
		"memory.available<0%,imagefs.available<100%":       "",
		"pid.available<1k,imagefs.inodesFree<0.5%":         "imagefs.inodesFree<0.5% pid.available<1k",
	} {
		all, err := Texts{Hard: text}.Parse()
		var got []string
		for _, one := range all {
			got = append(got, string(one.Signal)+"<"+one.Value())
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %v %v", text, got, err)
		}
	}
	for _, text := range []string{
		"memory.available", "mem.available<1Gi", "containerfs.available<1%", "memory.available<-150Mi",
		"memory.available<0", "memory.available<-15%",
		"memory.available<101%", "memory.available<a%", "memory.available<", "memory.available<1Gi,memory.available<2Gi",
	} {
		if all, err := (Texts{Hard: text}).Parse(); err == nil {
			t.Errorf("%q: %v", text, all)
		}
	}
}

// TestWithAllocatable covers the kubelet's cases of addAllocatableThresholds in TestParseThresholdConfig.
func TestWithAllocatable(t *testing.T) {
	all, err := Texts{
		Hard: "nodefs.available<10%,memory.available<150Mi", Soft: "memory.available<1Gi",
		SoftGracePeriod: "memory.available=1m", MinimumReclaim: "memory.available=5Mi",
	}.Parse()
	if err != nil {
		t.Fatal(err)
	}
	before := len(all)
	var got []string
	for _, one := range WithAllocatable(all) {
		got = append(got, fmt.Sprintf("%s<%s %s %s", one.Signal, one.Value(), one.Grace, one.MinReclaim.Value()))
	}
	want := []string{
		"memory.available<150Mi 0s 5Mi", "memory.available<1Gi 1m0s 5Mi", "allocatableMemory.available<150Mi 0s 5Mi",
		"nodefs.available<10% 0s 0%",
	}
	if !slices.Equal(got, want) || len(all) != before {
		t.Errorf("%q", got)
	}
}

func thresholds(t *testing.T, text string) []Threshold {
	t.Helper()
	all, err := Texts{Hard: text}.Parse()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// amounts returns the amounts of one file system for each signal.
func amounts(left map[Signal]Amount) map[Signal][]Amount {
	all := map[Signal][]Amount{}
	for s, a := range left {
		all[s] = []Amount{a}
	}
	return all
}

// TestKeptFree checks which thresholds take resources from pods.
func TestKeptFree(t *testing.T) {
	capacity := v1.ResourceList{
		v1.ResourceMemory: resource.MustParse("1Gi"), v1.ResourceEphemeralStorage: resource.MustParse("1000"),
		v1.ResourceCPU: resource.MustParse("2"),
	}
	for text, want := range map[string]string{
		Default: "memory 924Mi, disk 900",
		"":      "memory 1Gi, disk 1k",
		"memory.available<24Mi,nodefs.available<400,imagefs.available<50%,pid.available<10%": "memory 1000Mi, disk 600",
		"memory.available<2Gi": "memory 0, disk 1k",
	} {
		thresholds, err := Texts{Hard: text}.Parse()
		if err != nil {
			t.Fatal(err)
		}
		_, left := (&admission.Settings{KeptFree: KeptFree(thresholds)}).NodeResources(capacity)
		memory, disk := left[v1.ResourceMemory], left[v1.ResourceEphemeralStorage]
		if got := "memory " + memory.String() + ", disk " + disk.String(); got != want || left.Cpu().Value() != 2 {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestMet covers the kubelet's TestThresholdsMet, TestPercentageThresholdsMet and TestSortByEvictionPriority.
func TestMet(t *testing.T) {
	const set = "nodefs.available<10%,memory.available<1Ki,nodefs.inodesFree<5%,pid.available<10"
	for name, c := range map[string]struct {
		left map[Signal]Amount
		want string
	}{
		"nothing is known": {nil, ""},
		"all is well":      {map[Signal]Amount{MemoryAvailable: {2048, 4096}, NodeFsAvailable: {11, 100}}, ""},
		"at the threshold": {map[Signal]Amount{MemoryAvailable: {1024, 4096}, NodeFsAvailable: {10, 100}}, ""},
		"below, in bytes":  {map[Signal]Amount{MemoryAvailable: {1023, 4096}}, "memory.available"},
		"below, in percent": {
			map[Signal]Amount{NodeFsAvailable: {9, 100}, NodeFsInodesFree: {4, 100}},
			"nodefs.available nodefs.inodesFree",
		},
		"memory comes first": {
			map[Signal]Amount{NodeFsAvailable: {0, 100}, PIDAvailable: {0, 100}, MemoryAvailable: {0, 100}},
			"memory.available nodefs.available pid.available",
		},
		"a signal without limit": {map[Signal]Amount{ImageFsAvailable: {0, 100}}, ""},
	} {
		var got []string
		now, _ := newTracker(thresholds(t, set)).update(time.Time{}, &Measurement{Left: amounts(c.left)})
		for _, one := range now {
			got = append(got, string(one.Signal))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %s, want %s", name, text, c.want)
		}
	}
}

// TestPressure covers the kubelet's TestNodeConditions, TestNodeConditionsLastObservedAt and
// TestNodeConditionsObservedSince: a condition lasts five minutes longer than its cause.
func TestPressure(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := Pressure{}
	for _, step := range []struct {
		after time.Duration
		met   string
		want  string
	}{
		{0, "", "[]"},
		{time.Minute, "memory.available<1", "[MemoryPressure]"},
		{2 * time.Minute, "nodefs.available<1,imagefs.inodesFree<1,pid.available<1", "[DiskPressure MemoryPressure PIDPressure]"},
		{6*time.Minute - 1, "", "[DiskPressure MemoryPressure PIDPressure]"},
		{6 * time.Minute, "imagefs.available<1", "[DiskPressure PIDPressure]"},
		{7 * time.Minute, "", "[DiskPressure]"},
		{11*time.Minute - 1, "", "[DiskPressure]"},
		{11 * time.Minute, "", "[]"},
	} {
		if got := fmt.Sprint(p.Update(start.Add(step.after), DefaultTransition, thresholds(t, step.met))); got != step.want {
			t.Errorf("after %s: %s, want %s", step.after, got, step.want)
		}
	}
}

// ranked is a pod for a ranking: its name, priority, request and usage.
type ranked struct {
	name     string
	priority int32
	request  string
	usage    string
}

// order ranks pods for a signal. Their usage is memory, files of a kind, or processes.
func order(s Signal, own bool, kind string, pods []ranked) string {
	var all []*v1.Pod
	usage := map[types.UID]*Usage{}
	for _, p := range pods {
		pod := &v1.Pod{Spec: v1.PodSpec{Priority: &p.priority, Containers: []v1.Container{{Name: "a"}}}}
		pod.Name, pod.UID = p.name, types.UID(p.name)
		if p.request != "" {
			pod.Spec.Containers[0].Resources.Requests = v1.ResourceList{s.resource(): resource.MustParse(p.request)}
		}
		all = append(all, pod)
		quantity := resource.MustParse(p.usage)
		used := quantity.Value()
		u := &Usage{Containers: []ContainerUsage{{Name: "a", Memory: new(int64(0)), Root: &Disk{}, Logs: &Disk{}}}}
		switch kind {
		case "memory":
			u.Containers[0].Memory = &used
		case "root":
			u.Containers[0].Root = &Disk{used, used}
		case "logs":
			u.Containers[0].Logs = &Disk{used, used}
		case "volumes":
			u.Volumes = []VolumeUsage{{Name: "v", Disk: Disk{used, used}, Local: true}}
		case "processes":
			u.Processes = used
		}
		usage[pod.UID] = u
	}
	slices.Reverse(all)
	var names []string
	for _, pod := range rank(s, &Measurement{OwnImageFs: own}, all, usage) {
		names = append(names, pod.Name)
	}
	return strings.Join(names, " ")
}

// TestRank covers the kubelet's TestOrderedByExceedsRequestMemory, TestOrderedByExceedsRequestDisk,
// TestOrderedByPriority, TestOrderedbyDisk, TestOrderedbyInodes, TestOrderedByPriorityDisk,
// TestOrderedByPriorityInodes, TestOrderedByMemory, TestOrderedByPriorityMemory and TestOrderedByPriorityProcess. The
// input is in the opposite order.
func TestRank(t *testing.T) {
	byMemory := []ranked{
		{"above-low-most", 1, "", "900Mi"},
		{"above-low", 1, "100Mi", "300Mi"},
		{"above-high", 2, "", "800Mi"},
		{"below-low-most", 1, "1Gi", "900Mi"},
		{"below-low", 1, "1Gi", "100Mi"},
		{"below-high", 2, "1Gi", "1Gi"},
	}
	byFiles := []ranked{
		{"above-low-most", -1, "", "900"},
		{"above-low", -1, "", "300"},
		{"above-high", 0, "", "800"},
		{"none", -1, "", "0"},
	}
	byProcesses := []ranked{
		{"low-most", -5, "", "200"},
		{"low", -5, "", "20"},
		{"high-most", 0, "", "300"},
		{"high", 0, "", "1"},
	}
	for name, c := range map[string]struct {
		signal Signal
		own    bool
		kind   string
		pods   []ranked
	}{
		"memory":                       {MemoryAvailable, false, "memory", byMemory},
		"bytes of writable layers":     {NodeFsAvailable, false, "root", byMemory},
		"bytes of logs":                {NodeFsAvailable, true, "logs", byMemory},
		"bytes of volumes":             {NodeFsAvailable, true, "volumes", byMemory},
		"bytes of layers, own disk":    {ImageFsAvailable, true, "root", byMemory},
		"bytes of volumes, one disk":   {ImageFsAvailable, false, "volumes", byMemory},
		"inodes of volumes":            {NodeFsInodesFree, true, "volumes", byFiles},
		"inodes of layers, own disk":   {ImageFsInodesFree, true, "root", byFiles},
		"processes, whatever is asked": {PIDAvailable, false, "processes", byProcesses},
	} {
		var want []string
		for _, p := range c.pods {
			want = append(want, p.name)
		}
		if got := order(c.signal, c.own, c.kind, c.pods); got != strings.Join(want, " ") {
			t.Errorf("%s:\n got %s\nwant %s", name, got, strings.Join(want, " "))
		}
	}
}

// TestDiskOfSignal checks that writable layers count on a separate file system of images, if there is one. Logs and
// volumes then count on the file system of the node.
func TestDiskOfSignal(t *testing.T) {
	u := &Usage{
		Containers: []ContainerUsage{{Root: &Disk{1, 10}, Logs: &Disk{2, 20}}, {Root: &Disk{4, 40}}},
		Volumes:    []VolumeUsage{{Disk: Disk{8, 80}, Local: true}, {Disk: Disk{16, 160}}},
		Hosts:      Disk{32, 320},
	}
	for _, c := range []struct {
		signal Signal
		own    bool
		want   Disk
	}{
		{NodeFsAvailable, false, Disk{15, 150}},
		{ImageFsAvailable, false, Disk{15, 150}},
		{NodeFsAvailable, true, Disk{10, 100}},
		{ImageFsInodesFree, true, Disk{5, 50}},
	} {
		if got := u.disk(c.signal, &Measurement{OwnImageFs: c.own}); got != c.want {
			t.Errorf("%s, own %v: %v, want %v", c.signal, c.own, got, c.want)
		}
	}
}

// TestMessage covers the cases of the kubelet's TestEvictionMessage, without the annotations of events, which podctl
// does not have.
func TestMessage(t *testing.T) {
	always := v1.ContainerRestartPolicyAlways
	asks := func(name, memory string) v1.Container {
		c := v1.Container{Name: name}
		if memory != "" {
			c.Resources.Requests = v1.ResourceList{v1.ResourceMemory: resource.MustParse(memory)}
		}
		return c
	}
	sidecar := asks("sidecar", "200Mi")
	sidecar.RestartPolicy = &always
	pod := &v1.Pod{Spec: v1.PodSpec{
		InitContainers:      []v1.Container{asks("init", "100Mi"), sidecar},
		Containers:          []v1.Container{asks("app", "200Mi"), asks("free", "")},
		EphemeralContainers: []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug"}}},
	}}
	pod.Name = "web"
	whole := pod.DeepCopy()
	whole.Spec.Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceMemory: resource.MustParse("300Mi")}}
	const low = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. "
	for name, c := range map[string]struct {
		pod  *v1.Pod
		uses string
		want string
	}{
		"no container exceeds memory usage": {pod, "sidecar=150Mi app=100Mi", ""},
		"an init container does": {
			pod,
			"init=150Mi",
			"Container init was using 150Mi, request is 100Mi, has larger consumption of memory. ",
		},
		"a sidecar does": {
			pod,
			"sidecar=250Mi app=200Mi",
			"Container sidecar was using 250Mi, request is 200Mi, has larger consumption of memory. ",
		},
		"a container without a request does": {
			pod,
			"app=1Mi free=40Ki",
			"Container free was using 40Ki, request is 0, has larger consumption of memory. ",
		},
		"a debug container is not blamed":        {pod, "debug=1Gi", ""},
		"one that is not in the manifest is not": {pod, "gone=1Gi", ""},
		"several": {
			pod,
			"app=201Mi free=1Mi",
			"Container app was using 201Mi, request is 200Mi, has larger consumption of memory. " +
				"Container free was using 1Mi, request is 0, has larger consumption of memory. ",
		},
		"the request of the whole pod is reported": {
			whole,
			"app=150Mi",
			"Pod web was using 150Mi, request is 300Mi, has larger consumption of memory. ",
		},
	} {
		usage := &Usage{}
		for word := range strings.FieldsSeq(c.uses) {
			container, used, _ := strings.Cut(word, "=")
			quantity := resource.MustParse(used)
			usage.Containers = append(usage.Containers, ContainerUsage{Name: container, Memory: new(quantity.Value())})
		}
		memory := thresholds(t, Default)[0]
		if got, _ := explain(&memory, Amount{50 << 20, 1 << 30}, c.pod, usage); got != low+c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, low+c.want)
		}
	}
}

// TestMessageOfDisk checks the messages about disk and inodes (kubelet: TestDiskPressureNodeFs_VerifyPodStatus).
func TestMessageOfDisk(t *testing.T) {
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "a"}}}}
	usage := &Usage{Containers: []ContainerUsage{{Name: "a", Root: &Disk{1 << 20, 5}, Logs: &Disk{2 << 20, 5}}}}
	all := thresholds(t, Default)
	for i, want := range []string{
		1: "The node was low on resource: ephemeral-storage. Threshold quantity: 104857601, available: 50Mi. " +
			"Container a was using 3Mi, request is 0, has larger consumption of ephemeral-storage. ",
		2: "The node was low on resource: inodes. Threshold quantity: 50Mi, available: 52428800. ",
	} {
		if want == "" {
			continue
		}
		if got, _ := explain(&all[i], Amount{50 << 20, 1000 << 20}, pod, usage); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestAnnotations checks the annotations of the event (kubelet: evictionMessage).
func TestAnnotations(t *testing.T) {
	plain := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "a"}, {Name: "b"}, {Name: "c"}}}}
	whole := plain.DeepCopy()
	whole.Name = "web"
	whole.Spec.Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{"memory": resource.MustParse("1Mi")}}
	usage := &Usage{Containers: []ContainerUsage{{Name: "a", Memory: new(int64(1 << 20))}, {Name: "b"}, {Name: "c", Memory: new(int64(2 << 20))}}}
	const containers = "offending_containers:a,c offending_containers_usage:1Mi,2Mi "
	for _, c := range []struct {
		signal Signal
		pod    *v1.Pod
		want   string
	}{
		{MemoryAvailable, plain, "map[" + containers + "starved_resource:memory]"},
		{MemoryAvailable, whole, "map[" + containers + "offending_pod:web offending_pod_usage:3Mi starved_resource:memory]"},
		{PIDAvailable, plain, "map[offending_containers: offending_containers_usage: starved_resource:pids]"},
	} {
		_, got := explain(&Threshold{Signal: c.signal}, Amount{1, 2}, c.pod, usage)
		if text := fmt.Sprint(got); text != c.want {
			t.Errorf("%s: %s, want %s", c.signal, text, c.want)
		}
	}
}
