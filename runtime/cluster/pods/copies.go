package pods

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/model"
)

// copies holds the pods of a node as the API server has them. It has no clock, no goroutine and no connection.
type copies struct {
	// load converts a pod. known reports whether a pod has a record on this machine.
	load  func(*v1.Pod) (*podspec.Desired, error)
	known func(types.UID) bool

	// byName holds the pods by namespace and name, because a watch reports that a name has another pod.
	byName map[types.NamespacedName]*entry
	byUID  map[types.UID]*entry
	// listed is set once the pods have been listed.
	listed bool
}

// entry is one pod of the API server.
type entry struct {
	pod *v1.Pod
	// desired is the converted pod. It is nil if err is set, or if the pod is hidden.
	desired *podspec.Desired
	err     error
}

// isHidden reports whether the agent does not get the pod, because it has ended.
func (e *entry) isHidden() bool { return e != nil && e.desired == nil && e.err == nil }

func newCopies(load func(*v1.Pod) (*podspec.Desired, error), known func(types.UID) bool) *copies {
	return &copies{
		load: load, known: known,
		byName: map[types.NamespacedName]*entry{}, byUID: map[types.UID]*entry{},
	}
}

func nameOf(pod *v1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// replace sets all pods, as a list has returned them. It returns the UIDs of all pods before and after.
func (c *copies) replace(pods []*v1.Pod) (affected []types.UID) {
	before := c.byUID
	c.byName, c.byUID, c.listed = map[types.NamespacedName]*entry{}, map[types.UID]*entry{}, true
	for _, pod := range pods {
		c.add(pod, before[pod.UID])
	}
	all := maps.Clone(before)
	maps.Copy(all, c.byUID)
	return slices.Sorted(maps.Keys(all))
}

// set sets one pod. Another pod with its name is gone. It returns the UIDs of both.
func (c *copies) set(pod *v1.Pod) (affected []types.UID) {
	before := c.byUID[pod.UID]
	affected = append(c.remove(nameOf(pod)), pod.UID)
	c.add(pod, before)
	return slices.Compact(affected)
}

// remove removes the pod with a name. It returns its UID, if there was one.
func (c *copies) remove(name types.NamespacedName) (affected []types.UID) {
	if e := c.byName[name]; e != nil {
		delete(c.byName, name)
		delete(c.byUID, e.pod.UID)
		affected = append(affected, e.pod.UID)
	}
	return affected
}

// removePod removes one pod. A newer pod with its name stays.
func (c *copies) removePod(uid types.UID) (affected []types.UID) {
	if e := c.byUID[uid]; e != nil {
		return c.remove(nameOf(e.pod))
	}
	return nil
}

// add adds a pod. before is its earlier copy, or nil.
func (c *copies) add(pod *v1.Pod, before *entry) {
	e := &entry{pod: pod}
	switch {
	case before != nil && sameManifest(before.pod, pod):
		// Only the status differs, usually the one that podctl has sent.
		e.desired, e.err = before.desired, before.err
	case pod.DeletionTimestamp == nil && (before.isHidden() || before == nil && isTerminal(pod) && !c.known(pod.UID)):
		// The pod has ended earlier, on this machine or on another with this name. It never runs again. The agent gets
		// it only when it is deleted, because the API server waits for the node.
	default:
		e.desired, e.err = c.load(pod)
	}
	c.byName[nameOf(pod)], c.byUID[pod.UID] = e, e
}

// isTerminal reports whether a pod has ended according to the API server.
func isTerminal(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
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
	for _, uid := range slices.Sorted(maps.Keys(c.byUID)) {
		e := c.byUID[uid]
		switch {
		case e.err != nil:
			u.Problems = append(u.Problems, sources.Problem{
				File: name, Pod: uid, Text: model.RefOf(e.pod).String() + ": " + e.err.Error(),
			})
		case e.desired != nil:
			u.Pods = append(u.Pods, e.desired)
		}
		if e.desired != nil && e.pod.DeletionTimestamp != nil {
			u.Ending[uid] = graceOf(e.pod)
		}
	}
	slices.SortStableFunc(u.Pods, func(a, b *podspec.Desired) int {
		return model.RefOf(a.Pod).Compare(model.RefOf(b.Pod))
	})
	return u
}

// graceOf returns the grace period in seconds that the API server has granted to a pod that it deletes.
func graceOf(pod *v1.Pod) int64 {
	if pod.DeletionGracePeriodSeconds != nil {
		return *pod.DeletionGracePeriodSeconds
	}
	return v1.DefaultTerminationGracePeriodSeconds
}
