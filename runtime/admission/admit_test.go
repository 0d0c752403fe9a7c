package admission

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

// node is a machine with ten cores, 1100 MiB of memory and 1000 bytes of disk. Eviction keeps 100 MiB and 100 bytes
// free.
func node() *model.Machine {
	no := false
	return &model.Machine{
		Name: "here", Labels: map[string]string{v1.LabelOSStable: "linux", v1.LabelArchStable: "amd64", v1.LabelHostname: "here"},
		Capacity: v1.ResourceList{
			v1.ResourceCPU:              resource.MustParse("10"),
			v1.ResourceMemory:           resource.MustParse("1100Mi"),
			v1.ResourceEphemeralStorage: resource.MustParse("1000"),
			"hugepages-2Mi":             resource.MustParse("0"),
		},
		AppArmor: &no, SupplementalGroups: &no,
	}
}

const containers = "  containers: [{name: a, image: i:1}]\n"

// asks returns a pod with one container that has requests.
func asks(requests string) string {
	return "  containers: [{name: a, image: i:1, resources: {requests: {" + requests + "}}}]\n"
}

// taken returns other pods of the node with requests in the form "cpu: 1, memory: 1Gi".
func taken(t *testing.T, requests ...string) []model.Admitted {
	t.Helper()
	var others []model.Admitted
	for i, one := range requests {
		d := modeltest.Load(t, modeltest.Pod(asks(one)))
		d.Pod.UID = types.UID(strings.Repeat("u", i+1))
		others = append(others, TakenBy(d.Pod))
	}
	return others
}

// text returns a rejection in one line; empty for none.
func text(r *model.Rejection) string {
	if r == nil {
		return ""
	}
	return string(r.Reason) + ": " + r.Message
}

// judged returns the rejection of a pod on a node with others.
func judged(t *testing.T, spec string, s *Settings, others []model.Admitted) string {
	t.Helper()
	return text(Admit(&Request{Pod: modeltest.Load(t, modeltest.Pod(spec)).Pod, Others: others, Machine: node(), Settings: s}))
}

func outOfText(name, requested, used, capacity string) string {
	return "OutOf" + name + ": Node didn't have enough resource: " +
		name + ", requested: " + requested + ", used: " + used + ", capacity: " + capacity
}

// TestAdmit has the cases of the kubelet's TestGeneralPredicates, TestHandleNodeSelector,
// TestHandleNodeSelectorBasedOnOS, TestHandleMemExceeded, TestHandlePluginResources,
// TestRemoveMissingExtendedResources, TestRejectPodAdmissionBasedOnOSSelector, TestRejectPodAdmissionBasedOnOSField and
// TestPodAdmissionBasedOnSupplementalGroupsPolicy. As in a kubelet with pods of its files (applyDefaults), a pod that
// names another node counts as a pod of this one. TestHandleHostNameConflicts therefore has no counterpart that
// rejects.
func TestAdmit(t *testing.T) {
	five := []string{"cpu: 5, memory: 500Mi"}
	for name, c := range map[string]struct {
		spec   string
		others []string
		want   string
	}{
		"no requests":             {containers, five, ""},
		"the remaining resources": {asks("cpu: 5, memory: 500Mi"), five, ""},
		"too much cpu":            {asks("cpu: 8, memory: 100Mi"), five, outOfText("cpu", "8000", "5000", "10000")},
		"too much memory":         {asks("cpu: 1, memory: 600Mi"), five, outOfText("memory", "629145600", "524288000", "1048576000")},
		"both: cpu is the first":  {asks("cpu: 8, memory: 600Mi"), five, outOfText("cpu", "8000", "5000", "10000")},
		"two others":              {asks("cpu: 1"), []string{"cpu: 5", "cpu: 4500m"}, outOfText("cpu", "1000", "9500", "10000")},
		"too much disk":           {asks("ephemeral-storage: 901"), nil, outOfText("ephemeral-storage", "901", "0", "900")},
		"enough disk":             {asks("ephemeral-storage: 900"), nil, ""},
		"huge pages": {
			"  containers: [{name: a, image: i:1, resources: {limits: {cpu: 1, hugepages-2Mi: 2Mi}}}]\n",
			nil,
			outOfText("hugepages-2Mi", "2097152", "0", "0"),
		},
		"an extended resource that the node has not": {
			"  containers: [{name: a, image: i:1, resources: {limits: {example.com/gpu: 1}}}]\n", nil, "",
		},
		"init containers count by the largest": {
			"  initContainers: [{name: b, image: i:1, resources: {requests: {cpu: 6}}}]\n" + asks("cpu: 1"), five,
			outOfText("cpu", "6000", "5000", "10000"),
		},
		"sidecars count with the rest": {
			"  initContainers: [{name: b, image: i:1, restartPolicy: Always, resources: {requests: {cpu: 3}}}]\n" + asks("cpu: 3"), five,
			outOfText("cpu", "6000", "5000", "10000"),
		},
		"overhead":     {"  overhead: {cpu: 1}\n" + asks("cpu: 5"), five, outOfText("cpu", "6000", "5000", "10000")},
		"another node": {"  nodeName: elsewhere\n" + containers, nil, ""},
		"this system":  {"  nodeSelector: {kubernetes.io/os: linux}\n  os: {name: linux}\n" + containers, nil, ""},
		"another selector": {
			"  nodeSelector: {kubernetes.io/os: windows}\n" + containers,
			nil,
			"NodeAffinity: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
		},
		"a label of the node": {
			"  nodeSelector: {disk: ssd}\n  affinity: {nodeAffinity: " +
				"{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: " +
				"[{matchFields: [{key: metadata.name, operator: In, values: [here]}]}]}}}\n" + containers, nil, "",
		},
		"no such label": {
			"  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: " +
				"[{matchExpressions: [{key: disk, operator: NotIn, values: [ssd]}]}]}}}\n" + containers,
			nil, "NodeAffinity: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
		},
		"strict groups": {
			"  securityContext: {supplementalGroupsPolicy: Strict}\n" + containers,
			nil,
			"SupplementalGroupsPolicyNotSupported: SupplementalGroupsPolicy=Strict is not supported in this node",
		},
		"merged groups": {"  securityContext: {supplementalGroupsPolicy: Merge}\n" + containers, nil, ""},
		"AppArmor": {
			"  containers: [{name: a, image: i:1, securityContext: {appArmorProfile: {type: RuntimeDefault}}}]\n", nil,
			"AppArmor: Cannot enforce AppArmor: AppArmor is not enabled on the host",
		},
		"no AppArmor": {"  securityContext: {appArmorProfile: {type: Unconfined}}\n" + containers, nil, ""},
		"the first reason counts": {
			"  securityContext: {supplementalGroupsPolicy: Strict, sysctls: [{name: kernel.msgmax, " +
				"value: '1'}], appArmorProfile: {type: RuntimeDefault}}\n" + asks("cpu: 20"),
			nil, `SysctlForbidden: forbidden sysctl: "kernel.msgmax" not allowlisted`,
		},
	} {
		s := &Settings{MaxPods: 110, Labels: map[string]string{"disk": "ssd"}}
		if diff := cmp.Diff(c.want, judged(t, c.spec, s, taken(t, c.others...))); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
	for name, c := range map[string]struct {
		change func(*v1.Pod)
		want   string
	}{
		"another system": {func(p *v1.Pod) {
			p.Spec.OS = &v1.PodOS{Name: v1.Windows}
		}, "PodOSNotSupported: Failed to admit pod as the OS field doesn't match node OS"},
		"label of another": {func(p *v1.Pod) {
			p.Labels = map[string]string{v1.LabelOSStable: "windows"}
		}, "PodOSSelectorNodeLabelDoesNotMatch: " +
			"Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"},
		"label of this": {func(p *v1.Pod) { p.Labels = map[string]string{v1.LabelOSStable: "linux"} }, ""},
		"AppArmor of before": {func(p *v1.Pod) {
			p.Annotations = map[string]string{"container.apparmor.security.beta.kubernetes.io/a": "runtime/default"}
		}, "AppArmor: Cannot enforce AppArmor: AppArmor is not enabled on the host"},
	} {
		pod := modeltest.Load(t, modeltest.Pod(containers)).Pod.DeepCopy()
		c.change(pod)
		if got := text(Admit(&Request{Pod: pod, Machine: node(), Settings: &Settings{}})); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestAllocatable checks that reserved resources, the minimum that eviction keeps free and huge pages are not available
// to pods, and that no amount is negative.
func TestAllocatable(t *testing.T) {
	s := &Settings{Reserved: v1.ResourceList{
		v1.ResourceCPU:              resource.MustParse("500m"),
		v1.ResourceMemory:           resource.MustParse("200Mi"),
		v1.ResourceEphemeralStorage: resource.MustParse("2000"),
	}}
	capacity := node().Capacity
	capacity["hugepages-2Mi"] = resource.MustParse("300Mi")
	got := s.Allocatable(capacity)
	for name, want := range map[v1.ResourceName]string{
		v1.ResourceCPU: "9500m", v1.ResourceMemory: "500Mi", v1.ResourceEphemeralStorage: "0", "hugepages-2Mi": "300Mi",
	} {
		if has := got[name]; has.Cmp(resource.MustParse(want)) != 0 {
			t.Errorf("%s: %s, want %s", name, has.String(), want)
		}
	}
	if got := s.Allocatable(v1.ResourceList{v1.ResourceMemory: {}}); len(got) > 0 {
		t.Errorf("of an unknown machine: %v", got)
	}
}

// TestLimits checks what all pods together may use: all resources that are not reserved, also those that eviction keeps
// free. Without enforcement, that is the whole machine.
func TestLimits(t *testing.T) {
	capacity := v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("2"), v1.ResourceMemory: resource.MustParse("1000Mi"),
		model.ResourcePIDs: resource.MustParse("4000"), "hugepages-2Mi": resource.MustParse("4Mi"),
	}
	for reserved, want := range map[string]string{
		"memory=200Mi":         "cpu 2, hugepages-2Mi 4Mi, memory 800Mi, pid 4k",
		"cpu=3,pid=1000":       "cpu 0, hugepages-2Mi 4Mi, memory 1000Mi, pid 3k",
		"memory=1000Mi":        "nothing is left for pods: 1000Mi of memory is reserved, and the machine has 1000Mi",
		"pid=5000":             "nothing is left for pods: 5k of pid is reserved, and the machine has 4k",
		"ephemeral-storage=1G": "cpu 2, hugepages-2Mi 4Mi, memory 1000Mi, pid 4k",
	} {
		s := &Settings{Enforce: true, Reserved: v1.ResourceList{}}
		for pair := range strings.SplitSeq(reserved, ",") {
			name, value, _ := strings.Cut(pair, "=")
			s.Reserved[v1.ResourceName(name)] = resource.MustParse(value)
		}
		if err := s.Check(); err != nil {
			t.Error(err)
		}
		if got := limitsText(s, capacity); got != want {
			t.Errorf("%s: %s, want %s", reserved, got, want)
		}
		s.Enforce = false
		if got := limitsText(s, capacity); got != "cpu 2, hugepages-2Mi 4Mi, memory 1000Mi, pid 4k" {
			t.Errorf("%s, not enforced: %s", reserved, got)
		}
	}
}

func limitsText(s *Settings, capacity v1.ResourceList) string {
	limits, err := s.Limits(capacity)
	if err != nil {
		return err.Error()
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		has := limits[name]
		texts = append(texts, string(name)+" "+has.String())
	}
	return strings.Join(texts, ", ")
}

// TestPodsAreCounted checks that a pod above the maximum is rejected before any other check.
func TestPodsAreCounted(t *testing.T) {
	two := taken(t, "cpu: 1", "cpu: 1")
	if got := judged(t, asks("cpu: 20"), &Settings{MaxPods: 2}, two); got != outOfText("pods", "1", "2", "2") {
		t.Error(got)
	}
	if got := judged(t, containers, &Settings{MaxPods: 3}, two); got != "" {
		t.Error(got)
	}
}

// TestPortConflicts has the cases of the kubelet's TestHandlePortConflicts, with addresses, protocols, and ports of
// pods on the node's network.
func TestPortConflicts(t *testing.T) {
	const reason = "NodePorts: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
	port := func(fields string) string {
		return "  containers: [{name: a, image: i:1, ports: [{containerPort: 80, " + fields + "}]}]\n"
	}
	host := "  hostNetwork: true\n  containers: [{name: a, image: i:1, ports: [{containerPort: 8080}]}]\n"
	for name, c := range map[string]struct {
		one, other string
		want       string
	}{
		"the same":              {port("hostPort: 8080"), port("hostPort: 8080"), reason},
		"another":               {port("hostPort: 8080"), port("hostPort: 8081"), ""},
		"another protocol":      {port("hostPort: 8080"), port("hostPort: 8080, protocol: UDP"), ""},
		"two addresses":         {port("hostPort: 8080, hostIP: 10.0.0.1"), port("hostPort: 8080, hostIP: 10.0.0.2"), ""},
		"one of all":            {port("hostPort: 8080, hostIP: 10.0.0.1"), port("hostPort: 8080, hostIP: 0.0.0.0"), reason},
		"in the node's network": {port("hostPort: 8080"), host, reason},
		"both are":              {host, host, reason},
		"none is published":     {port("name: web"), port("name: web"), ""},
		"of a sidecar": {port("hostPort: 8080"), "  initContainers: [{name: b, image: i:1, " +
			"restartPolicy: Always, ports: [{containerPort: 80, hostPort: 8080}]}]\n" + containers, reason},
		"of an init that is not": {
			port("hostPort: 8080"),
			"  initContainers: [{name: b, image: i:1, ports: [{containerPort: 80, hostPort: 8080}]}]\n" + containers,
			"",
		},
	} {
		other := modeltest.Load(t, modeltest.Pod(c.other)).Pod
		if got := judged(t, c.one, &Settings{}, []model.Admitted{TakenBy(other)}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestSysctls has the cases of the kubelet's TestAllowlist and TestNewAllowlist.
func TestSysctls(t *testing.T) {
	for name, c := range map[string]struct {
		sysctl, spec, want string
	}{
		"safe":                     {"kernel.shm_rmid_forced", "", ""},
		"with slashes":             {"net/ipv4/tcp_syncookies", "", ""},
		"unsafe":                   {"kernel.msgmax", "", `forbidden sysctl: "kernel.msgmax" not allowlisted`},
		"allowed":                  {"net.core.somaxconn", "", ""},
		"allowed by its beginning": {"kernel.sem", "", ""},
		"allowed by another":       {"net.ipv4.conf.all.rp_filter", "", ""},
		"another sysctl":           {"net.b.a", "", `forbidden sysctl: "net.b.a" not allowlisted`},
		"of the node's network": {
			"net.ipv4.tcp_syncookies",
			"  hostNetwork: true\n",
			`forbidden sysctl: "net.ipv4.tcp_syncookies" not allowed with host Net enabled`,
		},
		"of the node's IPC": {
			"kernel.shm_rmid_forced",
			"  hostIPC: true\n",
			`forbidden sysctl: "kernel.shm_rmid_forced" not allowed with host IPC enabled`,
		},
		"allowed, of the node's": {
			"net.core.somaxconn",
			"  hostNetwork: true\n",
			`forbidden sysctl: "net.core.somaxconn" not allowed with host Net enabled`,
		},
		"IPC and the node's network": {"kernel.shm_rmid_forced", "  hostNetwork: true\n", ""},
	} {
		pod := modeltest.Load(t, modeltest.Pod(c.spec+containers)).Pod.DeepCopy()
		pod.Spec.SecurityContext = &v1.PodSecurityContext{Sysctls: []v1.Sysctl{{Name: c.sysctl, Value: "1"}}}
		s := &Settings{UnsafeSysctls: []string{"kernel.sem*", "net.core.somaxconn", "net.ipv4.conf.*"}}
		want := c.want
		if want != "" {
			want = "SysctlForbidden: " + want
		}
		if got := text(Admit(&Request{Pod: pod, Machine: node(), Settings: s})); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for pattern, good := range map[string]bool{
		"kernel.msg*": true, "kernel.shmmax": true, "net.*": true, "fs.mqueue.*": true, "net/ipv4/conf/*": true,
		"kernel.hostname": false, "vm.swappiness": false, "*": false, "net.*.foo": false, "": false,
	} {
		if err := (&Settings{UnsafeSysctls: []string{pattern}}).Check(); (err == nil) != good {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}

// TestEdits checks that only the additional demand of an edit counts, also if more is in use than available.
func TestEdits(t *testing.T) {
	full := taken(t, "cpu: 12, memory: 900Mi")
	unsafe := "  securityContext: {sysctls: [{name: kernel.msgmax, value: '1'}]}\n"
	for name, c := range map[string]struct {
		before, after, want string
	}{
		"another image":     {asks("cpu: 3"), strings.Replace(asks("cpu: 3"), "i:1", "i:2", 1), ""},
		"less":              {asks("cpu: 3"), asks("cpu: 2"), ""},
		"more":              {asks("cpu: 3"), asks("cpu: 4"), outOfText("cpu", "4000", "12000", "10000")},
		"more of the other": {asks("cpu: 3, memory: 1Mi"), asks("cpu: 3, memory: 50Mi"), ""},
		"too much of it": {
			asks("cpu: 3, memory: 1Mi"),
			asks("cpu: 3, memory: 500Mi"),
			outOfText("memory", "524288000", "943718400", "1048576000"),
		},
		"an unsafe sysctl":   {containers, unsafe + containers, `SysctlForbidden: forbidden sysctl: "kernel.msgmax" not allowlisted`},
		"one that was there": {unsafe + containers, unsafe + asks("memory: 1Mi"), ""},
	} {
		r := &Request{
			Before: modeltest.Load(t, modeltest.Pod(c.before)).Pod, Pod: modeltest.Load(t, modeltest.Pod(c.after)).Pod,
			Others: full, Machine: node(), Settings: &Settings{MaxPods: 1},
		}
		if got := text(Admit(r)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestUnknownMachines checks that unknown facts are not a reason.
func TestUnknownMachines(t *testing.T) {
	spec := "  nodeSelector: {disk: ssd}\n  securityContext: {supplementalGroupsPolicy: Strict, " +
		"appArmorProfile: {type: RuntimeDefault}}\n" + asks("cpu: 99, memory: 99Gi, ephemeral-storage: 99Gi")
	pod := modeltest.Load(t, modeltest.Pod(spec)).Pod
	for _, m := range []*model.Machine{{}, {Capacity: v1.ResourceList{v1.ResourceCPU: resource.MustParse("100")}}} {
		if got := text(Admit(&Request{Pod: pod, Machine: m, Settings: &Settings{}})); got != "" {
			t.Errorf("%+v: %s", m, got)
		}
	}
}

// TestReservableResources checks that only resources that the system also uses can be reserved.
func TestReservableResources(t *testing.T) {
	for name, good := range map[v1.ResourceName]bool{
		v1.ResourceCPU:              true,
		v1.ResourceMemory:           true,
		v1.ResourceEphemeralStorage: true,
		"memroy":                    false,
		"hugepages-2Mi":             false,
	} {
		s := &Settings{Reserved: v1.ResourceList{name: resource.MustParse("1")}}
		if err := s.Check(); (err == nil) != good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTakenByUsesRequestsAndPorts checks that a pod uses its requests and its ports.
func TestTakenByUsesRequestsAndPorts(t *testing.T) {
	d := modeltest.Load(t, modeltest.Pod("  containers: [{name: a, image: i:1, ports: [{containerPort: 80, "+
		"hostPort: 8080}], resources: {limits: {cpu: 2}}}]\n"))
	got := TakenBy(d.Pod)
	if cpu := got.Requests[v1.ResourceCPU]; cpu.Value() != 2 || got.Pod.Name != "web" ||
		len(got.Ports) != 1 || got.Ports[0].Number != 8080 || got.Ports[0].Path != podspec.HostPorts(d.Pod)[0].Path {
		t.Errorf("%+v", got)
	}
}

// TestPressure has its own versions of the kubelet's TestAdmitUnderNodeConditions, and of its rules for critical pods
// and tolerations.
func TestPressure(t *testing.T) {
	const (
		guaranteed = "  containers: [{name: a, image: i:1, resources: {limits: {cpu: 1m, memory: 1Mi}}}]\n"
		burstable  = "  containers: [{name: a, image: i:1, resources: {requests: {cpu: 1m}}}]\n"
		tolerant   = containers + "  tolerations: [{key: node.kubernetes.io/memory-pressure, operator: Exists, effect: NoSchedule}]\n"
		otherwise  = containers + "  tolerations: [{key: node.kubernetes.io/disk-pressure, operator: Exists}]\n"
		critical   = containers + "  priorityClassName: system-node-critical\n"
	)
	memory, both := []v1.NodeConditionType{v1.NodeMemoryPressure}, []v1.NodeConditionType{v1.NodeDiskPressure, v1.NodeMemoryPressure}
	const low = "Evicted: The node had condition: [MemoryPressure]. "
	const lowOfBoth = "Evicted: The node had condition: [DiskPressure MemoryPressure]. "
	for _, c := range []struct {
		spec       string
		conditions []v1.NodeConditionType
		want       string
	}{
		{containers, nil, ""},
		{guaranteed, memory, ""},
		{burstable, memory, ""},
		{tolerant, memory, ""},
		{critical, memory, ""},
		{containers, memory, low},
		{otherwise, memory, low},
		{guaranteed, both, lowOfBoth},
		{burstable, both, lowOfBoth},
		{containers, both, lowOfBoth},
		{tolerant, both, lowOfBoth},
		{critical, both, ""},
		{guaranteed, []v1.NodeConditionType{v1.NodePIDPressure}, "Evicted: The node had condition: [PIDPressure]. "},
	} {
		pod := modeltest.Load(t, modeltest.Pod(c.spec)).Pod
		r := &Request{Pod: pod, Machine: node(), Settings: &Settings{}, Conditions: c.conditions}
		if got := text(Admit(r)); got != c.want {
			t.Errorf("%v\n%s: %q, want %q", c.conditions, c.spec, got, c.want)
		}
		r.Before = pod
		if got := text(Admit(r)); got != "" {
			t.Errorf("one that was admitted: %q", got)
		}
	}
}

// TestUnfit checks that the missing property of a node is named, and that an unknown node matches.
func TestUnfit(t *testing.T) {
	requires := "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: " +
		"{nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: Exists}]}]}}}\n"
	for name, c := range map[string]struct {
		spec  string
		given map[string]string
		want  string
	}{
		"no requests":           {"", nil, ""},
		"the node's own label":  {"  nodeSelector: {kubernetes.io/os: linux}\n", nil, ""},
		"no such label":         {"  nodeSelector: {kubernetes.io/os: linux, disk: ssd}\n", nil, "this node has no label disk=ssd"},
		"another value":         {"  nodeSelector: {disk: ssd}\n", map[string]string{"disk": "hdd"}, "this node has no label disk=ssd"},
		"a label that is given": {"  nodeSelector: {disk: ssd}\n", map[string]string{"disk": "ssd"}, ""},
		"the node keeps its name": {
			"  nodeSelector: {kubernetes.io/hostname: other}\n",
			map[string]string{"kubernetes.io/hostname": "other"},
			"this node has no label kubernetes.io/hostname=other",
		},
		"an affinity":         {requires, map[string]string{"disk": "hdd"}, ""},
		"an affinity without": {requires, nil, "the labels of this node are not those that spec.affinity.nodeAffinity requires"},
		"preferred terms are not": {strings.NewReplacer("required", "preferred",
			"{nodeSelectorTerms: [{", "[{weight: 1, preference: {", "]}]}}}", "]}}]}}").Replace(requires), nil, ""},
	} {
		pod := modeltest.Load(t, modeltest.Pod(c.spec+containers)).Pod
		if got := Unfit(pod, node(), c.given); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
		if got := Unfit(pod, &model.Machine{}, c.given); got != "" {
			t.Errorf("%s, on a machine that is not known: %q", name, got)
		}
	}
}

// TestNodeResources checks the resources of a Node: all with the number of pods, and those that pods get.
func TestNodeResources(t *testing.T) {
	machine := v1.ResourceList{
		"cpu": resource.MustParse("4"), "memory": resource.MustParse("1Gi"), "ephemeral-storage": resource.MustParse("1000"),
		"hugepages-2Mi": resource.MustParse("64Mi"), "hugepages-1Gi": resource.MustParse("0"),
	}
	quantity := resource.MustParse("24Mi")
	for name, c := range map[string]struct {
		settings Settings
		want     map[v1.ResourceName]string
	}{
		"defaults": {Settings{}, map[v1.ResourceName]string{
			"cpu": "4", "memory": "860Mi", "ephemeral-storage": "900", "hugepages-2Mi": "64Mi", "hugepages-1Gi": "0", "pods": "110",
		}},
		"reserved, with thresholds": {Settings{
			MaxPods:  7,
			Reserved: v1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("36Mi")},
			KeptFree: map[v1.ResourceName]Share{"memory": {Quantity: &quantity}, "ephemeral-storage": {Percent: 25}},
		}, map[v1.ResourceName]string{
			"cpu": "3500m", "memory": "900Mi", "ephemeral-storage": "750", "hugepages-2Mi": "64Mi", "hugepages-1Gi": "0", "pods": "7",
		}},
		"nothing is kept free, more is reserved than there is": {Settings{
			KeptFree: map[v1.ResourceName]Share{}, Reserved: v1.ResourceList{"cpu": resource.MustParse("5")},
		}, map[v1.ResourceName]string{
			"cpu": "0", "memory": "960Mi", "ephemeral-storage": "1k", "hugepages-2Mi": "64Mi", "hugepages-1Gi": "0", "pods": "110",
		}},
	} {
		capacity, allocatable := c.settings.NodeResources(machine)
		if len(capacity) != len(machine)+1 || len(allocatable) != len(c.want) || len(machine) != 5 {
			t.Errorf("%s: %v, %v", name, capacity, allocatable)
		}
		for resource, want := range c.want {
			if got := allocatable[resource]; got.String() != want {
				t.Errorf("%s: %s of %s, want %s", name, got.String(), resource, want)
			}
		}
	}
}

// TestMissingFeature checks that a pod of the API server is rejected if it needs a feature that the node does not
// declare. The manifest of another pod is refused earlier.
func TestMissingFeature(t *testing.T) {
	const want = "PodFeatureUnsupported: Pod requires node features that are not available: UserNamespacesHostNetworkSupport"
	for _, c := range []struct {
		host, users, api bool
		want             string
	}{
		{true, false, true, want}, {true, false, false, ""}, {true, true, true, ""}, {false, false, true, ""},
	} {
		pod := modeltest.Load(t, modeltest.Pod(containers)).Pod.DeepCopy()
		pod.Spec.HostNetwork, pod.Spec.HostUsers = c.host, &c.users
		r := &Request{Pod: pod, Machine: node(), Settings: &Settings{}, FromCluster: c.api}
		if got := text(r.first([]check{{model.PodFeatureUnsupported, r.missingFeature}})); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
		if got := text(Admit(r)); c.want != "" && got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestDevices checks that a new pod of the API server that cannot get its devices is rejected (kubelet:
// admitPolicyNone). Any other pod waits, and so does a pod that was admitted before.
func TestDevices(t *testing.T) {
	pod := modeltest.Load(t, modeltest.Pod("  containers: [{name: a, image: i}]\n")).Pod
	for name, c := range map[string]struct {
		api    bool
		before *v1.Pod
		fault  *model.DeviceFault
		want   string
	}{
		"no fault":          {api: true},
		"no API server":     {fault: &model.DeviceFault{Message: "none free"}},
		"an admitted pod":   {api: true, before: pod, fault: &model.DeviceFault{Message: "none free"}},
		"a pod":             {true, nil, &model.DeviceFault{Message: "none free"}, "none free"},
		"a kubelet's words": {true, nil, &model.DeviceFault{Message: "m", Status: "none free"}, "none free"},
	} {
		r := &Request{
			Pod: pod, Before: c.before, Machine: node(), Settings: &Settings{}, Devices: c.fault, FromCluster: c.api,
		}
		got := Admit(r)
		if (got != nil) != (c.want != "") ||
			got != nil && (got.Reason != model.UnexpectedAdmissionError || got.Message != model.AllocateFailed(c.want)) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
