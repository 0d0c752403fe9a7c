package mirrors

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
)

// Pod is a pod of another source than the API server.
type Pod struct {
	// Desired is the version that was applied last, or else the wanted version.
	Desired *podspec.Desired
	// Hash is the digest of that version (Hash).
	Hash string
	// Alone reports that no container of an earlier version runs.
	Alone bool
	// Leaving reports that the pod is being deleted.
	Leaving bool
}

// State is the state from which the requests follow.
type State struct {
	// Node is this node. It is nil before its registration. Name is its name.
	Node *v1.Node
	Name string
	// Pods are all pods of other sources that the agent shows, and Mirrors all mirror pods of the node in the API.
	Pods    []Pod
	Mirrors []*v1.Pod
	// Complete reports that all sources were read. Until then, a mirror pod without a pod stays.
	Complete bool
	Now      time.Time
}

// action is one request: either create or remove is set.
type action struct{ create, remove *v1.Pod }

// pod returns the mirror pod of the action.
func (a action) pod() *v1.Pod { return cmp.Or(a.create, a.remove) }

// key identifies an action. One that creates a pod has no uid.
type key struct {
	types.NamespacedName

	uid types.UID
}

func (a action) key() key { return key{nameOf(a.pod()), a.pod().UID} }

func nameOf(pod *v1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// actions returns the requests that are due, at most one for each name, in the order of the names.
func (s *State) actions() (due []action) {
	pods, mirrors := s.podsByMirror(), map[types.NamespacedName]*v1.Pod{}
	for _, m := range s.Mirrors {
		mirrors[nameOf(m)] = m
		if s.removes(m, pods[nameOf(m)]) {
			due = append(due, action{remove: m})
		}
	}
	for name, all := range pods {
		if first := slices.IndexFunc(all, func(p Pod) bool { return !p.Leaving }); mirrors[name] == nil && first >= 0 &&
			s.Node != nil && s.Node.UID != "" && s.Node.DeletionTimestamp == nil {
			due = append(due, action{create: newMirror(&all[first], s.Node, s.Now)})
		}
	}
	slices.SortFunc(due, func(a, b action) int {
		one, other := a.pod(), b.pod()
		return cmp.Or(cmp.Compare(one.Namespace, other.Namespace), cmp.Compare(one.Name, other.Name))
	})
	return due
}

// Outdated returns the uids of the mirror pods that show no current version of their pod.
func (s *State) Outdated() (uids []types.UID) {
	pods := s.podsByMirror()
	for _, m := range s.Mirrors {
		shows := func(p Pod) bool { return s.shows(m, &p) }
		if all := pods[nameOf(m)]; len(all) > 0 && !slices.ContainsFunc(all, shows) {
			uids = append(uids, m.UID)
		}
	}
	return uids
}

// podsByMirror returns the pods by the names of their mirror pods.
func (s *State) podsByMirror() map[types.NamespacedName][]Pod {
	pods := map[types.NamespacedName][]Pod{}
	for _, p := range s.Pods {
		name := podspec.MirrorName(p.Desired.Pod.Namespace, p.Desired.Pod.Name, s.Name)
		pods[name] = append(pods[name], p)
	}
	return pods
}

// removes reports whether a mirror pod must be deleted. pods are the pods with its name: one, or one that is being
// deleted and its successor. A mirror pod that waits for its finalizers gets no second request.
func (s *State) removes(m *v1.Pod, pods []Pod) bool {
	switch {
	case m.DeletionTimestamp != nil:
		return m.DeletionGracePeriodSeconds == nil || *m.DeletionGracePeriodSeconds > 0
	case len(pods) == 0:
		return s.Complete
	case slices.ContainsFunc(pods, func(p Pod) bool { return s.shows(m, &p) }):
		return false
	}
	return !slices.ContainsFunc(pods, func(p Pod) bool { return !p.Alone || p.Leaving })
}

// shows reports whether a mirror pod shows this version of a pod. For a kubelet, the uid in a manifest is its hash. A
// mirror pod that a kubelet has created for such a manifest stays if it shows the same pod.
func (s *State) shows(m *v1.Pod, p *Pod) bool {
	hash := hashOf(m)
	if hash == p.Hash {
		return true
	}
	if hash != string(p.Desired.Pod.UID) || s.Node == nil {
		return false
	}
	want, have := newMirror(p, s.Node, s.Now).Spec, *m.Spec.DeepCopy()
	have.Priority, have.PreemptionPolicy = nil, nil
	return equality.Semantic.DeepEqual(want, have)
}
