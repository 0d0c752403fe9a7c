package pods

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/podctl/podctl/runtime/cluster/listwatch"
)

// store receives the results of the reflector.
type store struct {
	listwatch.Store[*v1.Pod]

	source *Source
}

var _ cache.ResourceVersionUpdater = store{}

func newStore(s *Source) store {
	return store{source: s, Store: listwatch.Store[*v1.Pod]{
		Set:  func(pod *v1.Pod) { s.change(func(c *copies) []types.UID { return c.set(pod) }) },
		Gone: func(pod *v1.Pod) { s.change(func(c *copies) []types.UID { return c.removePod(pod) }) },
		All: func(pods []*v1.Pod) {
			s.change(func(c *copies) []types.UID {
				s.listedAt = time.Now()
				return c.replace(pods)
			})
			if s.settings.Listed != nil {
				s.settings.Listed()
			}
		},
	}}
}

// UpdateResourceVersion notes that the watch works. A bookmark, which has no pod, calls only this method.
func (t store) UpdateResourceVersion(string) {
	t.source.mu.Lock()
	defer t.source.mu.Unlock()
	t.source.receivedAt = time.Now()
}
