package pods

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// store receives the results of the reflector.
type store struct{ source *Source }

var (
	_ cache.ReflectorStore         = store{}
	_ cache.ResourceVersionUpdater = store{}
)

// Add adds a pod that is new.
func (t store) Add(obj any) error { return t.Update(obj) }

// Update sets a pod that has changed.
func (t store) Update(obj any) error {
	pod, err := podOf(obj)
	if err != nil {
		return err
	}
	t.source.change(func(c *copies) []types.UID { return c.set(pod) })
	return nil
}

// Delete removes a pod that is gone.
func (t store) Delete(obj any) error {
	pod, err := podOf(obj)
	if err != nil {
		return err
	}
	t.source.change(func(c *copies) []types.UID { return c.removePod(pod) })
	return nil
}

// Replace sets all pods, as a list has returned them.
func (t store) Replace(list []any, _ string) error {
	pods := make([]*v1.Pod, 0, len(list))
	for _, obj := range list {
		pod, err := podOf(obj)
		if err != nil {
			return err
		}
		pods = append(pods, pod)
	}
	t.source.change(func(c *copies) []types.UID {
		t.source.listedAt = time.Now()
		return c.replace(pods)
	})
	if t.source.settings.Listed != nil {
		t.source.settings.Listed()
	}
	return nil
}

// UpdateResourceVersion notes that the watch works. A bookmark, which has no pod, calls only this method.
func (t store) UpdateResourceVersion(string) {
	t.source.mu.Lock()
	defer t.source.mu.Unlock()
	t.source.receivedAt = time.Now()
}

// Resync does nothing, because there is no resync period.
func (t store) Resync() error { return nil }

// podOf returns a pod without its managedFields, which a node does not need and which are a large part of its size.
func podOf(obj any) (*v1.Pod, error) {
	pod, is := obj.(*v1.Pod)
	if !is {
		return nil, fmt.Errorf("the API server sent %T instead of a pod", obj)
	}
	pod.ManagedFields = nil
	return pod, nil
}
