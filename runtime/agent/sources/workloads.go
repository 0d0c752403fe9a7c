package sources

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/podctl/podctl/podspec"
)

// ofTemplates are the workloads whose templates the pods are, by kind, namespace and name.
func (ps pods) ofTemplates() []*podspec.Workload {
	var all []*podspec.Workload
	for _, p := range ps {
		all = append(all, p.workload())
	}
	sortWorkloads(all)
	return all
}

// absent are the workloads that no text has.
func (ps pods) absent() []*podspec.Workload {
	var all []*podspec.Workload
	for _, p := range ps {
		if !p.missing.IsZero() {
			all = append(all, p.workload())
		}
	}
	sortWorkloads(all)
	return all
}

// workload is the workload as it is told now; the same pointer as long as nothing of it changes.
func (p *pod) workload() *podspec.Workload {
	template := p.now()
	if p.told != nil && p.told.Template == template && (p.told == p.of || isSameWorkload(p.told, p.of)) {
		p.of = p.told
		return p.told
	}
	told := *p.of
	told.Template = template
	p.of, p.told = &told, &told
	return p.told
}

// isSameWorkload reports whether nothing changed of a workload but its template, which is compared as a pod.
func isSameWorkload(a, b *podspec.Workload) bool {
	one, other := *a, *b
	one.Template, other.Template = nil, nil
	return equality.Semantic.DeepEqual(one, other)
}

func sortWorkloads(all []*podspec.Workload) {
	slices.SortFunc(all, func(a, b *podspec.Workload) int {
		return cmp.Or(cmp.Compare(a.Kind(), b.Kind()), cmp.Compare(a.Meta().Namespace, b.Meta().Namespace), cmp.Compare(a.Meta().Name, b.Meta().Name))
	})
}
