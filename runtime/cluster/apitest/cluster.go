package apitest

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	certificatesv1 "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Cluster is an API server with one node, in the memory of a test. It stores pods, the Node, leases, events and
// requests for certificates, and answers lists, watches and changes as an API server does. It checks nothing else.
type Cluster struct {
	// Sign answers a new request for a certificate before it is stored. Without it, requests stay pending.
	Sign func(*certificatesv1.CertificateSigningRequest)
	// Raw returns the answer to a request in place of the cluster's, or nil. It may be nil.
	Raw func(*http.Request) http.HandlerFunc

	mu sync.Mutex
	// stored is called with each pod that a request has patched; it may be nil.
	stored  func(before, after *v1.Pod)
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

// OnStored lets a function be called with each pod that a request patches from now on. It must not call the cluster.
func (c *Cluster) OnStored(stored func(before, after *v1.Pod)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stored = stored
}

// Calls returns the calls that change something since the last call, in their order.
func (c *Cluster) Calls() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls := c.calls
	c.calls = nil
	return calls
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
