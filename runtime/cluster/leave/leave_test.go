package leave

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/cluster/apitest"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// pod returns a pod of the node. owner is the kind of its controller; empty if it has none.
func pod(name, owner string, change ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
	p.Spec.NodeName = "n1"
	if owner != "" {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: owner, Controller: new(true)}}
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func emptyDir(p *v1.Pod) {
	p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
}

func over(p *v1.Pod) { p.Status.Phase = v1.PodSucceeded }

func mirror(p *v1.Pod) { p.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "x"} }

func ending(p *v1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }

// TestChoose checks which pods are evicted, and for which the user must set an option.
func TestChoose(t *testing.T) {
	for _, c := range []struct {
		name    string
		pod     *v1.Pod
		options Options
		evicted bool
		failure string
	}{
		{"a pod of a ReplicaSet", pod("p", "ReplicaSet"), Options{}, true, ""},
		{"a pod of a DaemonSet", pod("p", "DaemonSet", emptyDir), Options{Force: true}, false, ""},
		{"a mirror pod", pod("p", "Node", mirror), Options{Force: true}, false, ""},
		{"a pod without a controller", pod("p", ""), Options{}, true, "--force"},
		{"the same with force", pod("p", ""), Options{Force: true}, true, ""},
		{"a pod with an emptyDir", pod("p", "Job", emptyDir), Options{}, true, "--delete-emptydir-data"},
		{"the same with its option", pod("p", "Job", emptyDir), Options{DeleteEmptyDir: true}, true, ""},
		{"a finished pod", pod("p", "", emptyDir, over), Options{}, true, ""},
		{"a pod that is being deleted", pod("p", "", emptyDir, ending), Options{}, true, ""},
	} {
		evicted, err := choose([]v1.Pod{*c.pod}, c.options)
		if (len(evicted) > 0) != c.evicted || (err != nil) != (c.failure != "") || !strings.Contains(fmt.Sprint(err), c.failure) {
			t.Errorf("%s: %d pods, %v", c.name, len(evicted), err)
		}
	}
}

// world is an API server with a node whose agent ends deleted pods after five seconds.
type world struct {
	*apitest.Cluster

	leaver *Leaver

	mu    sync.Mutex
	calls []string
	notes []string
	// budget is how many evictions of the pod web are refused, and admin whether the Node may be deleted.
	budget int
	admin  bool
}

func newWorld(t *testing.T, pods ...*v1.Pod) *world {
	t.Helper()
	w := &world{Cluster: apitest.NewCluster(), admin: true}
	w.Raw = w.answer
	_, config := apitest.Serve(t, w)
	client, err := apiclient.New(config)
	if err != nil {
		t.Fatal(err)
	}
	w.Store("/api/v1/nodes/n1", &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	w.Store("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1",
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: "n1"}})
	for _, p := range pods {
		w.Put(p)
	}
	w.leaver = &Leaver{Client: client, Node: "n1", Note: func(format string, args ...any) {
		w.notes = append(w.notes, fmt.Sprintf(format, args...))
	}}
	return w
}

// answer answers evictions and deletions of pods and of the Node.
func (w *world) answer(r *http.Request) http.HandlerFunc {
	w.mu.Lock()
	defer w.mu.Unlock()
	name, evicts := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/a/pods/"), "/eviction")
	switch {
	case r.Method == http.MethodDelete && r.URL.Path == "/api/v1/nodes/n1" && !w.admin:
		return apitest.Refusal(http.StatusForbidden, metav1.StatusReasonForbidden, 0)
	case r.Method == http.MethodDelete:
		w.calls = append(w.calls, "DELETE "+r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:])
		if !strings.Contains(r.URL.Path, "/pods/") {
			return nil
		}
	case !evicts:
		return nil
	case name == "web" && w.budget > 0:
		w.budget--
		return apitest.Refusal(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, 0)
	default:
		w.calls = append(w.calls, "evict "+name)
	}
	if w.Pod("a", name) == nil {
		return apitest.Refusal(http.StatusNotFound, metav1.StatusReasonNotFound, 0)
	}
	w.End("a", name, 5)
	time.AfterFunc(5*time.Second, func() { w.Remove("a", name) }) // as its agent does
	return apitest.JSON(http.StatusCreated, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
}

func (w *world) called() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := strings.Join(w.calls, ", ")
	w.calls = nil
	return text
}

// TestLeave checks the order of the requests: evictions that a disruption budget delays, the Node, the rest of its pods
// and the lease.
func TestLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, pod("web", "ReplicaSet"), pod("job", "Job", over), pod("ds", "DaemonSet"), pod("file", "Node", mirror))
		w.budget = 3
		began := time.Now()
		if err := w.leaver.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := w.called(); got != "evict job, evict web" || time.Since(began) < 15*time.Second || time.Since(began) > time.Minute {
			t.Errorf("drain: %s after %s", got, time.Since(began))
		}
		if node := w.Objects("nodes")[0].(*v1.Node); !node.Spec.Unschedulable || w.Pod("a", "ds") == nil || w.Pod("a", "web") != nil {
			t.Errorf("%v %v", node.Spec, w.Pods())
		}
		if err := w.leaver.RemoveNode(t.Context()); err != nil || w.called() != "DELETE n1, DELETE ds" {
			t.Errorf("the Node: %v", err)
		}
		if len(w.Objects("nodes")) != 0 || w.Pod("a", "ds") != nil || w.Pod("a", "file") == nil {
			t.Errorf("left: %v", w.Pods())
		}
		for range 2 {
			if err := w.leaver.RemoveLease(t.Context()); err != nil || len(w.Objects("leases")) != 0 {
				t.Errorf("the lease: %v", err)
			}
		}
		// A second call has nothing to do.
		w.called()
		if err := errors.Join(w.leaver.Drain(t.Context()), w.leaver.RemoveNode(t.Context())); err != nil || w.called() != "" {
			t.Errorf("again: %v", err)
		}
		text := strings.Join(w.notes, "\n")
		if strings.Count(text, "a/web cannot be ended yet: ") != 1 || !strings.Contains(text, "waiting for the end of a/web") {
			t.Error(text)
		}
	})
}

// TestRefusals checks that nothing is evicted if an option is missing, and what happens without permissions.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, pod("web", "ReplicaSet"), pod("alone", ""))
		if err := w.leaver.Drain(t.Context()); err == nil || !strings.Contains(err.Error(), "a/alone") || w.called() != "" {
			t.Errorf("%v", err)
		}
		w.admin, w.leaver.Force, w.leaver.Grace = false, true, new(int64(1))
		if err := w.leaver.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		if err := w.leaver.RemoveNode(t.Context()); !errors.Is(err, ErrForbidden) || !strings.Contains(err.Error(), "kubectl delete node n1") {
			t.Errorf("%v", err)
		}
		if len(w.Objects("nodes")) != 1 || len(w.Pods()) != 0 {
			t.Errorf("%v %v", w.Objects("nodes"), w.Pods())
		}
	})
}

// TestTimeout checks that a budget that never allows an eviction ends with the time of the user, and that an API server
// that does not respond delays the command only.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, pod("web", "ReplicaSet"))
		w.budget = 1000
		// No request begins at the instant of the end.
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute+listEvery/2)
		defer cancel()
		if err := w.leaver.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) || w.called() != "" {
			t.Errorf("%v", err)
		}
		synctest.Wait()
		w.budget = 0
		failures := 3
		w.Raw = func(r *http.Request) http.HandlerFunc {
			if failures > 0 && r.URL.Path == "/api/v1/pods" {
				failures--
				return apitest.Disconnect
			}
			return w.answer(r)
		}
		if err := w.leaver.Drain(t.Context()); err != nil || w.called() != "evict web" || failures != 0 {
			t.Errorf("%v", err)
		}
	})
}

// TestOtherServer checks that pods of other nodes stay if a server ignores the selector, and that the page of a proxy does
// not count as the absence or as the deletion of an object.
func TestOtherServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, pod("web", "ReplicaSet"), pod("other", "ReplicaSet", func(p *v1.Pod) { p.Spec.NodeName = "n2" }))
		w.Raw = func(r *http.Request) http.HandlerFunc {
			r.URL.RawQuery = ""
			return w.answer(r)
		}
		if err := w.leaver.Drain(t.Context()); err != nil || w.called() != "evict web" || w.Pod("a", "other") == nil {
			t.Errorf("%v", err)
		}
		for _, c := range []struct {
			method string
			code   int
		}{{"", http.StatusNotFound}, {http.MethodDelete, http.StatusOK}} {
			w.Raw = func(r *http.Request) http.HandlerFunc {
				if c.method == "" || r.Method == c.method {
					return apitest.Page(c.code)
				}
				return nil
			}
			node, lease := w.leaver.RemoveNode(t.Context()), w.leaver.RemoveLease(t.Context())
			if node == nil || lease == nil || !strings.Contains(node.Error(), "deleting the Node") || len(w.Objects("leases")) != 1 {
				t.Errorf("%s %d: %v, %v", c.method, c.code, node, lease)
			}
		}
	})
}
