package sets

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/state"
)

// KindPod is the kind of a pod among the names of manifests.
const KindPod = podspec.KindPod

// Scope selects the content of a set: everything that was applied with the set's name, or everything with some labels.
type Scope struct {
	// Set is NAMESPACE/NAME; empty if Labels count.
	Set string
	// Labels select the content of the set, in the Namespaces.
	Labels     labels.Selector
	Namespaces []string
}

// has reports whether an object belongs to the scope.
func (s *Scope) has(set string, meta *metav1.ObjectMeta) bool {
	if s.Labels == nil {
		return s.Set != "" && set == s.Set
	}
	return slices.Contains(s.Namespaces, meta.Namespace) && s.Labels.Matches(labels.Set(meta.Labels))
}

// Content has pods, workloads and objects.
type Content struct {
	Pods      []*podspec.Desired
	Workloads []*podspec.Workload
	Objects   []*podspec.Object
}

// Pruned is the content to delete.
type Pruned struct {
	Content
	// Claims can be deleted only by name, because of their data.
	Claims []*podspec.Object
	// Refused are pods of the API server. Only kubectl deletes them.
	Refused []*podspec.Desired
}

// Each calls do with the name and the set of each pod, workload and object, in this order.
func (c *Content) Each(do func(name state.ObjectKey, set string)) {
	call := func(kind string, meta *metav1.ObjectMeta, set string) {
		do(state.ObjectKey{Namespace: meta.Namespace, Kind: kind, Name: meta.Name}, set)
	}
	for _, d := range c.Pods {
		call(KindPod, &d.Pod.ObjectMeta, d.Set)
	}
	for _, w := range c.Workloads {
		call(w.Kind(), w.Meta(), w.Set)
	}
	for _, o := range c.Objects {
		call(o.Kind(), o.Meta(), o.Set)
	}
}

// Names returns the names of the content, in the order of Each.
func (c *Content) Names() (names []state.ObjectKey) {
	c.Each(func(name state.ObjectKey, _ string) { names = append(names, name) })
	return names
}

// Prune finds content that belongs to a scope and is not among the names of the manifests. It skips pods from a source
// of the agent and content that a stored workload created: they are deleted with their source and their workload. A pod
// of the API server without a controller is refused instead.
func Prune(scope *Scope, stored *Content, manifests []state.ObjectKey) Pruned {
	p := &pruner{scope: scope, stored: stored, named: map[state.ObjectKey]bool{}}
	for _, name := range manifests {
		p.named[name] = true
	}
	var out Pruned
	for _, d := range stored.Pods {
		switch {
		case d.Owner != "" && !d.FromCluster() || !p.goes(KindPod, d.Set, &d.Pod.ObjectMeta):
		case !d.FromCluster():
			out.Pods = append(out.Pods, d)
		case metav1.GetControllerOfNoCopy(d.Pod) == nil:
			out.Refused = append(out.Refused, d)
		}
	}
	for _, w := range stored.Workloads {
		if w.Owner == "" && p.goes(w.Kind(), w.Set, w.Meta()) {
			out.Workloads = append(out.Workloads, w)
		}
	}
	for _, o := range stored.Objects {
		switch {
		case o.Owner != "" || !p.goes(o.Kind(), o.Set, o.Meta()):
		case o.Claim != nil:
			out.Claims = append(out.Claims, o)
		default:
			out.Objects = append(out.Objects, o)
		}
	}
	return out
}

type pruner struct {
	scope  *Scope
	stored *Content
	named  map[state.ObjectKey]bool
}

func (p *pruner) goes(kind, set string, meta *metav1.ObjectMeta) bool {
	return p.scope.has(set, meta) &&
		!p.named[state.ObjectKey{Namespace: meta.Namespace, Kind: kind, Name: meta.Name}] && !p.owned(meta)
}

// owned reports whether a stored workload created an object.
func (p *pruner) owned(meta *metav1.ObjectMeta) bool {
	owner := metav1.GetControllerOf(meta)
	return owner != nil && slices.ContainsFunc(p.stored.Workloads, func(w *podspec.Workload) bool {
		return w.Kind() == owner.Kind && w.Meta().Name == owner.Name && w.Meta().Namespace == meta.Namespace
	})
}
