package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

const (
	clusterCritical = 2_000_000_000
	nodeCritical    = clusterCritical + 100
)

// sizedPod returns an admitted pod with the same number of milli-CPUs and MiB.
func sizedPod(name string, class v1.PodQOSClass, priority int32, size int64) model.Admitted {
	return model.Admitted{
		Pod: model.PodRef{Namespace: "default", Name: name}, QOSClass: class, Priority: priority,
		Requests: v1.ResourceList{
			v1.ResourceCPU:    *resource.NewMilliQuantity(size, resource.DecimalSI),
			v1.ResourceMemory: *resource.NewQuantity(size<<20, resource.BinarySI),
		},
	}
}

// TestVictims covers the kubelet's TestGetPodsToPreempt, with its pods and needs.
func TestVictims(t *testing.T) {
	pods := map[string]model.Admitted{
		"tiny":            sizedPod("tiny", v1.PodQOSBurstable, 0, 1),
		"bestEffort":      sizedPod("bestEffort", v1.PodQOSBestEffort, 0, 0),
		"burstable":       sizedPod("burstable", v1.PodQOSBurstable, 0, 100),
		"highBurstable":   sizedPod("highBurstable", v1.PodQOSBurstable, 0, 300),
		"guaranteed":      sizedPod("guaranteed", v1.PodQOSGuaranteed, 0, 100),
		"highGuaranteed":  sizedPod("highGuaranteed", v1.PodQOSGuaranteed, 0, 300),
		"clusterCritical": sizedPod("clusterCritical", v1.PodQOSBurstable, clusterCritical, 100),
		"nodeCritical":    sizedPod("nodeCritical", v1.PodQOSBurstable, nodeCritical, 100),
	}
	const all = "bestEffort burstable highBurstable guaranteed highGuaranteed"
	for name, c := range map[string]struct {
		priority           int32
		pods               string
		cpu, memory, slots int64
		want               string
	}{
		"no requirements":                 {clusterCritical, "", 0, 0, 0, ""},
		"no pods":                         {clusterCritical, "", 0, 0, 1, "[(res: pods, q: 1), ]"},
		"equal pods and requirements":     {clusterCritical, "burstable", 100, 100, 1, "burstable"},
		"higher requirements":             {clusterCritical, "burstable", 200, 0, 2, "[(res: cpu, q: 100), (res: pods, q: 1), ]"},
		"bestEffort or burstable":         {clusterCritical, "burstable bestEffort", 0, 0, 1, "bestEffort"},
		"burstable or guaranteed":         {clusterCritical, "burstable guaranteed", 0, 0, 1, "burstable"},
		"the lower one if it suffices":    {clusterCritical, "bestEffort highBurstable burstable", 100, 100, 0, "burstable"},
		"the higher one if it must be":    {clusterCritical, "bestEffort burstable highBurstable", 150, 150, 0, "highBurstable"},
		"several pods":                    {clusterCritical, all, 350, 350, 0, "burstable highBurstable"},
		"guaranteed, and no extra one":    {clusterCritical, all, 0, 550, 0, "highBurstable highGuaranteed"},
		"cluster critical, node critical": {nodeCritical, "clusterCritical", 100, 0, 0, "clusterCritical"},
		"node critical, cluster critical": {clusterCritical, "nodeCritical", 100, 0, 0, "[(res: cpu, q: 100), ]"},
		"the smallest of equal distance":  {clusterCritical, "burstable tiny", 0, 0, 1, "tiny"},
	} {
		var others []model.Admitted
		for one := range strings.FieldsSeq(c.pods) {
			others = append(others, pods[one])
		}
		var n needs
		for _, one := range []need{{"cpu", c.cpu}, {"memory", c.memory << 20}, {"pods", c.slots}} {
			if one.amount > 0 {
				n = append(n, one)
			}
		}
		for range 2 {
			victims, left := n.victims(c.priority, others)
			var names []string
			for i := range victims {
				names = append(names, victims[i].Pod.Name)
			}
			slices.Sort(names)
			got := strings.Join(names, " ")
			if len(left) > 0 {
				got = left.String()
			}
			if got != c.want {
				t.Errorf("%s: %s, want %s", name, got, c.want)
			}
			slices.Reverse(others)
		}
	}
}

// TestPreempt covers the kubelet's TestHandleAdmissionFailure: another failed check rejects a critical pod, and then no
// pod is preempted. The node has ten cores.
func TestPreempt(t *testing.T) {
	pod := func(spec string) *v1.Pod {
		return modeltest.Load(t, modeltest.Pod("  priorityClassName: system-node-critical\n"+spec)).Pod
	}
	all := taken(t, "cpu: 5", "cpu: 4", "cpu: 1")
	most := []model.Admitted{sizedPod("other", v1.PodQOSBurstable, nodeCritical+900, 10000)}
	for name, c := range map[string]struct {
		pod    *v1.Pod
		others []model.Admitted
		max    int
		want   string
	}{
		"it fits":          {pod(asks("cpu: 5")), all[:1], 0, ""},
		"the smallest pod": {pod(asks("cpu: 1")), all, 0, "cpu [uuu]"},
		"the nearest pods": {pod(asks("cpu: 6")), all, 0, "cpu [u uuu]"},
		"too many pods":    {pod(containers), all, 3, "pods [uuu]"},
		"both":             {pod(asks("cpu: 4")), all, 3, "pods [uu]"},
		"an affinity":      {pod("  nodeSelector: {a: b}\n" + asks("cpu: 1")), all, 0, "NodeAffinity: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"},
		"more than it has": {pod(asks("cpu: 11")), all, 0, noSet + "[(res: cpu, q: 1000), ]"},
		"equal priorities": {pod(asks("cpu: 1")), most, 0, noSet + "[(res: cpu, q: 1000), ]"},
		"no other pods":    {pod(asks("cpu: 11")), nil, 0, noSet + "[(res: cpu, q: 1000), ]"},
	} {
		r := &Request{Pod: c.pod, Others: c.others, Machine: node(), Settings: &Settings{MaxPods: c.max}}
		p, why := Preempt(r)
		got := text(why)
		if p != nil {
			var uids []types.UID
			for _, one := range p.Pods {
				uids = append(uids, one.UID)
			}
			got = fmt.Sprintf("%s %v", p.Resource, uids)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// noSet is the kubelet's message if no set of pods suffices.
const noSet = "UnexpectedAdmissionError: Unexpected error while attempting to recover from admission failure: preemption: " +
	"error finding a set of pods to preempt: no set of running pods found to reclaim resources: "

// TestTaken checks the facts of an admitted pod that decide about a preemption.
func TestTaken(t *testing.T) {
	pod := modeltest.Load(t, modeltest.Pod("  priorityClassName: system-cluster-critical\n"+asks("cpu: 1"))).Pod
	if got := TakenBy(pod); got.Priority != clusterCritical || got.QOSClass != v1.PodQOSBurstable {
		t.Errorf("%+v", got)
	}
}

// TestTaints covers the kubelet's cases with taints in TestGeneralPredicates: only NoExecute counts, and only for pods of
// the API server. The labels of the Node replace those of the settings.
func TestTaints(t *testing.T) {
	const untolerated = "TaintToleration: Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"
	const affinity = "NodeAffinity: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
	no := []v1.Taint{{Key: "foo", Value: "bar", Effect: v1.TaintEffectNoSchedule}}
	ends := []v1.Taint{no[0], {Key: "foo", Value: "bar", Effect: v1.TaintEffectNoExecute}}
	labels := map[string]string{"own": "a"}
	for name, c := range map[string]struct {
		node  *Node
		spec  string
		owner string
		want  string
	}{
		"no Node":                {nil, "", podspec.OwnerAPI, ""},
		"NoSchedule":             {&Node{Taints: no}, "", podspec.OwnerAPI, ""},
		"NoExecute":              {&Node{Taints: ends}, "", podspec.OwnerAPI, untolerated},
		"a pod of a file":        {&Node{Taints: ends}, "", "files", ""},
		"tolerated":              {&Node{Taints: ends}, "  tolerations: [{key: foo, operator: Exists}]\n", podspec.OwnerAPI, ""},
		"tolerated by value":     {&Node{Taints: ends}, "  tolerations: [{key: foo, value: bar, effect: NoExecute}]\n", podspec.OwnerAPI, ""},
		"another effect":         {&Node{Taints: ends}, "  tolerations: [{key: foo, operator: Exists, effect: NoSchedule}]\n", podspec.OwnerAPI, untolerated},
		"another value":          {&Node{Taints: ends}, "  tolerations: [{key: foo, value: other}]\n", podspec.OwnerAPI, untolerated},
		"all tolerated":          {&Node{Taints: ends}, "  tolerations: [{operator: Exists}]\n", podspec.OwnerAPI, ""},
		"a label of the Node":    {&Node{Labels: labels}, "  nodeSelector: {own: a}\n", "files", ""},
		"a label of the flag":    {nil, "  nodeSelector: {given: b}\n", podspec.OwnerAPI, ""},
		"a label that it lost":   {&Node{Labels: labels}, "  nodeSelector: {given: b}\n", podspec.OwnerAPI, affinity},
		"the affinity is before": {&Node{Taints: ends}, "  nodeSelector: {no: b}\n", podspec.OwnerAPI, affinity},
	} {
		r := &Request{
			Pod: modeltest.Load(t, modeltest.Pod(c.spec+containers)).Pod, Machine: node(), Node: c.node,
			Settings: &Settings{Labels: map[string]string{"given": "b"}}, FromCluster: c.owner == podspec.OwnerAPI,
		}
		if got := text(Admit(r)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
