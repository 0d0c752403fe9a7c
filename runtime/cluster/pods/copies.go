package pods

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/quote"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/model"
)

// copies holds the pods of a node as the API server has them. It has no clock, no goroutine and no connection.
type copies struct {
	// node is the name of this node. load converts a pod. known reports whether a pod has a record on this machine.
	node  string
	load  func(*v1.Pod) (*podspec.Desired, error)
	known func(types.UID) bool

	// byName holds the pods by namespace and name, because a watch reports that a name has another pod.
	byName map[types.NamespacedName]*entry
	byUID  map[types.UID]*entry
	// gone maps pods that the API server does not have any more, but this machine has, to their last grace periods in
	// seconds. A forced deletion shortens the period and removes the pod at once, so both may arrive together.
	gone map[types.UID]int64
	// listed is set once the pods have been listed.
	listed bool
}

// entry is one pod of the API server.
type entry struct {
	pod *v1.Pod
	// desired is the converted pod. It is nil if the pod is hidden. If err is set, the newest version of the pod cannot
	// be used, and desired is the last version that could; nil if there is none.
	desired *podspec.Desired
	err     error
	// recorded is set if a pod without a usable version has a record on this machine. announced is set once a rejection
	// was reported.
	recorded, announced bool
}

// isHidden reports whether the agent does not get the pod, because it has ended.
func (e *entry) isHidden() bool { return e != nil && e.desired == nil && e.err == nil }

func newCopies(node string, load func(*v1.Pod) (*podspec.Desired, error), known func(types.UID) bool) *copies {
	return &copies{
		node: node, load: load, known: known,
		byName: map[types.NamespacedName]*entry{}, byUID: map[types.UID]*entry{}, gone: map[types.UID]int64{},
	}
}

func nameOf(pod *v1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// replace sets all pods, as a list has returned them. It returns the UIDs of all pods before and after.
func (c *copies) replace(pods []*v1.Pod) (affected []types.UID) {
	before := c.byUID
	c.byName, c.byUID, c.listed = map[types.NamespacedName]*entry{}, map[types.UID]*entry{}, true
	// A pod keeps its UID if another one comes with it.
	isNew := func(pod *v1.Pod) bool { e := before[pod.UID]; return e == nil || nameOf(e.pod) != nameOf(pod) }
	for _, added := range []bool{false, true} {
		for _, pod := range pods {
			if isNew(pod) == added && c.isOurs(pod) {
				c.add(pod, before[pod.UID])
			}
		}
	}
	all := maps.Clone(before)
	maps.Copy(all, c.byUID)
	return slices.Sorted(maps.Keys(all))
}

// isOurs reports whether a pod is bound to this node. A server that ignores the selector sends those of other nodes.
func (c *copies) isOurs(pod *v1.Pod) bool { return pod.Spec.NodeName == c.node }

// set sets one pod. Another pod with its name is gone. It returns the UIDs of both.
func (c *copies) set(pod *v1.Pod) (affected []types.UID) {
	if !c.isOurs(pod) {
		return nil
	}
	before := c.byUID[pod.UID]
	affected = append(c.remove(nameOf(pod)), pod.UID)
	c.add(pod, before)
	return slices.Compact(affected)
}

// remove removes the pod with a name. It returns its UID, if there was one.
func (c *copies) remove(name types.NamespacedName) (affected []types.UID) {
	e := c.byName[name]
	if e == nil {
		return nil
	}
	delete(c.byName, name)
	if c.byUID[e.pod.UID] == e {
		delete(c.byUID, e.pod.UID)
	}
	return []types.UID{e.pod.UID}
}

// removePod removes one pod. pod is its last version. A newer pod with its name, and another pod with its UID, stay.
func (c *copies) removePod(pod *v1.Pod) (affected []types.UID) {
	if e := c.byName[nameOf(pod)]; e != nil && e.pod.UID == pod.UID {
		if pod.DeletionTimestamp != nil {
			c.gone[pod.UID] = graceOf(pod)
		}
		return c.remove(nameOf(pod))
	}
	return nil
}

// add adds a pod. before is its earlier copy, or nil.
func (c *copies) add(pod *v1.Pod, before *entry) {
	e := &entry{pod: pod}
	if first := c.byUID[pod.UID]; first != nil && nameOf(first.pod) != nameOf(pod) {
		e.err = fmt.Errorf("its uid %q is that of the pod %s", pod.UID, model.RefOf(first.pod))
		e.pod = withoutSpec(pod)
		c.byName[nameOf(pod)] = e
		return
	}
	c.convert(e, before)
	c.byName[nameOf(pod)], c.byUID[pod.UID] = e, e
}

// convert sets what the agent gets of a pod.
func (c *copies) convert(e, before *entry) {
	if before != nil && sameManifest(before.pod, e.pod) {
		// Only the status differs, usually the one that podctl has sent.
		e.desired, e.err, e.recorded, e.announced = before.desired, before.err, before.recorded, before.announced
		return
	}
	if podspec.IsMirror(e.pod) {
		return // It shows a pod of another source, and never runs itself.
	}
	ended := before.isHidden() || before == nil && model.IsOver(&e.pod.Status) && !c.known(e.pod.UID)
	if ended && e.pod.DeletionTimestamp == nil {
		// The pod has ended earlier, on this machine or on another with this name. It never runs again. The agent gets
		// it only when it is deleted, because the API server waits for the node.
		return
	}
	if e.desired, e.err = c.load(e.pod); e.err == nil {
		return
	}
	e.desired, e.recorded = nil, c.known(e.pod.UID)
	if before != nil {
		e.desired, e.announced = before.desired, before.announced
	}
	if e.desired == nil {
		// The spec may be large.
		e.pod = withoutSpec(e.pod)
	}
}

// withoutSpec returns the parts of a pod that sending its status needs.
func withoutSpec(pod *v1.Pod) *v1.Pod {
	meta := &pod.ObjectMeta
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, ResourceVersion: meta.ResourceVersion,
			Generation: meta.Generation, CreationTimestamp: meta.CreationTimestamp,
			DeletionTimestamp: meta.DeletionTimestamp, DeletionGracePeriodSeconds: meta.DeletionGracePeriodSeconds,
		},
		Status: pod.Status,
	}
}

// sameManifest reports whether two copies of a pod differ at most in their status.
func sameManifest(a, b *v1.Pod) bool {
	one, other := withoutStatus(a), withoutStatus(b)
	return equality.Semantic.DeepEqual(&one, &other)
}

func withoutStatus(pod *v1.Pod) v1.Pod {
	p := v1.Pod{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}
	p.ResourceVersion, p.ManagedFields = "", nil
	return p
}

// update returns the state of the source.
func (c *copies) update(name string) sources.Update {
	u := sources.Update{Source: name, Complete: c.listed, Ending: map[types.UID]int64{}}
	for _, e := range c.sorted() {
		uid := e.pod.UID
		if e.err != nil {
			u.Problems = append(u.Problems, sources.Problem{File: name, Pod: uid, Text: e.problem()})
		}
		if e.desired != nil {
			u.Pods = append(u.Pods, e.desired)
		} else if e.err != nil && e.recorded {
			u.Unread = append(u.Unread, string(uid))
		}
		if e.pod.DeletionTimestamp != nil && (e.desired != nil || e.recorded) {
			u.Ending[uid] = graceOf(e.pod)
		}
	}
	maps.DeleteFunc(c.gone, func(uid types.UID, _ int64) bool { return c.byUID[uid] != nil || !c.known(uid) })
	maps.Copy(u.Ending, c.gone)
	u.Problems = sources.Few(name, u.Problems)
	return u
}

// sorted returns all pods by namespace and name.
func (c *copies) sorted() []*entry {
	return slices.SortedFunc(maps.Values(c.byName), func(a, b *entry) int {
		return model.RefOf(a.pod).Compare(model.RefOf(b.pod))
	})
}

// problem returns why the newest version of a pod cannot be used.
func (e *entry) problem() string {
	return quote.OneLine(model.RefOf(e.pod).String() + ": " + e.err.Error())
}

// graceOf returns the grace period in seconds that the API server has granted to a pod that it deletes.
func graceOf(pod *v1.Pod) int64 {
	if pod.DeletionGracePeriodSeconds != nil {
		return *pod.DeletionGracePeriodSeconds
	}
	return v1.DefaultTerminationGracePeriodSeconds
}
