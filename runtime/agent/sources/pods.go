package sources

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// pods are the pods that a source wants, or the workloads, by kind, namespace and name. What goes missing lingers: files
// are renamed and directories are replaced.
type pods map[key]*pod

// key names something that a source wants.
type key struct{ kind, namespace, name string }

// saying is a pod as texts say, or that of the template of a workload.
type saying struct {
	pod *podspec.Desired
	// of is the workload; nil for a pod.
	of *podspec.Workload
}

func (s saying) key() key {
	if s.of != nil {
		return key{s.of.Kind(), s.of.Meta().Namespace, s.of.Meta().Name}
	}
	return key{namespace: s.pod.Pod.Namespace, name: s.pod.Pod.Name}
}

// pod is one pod that is wanted.
type pod struct {
	// said is the pod as the texts say, and wanted as it is told.
	said, wanted *podspec.Desired
	// of is the workload whose template the pod is, and told as it is told; nil for a pod.
	of, told *podspec.Workload

	absence
}

// take takes the pods that the texts have now. Those of damaged texts stay as they were.
func (ps pods) take(now time.Time, found []saying, damaged map[string]bool) {
	uids, here := map[types.UID]bool{}, map[key]bool{}
	for _, s := range found {
		d, name := s.pod, s.key()
		if damaged[d.Source] {
			continue
		}
		if ps[name] == nil || ps[name].said.Pod.UID != d.Pod.UID {
			ps[name] = &pod{}
		}
		ps[name].said, ps[name].of, ps[name].missing = d, s.of, time.Time{}
		uids[d.Pod.UID], here[name] = true, true
	}
	for key, p := range ps {
		switch {
		case here[key]:
		case uids[p.said.Pod.UID]:
			delete(ps, key)
		case damaged[p.said.Source]:
			p.stay()
		default:
			p.leave(now)
		}
	}
}

// all are the pods as they are told, by namespace and name.
func (ps pods) all() []*podspec.Desired {
	var all []*podspec.Desired
	for _, p := range ps {
		all = append(all, p.now())
	}
	slices.SortFunc(all, func(a, b *podspec.Desired) int { return model.RefOf(a.Pod).Compare(model.RefOf(b.Pod)) })
	return all
}

// now is the pod as it is told now; the same pointer as long as nothing of it changes.
func (p *pod) now() *podspec.Desired {
	if p.wanted == nil || !isSame(p.wanted, p.said) {
		p.wanted = p.said
	}
	p.said = p.wanted
	return p.wanted
}

// missing are the uids of those that no text has.
func (ps pods) missing() []types.UID {
	var uids []types.UID
	for _, p := range ps {
		if !p.missing.IsZero() {
			uids = append(uids, p.said.Pod.UID)
		}
	}
	slices.Sort(uids)
	return uids
}

// isSame reports whether nothing of a pod changed.
func isSame(a, b *podspec.Desired) bool {
	return a == b || a.Source == b.Source && a.WrittenUID == b.WrittenUID && slices.Equal(a.Shared, b.Shared) && a.SameAs(b)
}
