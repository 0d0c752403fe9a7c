package nodestatus

import (
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/podctl/podctl/runtime/cluster/listwatch"
)

// copies holds the newest copy of the Node.
type copies struct {
	// changed is called when another program has changed the conditions or the schedulability of the Node.
	changed func()

	mu sync.Mutex
	// node is the newest copy. It is nil before the first registration, and after the Node was deleted.
	node *v1.Node
}

// newest returns the newest copy, which must not be changed.
func (c *copies) newest() *v1.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.node
}

// answered sets the answer to a request.
func (c *copies) answered(node *v1.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if newer(node, c.node) {
		c.node = node
	}
}

// newer reports whether a is not older than b. Versions that cannot be compared are in the order of their arrival.
func newer(a, b *v1.Node) bool {
	if b == nil || a.UID != b.UID {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err != nil || order >= 0
}

// take sets a copy of the watch, if counts reports that it replaces the one before. nil means that there is no Node.
func (c *copies) take(node *v1.Node, counts func(node, before *v1.Node) bool) {
	c.mu.Lock()
	before := c.node
	if counts(node, before) {
		c.node = node
	}
	now := c.node
	c.mu.Unlock()
	if before != nil && now != nil && before != now &&
		(conditionsChanged(before, now) || before.Spec.Unschedulable != now.Spec.Unschedulable) {
		c.changed()
	}
}

// always lets a list count even if its versions are older: the API server may be restored from a backup.
func always(_, _ *v1.Node) bool { return true }

// store returns the store of the watch. A deletion does not concern a Node that was created later.
func (c *copies) store() listwatch.Store[*v1.Node] {
	return listwatch.Store[*v1.Node]{
		Set: func(node *v1.Node) { c.take(node, newer) },
		Gone: func(gone *v1.Node) {
			c.take(nil, func(_, before *v1.Node) bool { return before == nil || before.UID == gone.UID })
		},
		All: func(all []*v1.Node) {
			var found *v1.Node
			if len(all) > 0 {
				found = all[len(all)-1]
			}
			c.take(found, always)
		},
	}
}
