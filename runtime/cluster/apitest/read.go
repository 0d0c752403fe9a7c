package apitest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

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
