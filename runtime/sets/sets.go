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

// Scope says what belongs together: all that was applied with a set's name, or what has some labels.
type Scope struct {
	// Set is NAMESPACE/NAME; empty if Labels count.
	Set string
	// Labels are those of what belongs to the set, in the Namespaces.
	Labels     labels.Selector
	Namespaces []string
}

// has reports whether something belongs to the scope.
func (s *Scope) has(set string, meta *metav1.ObjectMeta) bool {
	if s.Labels == nil {
		return s.Set != "" && set == s.Set
	}
	return slices.Contains(s.Namespaces, meta.Namespace) && s.Labels.Matches(labels.Set(meta.Labels))
}

// Content are pods, workloads and objects.
type Content struct {
	Pods      []*podspec.Desired
	Workloads []*podspec.Workload
	Objects   []*podspec.Object
}

// Pruned is what is to be deleted.
type Pruned struct {
	Content
	// Claims are to be deleted by name only, because of their data.
	Claims []*podspec.Object
}

// Names are those of all that there is.
func (c *Content) Names() []state.ObjectKey {
	var names []state.ObjectKey
	add := func(kind string, meta *metav1.ObjectMeta) {
		names = append(names, state.ObjectKey{Namespace: meta.Namespace, Kind: kind, Name: meta.Name})
	}
	for _, d := range c.Pods {
		add(KindPod, &d.Pod.ObjectMeta)
	}
	for _, w := range c.Workloads {
		add(w.Kind(), w.Meta())
	}
	for _, o := range c.Objects {
		add(o.Kind(), o.Meta())
	}
	return names
}

// Prune finds what belongs to a scope and is not among the names of the manifests. A pod that an agent's source brought, and
// what a stored workload has made, are nobody's to prune: they go with their source and their workload.
func Prune(scope *Scope, stored *Content, manifests []state.ObjectKey) Pruned {
	p := &pruner{scope: scope, stored: stored, named: map[state.ObjectKey]bool{}}
	for _, name := range manifests {
		p.named[name] = true
	}
	var out Pruned
	for _, d := range stored.Pods {
		if d.Keeper == "" && p.goes(KindPod, d.Set, &d.Pod.ObjectMeta) {
			out.Pods = append(out.Pods, d)
		}
	}
	for _, w := range stored.Workloads {
		if w.Keeper == "" && p.goes(w.Kind(), w.Set, w.Meta()) {
			out.Workloads = append(out.Workloads, w)
		}
	}
	for _, o := range stored.Objects {
		switch {
		case o.Keeper != "" || !p.goes(o.Kind(), o.Set, o.Meta()):
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
	return p.scope.has(set, meta) && !p.named[state.ObjectKey{Namespace: meta.Namespace, Kind: kind, Name: meta.Name}] && !p.owned(meta)
}

// owned reports whether a stored workload has made something.
func (p *pruner) owned(meta *metav1.ObjectMeta) bool {
	owner := metav1.GetControllerOf(meta)
	return owner != nil && slices.ContainsFunc(p.stored.Workloads, func(w *podspec.Workload) bool {
		return w.Kind() == owner.Kind && w.Meta().Name == owner.Name && w.Meta().Namespace == meta.Namespace
	})
}
