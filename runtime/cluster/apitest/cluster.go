package apitest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// Cluster is an API server with one node, in the memory of a test. It stores pods, the Node, leases, events and
// requests for certificates, and answers lists, watches and changes as an API server does. It checks nothing else.
type Cluster struct {
	// Sign answers a new request for a certificate before it is stored. Without it, requests stay pending.
	Sign func(*certificatesv1.CertificateSigningRequest)
	// Raw returns the answer to a request in place of the cluster's, or nil. It may be nil.
	Raw func(*http.Request) http.HandlerFunc
	// Stored is called with each change of a pod that a request has made. It may be nil, and must not call the cluster.
	Stored func(before, after *v1.Pod)

	mu      sync.Mutex
	version int
	objects map[string]object
	changes []change
	// changed is closed and replaced with each change.
	changed chan struct{}

	calls        []string
	disturbances []*Disturbance
}

// Object is any object of the API.
type Object interface {
	runtime.Object
	metav1.Object
}

type object = Object

// change is an event of a watch.
type change struct {
	version    int
	collection string
	kind       string
	object     object
}

// Disturbance changes one call, such as "PATCH pods/status".
type Disturbance struct {
	Call string
	// Nth counts the calls after Disturb; 1 is the next.
	Nth int
	// Before is called before the call is handled, and After when it was. They may end the client. Lose ends the
	// connection without an answer, although the call was handled.
	Before, After func()
	Lose          bool
}

// NewCluster returns a cluster without objects.
func NewCluster() *Cluster {
	return &Cluster{version: 1, objects: map[string]object{}, changed: make(chan struct{})}
}

// Disturb adds a disturbance.
func (c *Cluster) Disturb(d Disturbance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disturbances = append(c.disturbances, &d)
}

// Calm removes all disturbances.
func (c *Cluster) Calm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disturbances = nil
}

// Calls returns the calls that change something since the last call, in their order.
func (c *Cluster) Calls() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls := c.calls
	c.calls = nil
	return calls
}

// Pod returns a stored pod; nil if there is none.
func (c *Cluster) Pod(namespace, name string) *v1.Pod {
	c.mu.Lock()
	defer c.mu.Unlock()
	pod, _ := c.objects["/api/v1/namespaces/"+namespace+"/pods/"+name].(*v1.Pod)
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
	path := "/api/v1/namespaces/" + pod.Namespace + "/pods/" + pod.Name
	pod.Generation = 1
	if before, is := c.objects[path].(*v1.Pod); is {
		pod.Status, pod.Generation = before.Status, before.Generation+1
	}
	c.store(path, pod)
}

// Store creates or changes an object of another kind than a pod, with its path in the API.
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
	path := "/api/v1/namespaces/" + namespace + "/pods/" + name
	if pod, is := c.objects[path].(*v1.Pod); is {
		c.end(path, pod, grace)
	}
}

// Remove removes a pod at once, as a forced deletion does.
func (c *Cluster) Remove(namespace, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	path := "/api/v1/namespaces/" + namespace + "/pods/" + name
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

// ServeHTTP answers a request.
func (c *Cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.Raw != nil {
		if answer := c.Raw(r); answer != nil {
			answer(w, r)
			return
		}
	}
	body, err := io.ReadAll(r.Body)
	resource := collectionOf(r.URL.Path)
	if err != nil || resource == "" {
		Refusal(http.StatusNotFound, metav1.StatusReasonNotFound, 0)(w, r)
		return
	}
	if r.Method == http.MethodGet {
		c.read(w, r, resource)
		return
	}
	d := c.note(r, resource)
	if d.Before != nil {
		d.Before()
	}
	c.mu.Lock()
	answer, refusal := c.handle(r, resource, body)
	c.mu.Unlock()
	if d.After != nil {
		d.After()
	}
	switch {
	case d.Lose:
		Disconnect(w, r)
	case refusal != nil:
		refusal(w, r)
	default:
		write(w, answer)
	}
}

// note records a call that changes something, and returns its disturbance.
func (c *Cluster) note(r *http.Request, resource string) Disturbance {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := r.Method + " " + resource
	if strings.HasSuffix(r.URL.Path, "/status") {
		call += "/status"
	}
	c.calls = append(c.calls, call)
	for i, d := range c.disturbances {
		if d.Call != call {
			continue
		}
		if d.Nth--; d.Nth < 1 {
			c.disturbances = slices.Delete(c.disturbances, i, i+1)
			return *d
		}
	}
	return Disturbance{}
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

// read answers a get, a list or a watch.
func (c *Cluster) read(w http.ResponseWriter, r *http.Request, resource string) {
	isList := strings.HasSuffix(r.URL.Path, "/"+resource)
	c.mu.Lock()
	o, all, version := c.objects[r.URL.Path], c.list(resource), c.version
	c.mu.Unlock()
	all = slices.DeleteFunc(all, func(o object) bool { return !selects(r, o) })
	switch {
	case r.URL.Query().Get("sendInitialEvents") == "true":
		Refusal(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, 0)(w, r)
	case r.URL.Query().Get("watch") == "true":
		c.watch(w, r, resource)
	case isList:
		kind := kindOf(newObject(resource))
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"kind": kind.Kind + "List", "apiVersion": kind.GroupVersion().String(), "items": all,
			"metadata": map[string]string{"resourceVersion": strconv.Itoa(version)},
		})
	case o == nil:
		Refusal(http.StatusNotFound, metav1.StatusReasonNotFound, 0)(w, r)
	default:
		write(w, o)
	}
}

// selects reports whether a request selects an object. Only selectors of names are known.
func selects(r *http.Request, o object) bool {
	name, isName := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	_, rest, isNamespaced := strings.Cut(r.URL.Path, "/namespaces/")
	namespace, _, _ := strings.Cut(rest, "/")
	return (!isName || name == o.GetName()) && (!isNamespaced || namespace == o.GetNamespace())
}

// watch sends the changes since a version.
func (c *Cluster) watch(w http.ResponseWriter, r *http.Request, resource string) {
	since, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	for {
		w.(http.Flusher).Flush() // a test server's writer is one
		c.mu.Lock()
		news, changed := c.changes, c.changed
		c.mu.Unlock()
		for _, one := range news {
			if one.version > since && one.collection == resource && selects(r, one.object) {
				_ = json.NewEncoder(w).Encode(map[string]any{"type": one.kind, "object": typed(one.object)})
			}
			since = max(since, one.version)
		}
		w.(http.Flusher).Flush() // as above
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		}
	}
}

// kindOf returns the kind of an object.
func kindOf(o object) schema.GroupVersionKind {
	kinds, _, err := scheme.Scheme.ObjectKinds(o)
	if err != nil {
		panic(err)
	}
	return kinds[0]
}

// typed returns a copy of an object with its kind.
func typed(o object) runtime.Object {
	copied := o.DeepCopyObject()
	copied.GetObjectKind().SetGroupVersionKind(kindOf(o))
	return copied
}

func write(w http.ResponseWriter, o object) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(typed(o))
}
