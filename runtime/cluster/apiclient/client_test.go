package apiclient

import (
	"net/http"
	"net/http/httptest"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// TestDo checks the paths of requests, and that the answer must have the type of the request.
func TestDo(t *testing.T) {
	var path, answer string
	code := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.Path
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(answer))
	}))
	defer server.Close()
	c, err := New(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	node := func() (*v1.Node, error) { return Do[v1.Node](t.Context(), c.Core.Get().Resource("nodes").Name("n")) }
	answer = `{"kind":"Node","apiVersion":"v1","metadata":{"name":"n"}}`
	if found, failure := node(); failure != nil || found.Name != "n" || path != "/api/v1/nodes/n" {
		t.Errorf("%s: %v %v", path, found, failure)
	}
	answer = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"n"}}`
	if found, failure := node(); failure == nil || found != nil {
		t.Errorf("a pod for a Node: %v", found)
	}
	code, answer = http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
	if found, failure := node(); !apierrors.IsNotFound(failure) || found != nil {
		t.Errorf("%v %v", found, failure)
	}
	code, answer = http.StatusOK, `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","spec":{"leaseDurationSeconds":40}}`
	lease, err := Do[coordinationv1.Lease](t.Context(), c.Coordination.Get().Namespace("x").Resource("leases").Name("n"))
	if err != nil || *lease.Spec.LeaseDurationSeconds != 40 || path != "/apis/coordination.k8s.io/v1/namespaces/x/leases/n" {
		t.Errorf("%s: %v %v", path, lease, err)
	}
}
