package sources

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
)

// UIDs maps pods to the uids that they already have on this machine.
type UIDs map[types.NamespacedName]types.UID

// WithUIDs returns a source whose pods without metadata.uid have the uids that find returns, instead of those that
// podctl derives from names. find is called before the source is read. It returns when the uids are known, or the
// agent ends.
func WithUIDs(s Source, find func() UIDs) Source {
	return identified{Source: s, find: find}
}

// identified is a source with known uids.
type identified struct {
	Source

	find func() UIDs
}

// Run reads the source and replaces uids in its updates.
func (s identified) Run(ctx context.Context, reread <-chan chan struct{}, notify func(Update)) {
	uids := s.find()
	if len(uids) == 0 {
		s.Source.Run(ctx, reread, notify)
		return
	}
	before := map[*podspec.Desired]*podspec.Desired{}
	s.Source.Run(ctx, reread, func(u Update) {
		u, before = uids.replaceIn(u, before)
		notify(u)
	})
}

// replaceIn returns an update with other uids, and its pods by those of the source, so that an unchanged pod keeps its
// pointer. A uid that a manifest gives to a pod is not given to another one.
func (uids UIDs) replaceIn(
	u Update, before map[*podspec.Desired]*podspec.Desired,
) (Update, map[*podspec.Desired]*podspec.Desired) {
	written := map[types.UID]bool{}
	for _, d := range u.Pods {
		written[d.WrittenUID] = true
	}
	pods, replaced := make([]*podspec.Desired, len(u.Pods)), map[types.UID]types.UID{}
	after := map[*podspec.Desired]*podspec.Desired{}
	for i, d := range u.Pods {
		pods[i] = d
		uid := uids[types.NamespacedName{Namespace: d.Pod.Namespace, Name: d.Pod.Name}]
		if uid == "" || d.WrittenUID != "" || written[uid] {
			continue
		}
		replaced[d.Pod.UID] = uid
		if pods[i] = before[d]; pods[i] == nil {
			pods[i] = withUID(d, uid)
		}
		after[d] = pods[i]
	}
	u.Pods = pods
	u.Missing, u.Problems = slices.Clone(u.Missing), slices.Clone(u.Problems)
	for i, uid := range u.Missing {
		u.Missing[i] = cmp.Or(replaced[uid], uid)
	}
	slices.Sort(u.Missing)
	for i := range u.Problems {
		u.Problems[i].Pod = cmp.Or(replaced[u.Problems[i].Pod], u.Problems[i].Pod)
	}
	return u, after
}

// withUID returns a pod with another uid.
func withUID(d *podspec.Desired, uid types.UID) *podspec.Desired {
	pod := *d.Pod
	pod.UID = uid
	other := d.WithPod(&pod)
	other.Origin = d.Origin
	return other
}
