package apitest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func podPath(namespace, name string) string {
	return "/api/v1/namespaces/" + namespace + "/pods/" + name
}

// Pod returns a stored pod; nil if there is none.
func (c *Cluster) Pod(namespace, name string) *v1.Pod {
	c.mu.Lock()
	defer c.mu.Unlock()
	pod, _ := c.objects[podPath(namespace, name)].(*v1.Pod)
	return pod
}

// Pods returns all pods, in the order of their names.
func (c *Cluster) Pods() (pods []*v1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.list("pods") {
		pods = append(pods, o.(*v1.Pod)) // of this collection
	}
	return pods
}

// Objects returns all objects of some resources.
func (c *Cluster) Objects(resources ...string) (all []Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range resources {
		all = append(all, c.list(resource)...)
	}
	return all
}

// Put creates or changes a pod. The status of an existing one stays.
func (c *Cluster) Put(pod *v1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pod = pod.DeepCopy()
	path := podPath(pod.Namespace, pod.Name)
	pod.Generation = 1
	if before, is := c.objects[path].(*v1.Pod); is {
		pod.Status, pod.Generation = before.Status, before.Generation+1
	}
	c.store(path, pod)
}

// Store creates or replaces the object at a path of the API. For a pod, Put also sets the generation.
func (c *Cluster) Store(path string, o Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store(path, o)
}

// Answer changes all requests for certificates.
func (c *Cluster) Answer(change func(*certificatesv1.CertificateSigningRequest)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for path, o := range c.objects {
		if csr, is := o.(*certificatesv1.CertificateSigningRequest); is {
			csr = csr.DeepCopy()
			change(csr)
			c.store(path, csr)
		}
	}
}

// End begins the deletion of a pod, if it is there.
func (c *Cluster) End(namespace, name string, grace int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	path := podPath(namespace, name)
	if pod, is := c.objects[path].(*v1.Pod); is {
		c.end(path, pod, grace)
	}
}

// Remove removes a pod at once, as a forced deletion does.
func (c *Cluster) Remove(namespace, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	path := podPath(namespace, name)
	if pod := c.objects[path]; pod != nil {
		c.drop(path, pod)
	}
}

// drop removes an object. Its last version is that of the removal, so that a watch continues after it. The caller holds
// the lock.
func (c *Cluster) drop(path string, o object) {
	delete(c.objects, path)
	c.version++
	last := o.DeepCopyObject().(object) // a copy of an object
	last.SetResourceVersion(strconv.Itoa(c.version))
	c.report(path, watchDeleted, last)
}

// end begins the deletion of a pod. The caller holds the lock.
func (c *Cluster) end(path string, pod *v1.Pod, grace int64) *v1.Pod {
	pod = pod.DeepCopy()
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.Now()), &grace
	c.store(path, pod)
	return pod
}

// store stores an object. The caller holds the lock.
func (c *Cluster) store(path string, o object) {
	kind := watchAdded
	if c.objects[path] != nil {
		kind = watchModified
	}
	c.version++
	o.SetResourceVersion(strconv.Itoa(c.version))
	if o.GetUID() == "" {
		o.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", c.version)))
	}
	c.objects[path] = o
	c.report(path, kind, o)
}

const watchAdded, watchModified, watchDeleted = "ADDED", "MODIFIED", "DELETED"

func (c *Cluster) report(path, kind string, o object) {
	c.changes = append(c.changes, change{c.version, collectionOf(path), kind, o})
	close(c.changed)
	c.changed = make(chan struct{})
}

const csrs = "certificatesigningrequests"

// others are resources that the node only reads.
var others = []string{ //nolint:gochecknoglobals // a table
	"secrets", "configmaps", "services", "runtimeclasses", "persistentvolumeclaims", "persistentvolumes",
}

// collectionOf returns the resource of a path: "pods" or "leases".
func collectionOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for _, known := range append([]string{"pods", "nodes", "events", "leases", csrs}, others...) {
		if slices.Contains(parts, known) {
			return known
		}
	}
	return ""
}

// newObject returns an empty object of a resource.
func newObject(resource string) object {
	switch resource {
	case "nodes":
		return &v1.Node{}
	case "events":
		return &v1.Event{}
	case "leases":
		return &coordinationv1.Lease{}
	case csrs:
		return &certificatesv1.CertificateSigningRequest{}
	case "secrets":
		return &v1.Secret{}
	case "configmaps":
		return &v1.ConfigMap{}
	case "services":
		return &v1.Service{}
	case "runtimeclasses":
		return &nodev1.RuntimeClass{}
	case "persistentvolumeclaims":
		return &v1.PersistentVolumeClaim{}
	case "persistentvolumes":
		return &v1.PersistentVolume{}
	}
	return &v1.Pod{}
}

// list returns the objects of a resource. The caller holds the lock.
func (c *Cluster) list(resource string) (all []object) {
	for path, o := range c.objects {
		if collectionOf(path) == resource {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b object) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all
}
