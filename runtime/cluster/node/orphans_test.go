package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/agent/daemon"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/cluster"
	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/cluster/apitest"
	"github.com/podctl/podctl/runtime/cluster/guard"
	"github.com/podctl/podctl/runtime/cluster/membership"
	"github.com/podctl/podctl/runtime/cluster/pods"
	"github.com/podctl/podctl/runtime/gc"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// orphanage is a runtime with orphans, and the agent that deletes them.
type orphanage struct {
	// mu guards the fields while the search for orphans runs. A test changes them in change.
	mu    sync.Mutex
	found []gc.Orphan
	// read reports whether the files have been read. shown are the pods of the agent.
	read  bool
	shown []*podspec.Desired
	// adopted and deleted are the pods that were adopted, and those that the agent was notified of.
	adopted, deleted []string
	failure          error
}

// change runs a change of the fields.
func (o *orphanage) change(fields func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	fields()
}

func (o *orphanage) Find(context.Context) ([]gc.Orphan, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.found, nil
}

func (o *orphanage) Adopt(_ context.Context, one gc.Orphan) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failure != nil {
		return o.failure
	}
	o.adopted = append(o.adopted, one.Pod.Name)
	return nil
}

func (o *orphanage) SourcesRead(context.Context) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.read, nil
}

func (o *orphanage) Shown(context.Context) ([]*podspec.Desired, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.shown, nil
}

func (o *orphanage) ReadRecord(_ context.Context, uid types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.deleted = append(o.deleted, string(uid))
}

// orphanTest is a node whose API server may change its answers.
type orphanTest struct {
	*orphanage

	orphans *orphans
	object  *v1.Node
	log     apitest.Log
}

// inOrphanage runs a test with a node. stored are the pods of the API server, and answer replaces some of its answers.
func inOrphanage(t *testing.T, answer func(w http.ResponseWriter, r *http.Request) bool, test func(*orphanTest), stored ...*v1.Pod) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewCluster()
		for _, pod := range stored {
			api.Put(pod)
		}
		_, config := apitest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if answer == nil || !answer(w, r) {
				api.ServeHTTP(w, r)
			}
		}))
		client, err := apiclient.New(config)
		if err != nil {
			t.Fatal(err)
		}
		layout := state.Layout{Root: dir}
		if err = layout.Prepare(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		o := &orphanTest{
			object: &v1.Node{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(began)}},
			orphanage: &orphanage{read: true, found: []gc.Orphan{
				{Pod: model.PodRef{Namespace: "a", Name: "gone", UID: "u-gone"}, Began: began.Add(time.Second)},
			}},
		}
		log := slog.New(slog.NewTextHandler(&o.log, nil))
		n := &node{
			ClusterSettings: &daemon.ClusterSettings{NodeName: "n1"}, client: &cluster.Client{Client: client},
			member: &daemon.Member{Settings: daemon.Settings{Now: time.Now, Log: log, Layout: layout}},
			guard: guard.New(guard.Settings{
				Client: client.Core, Health: func() cluster.State { return cluster.State{} }, Node: "n1", StateDir: dir, Log: log,
			}),
		}
		n.source = pods.New(pods.Settings{
			Name: podspec.OwnerAPI, Client: client.Core, Node: "n1", Load: load.FromAPI, Log: log, Confirm: apitest.Confirmed,
			Known: func(types.UID) bool { return false },
		})
		o.orphans = &orphans{
			node: n, agent: o.orphanage, garbage: o.orphanage, begun: began.Add(2 * time.Second),
			object: func() (object *v1.Node) {
				o.change(func() { object = o.object })
				return object
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{}, 2)
		go func() {
			n.source.Run(ctx, nil, func(sources.Update) {})
			ended <- struct{}{}
		}()
		go func() {
			o.orphans.run(ctx)
			ended <- struct{}{}
		}()
		test(o)
		cancel()
		<-ended
		<-ended
	})
}

// after returns the adopted pods after some time.
func (o *orphanTest) after(d time.Duration) string {
	apitest.Sleep(d)
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.adopted, " ")
}

// TestOrphans checks when a pod that a kubelet has left is deleted.
func TestOrphans(t *testing.T) {
	inOrphanage(t, nil, func(o *orphanTest) {
		if got := o.after(5 * time.Second); got != "gone" || fmt.Sprint(o.deleted) != "[u-gone]" {
			t.Errorf("adopted %q, read %v", got, o.deleted)
		}
		o.change(func() { o.found, o.adopted = nil, nil })
		later := gc.Orphan{Pod: model.PodRef{Name: "later", UID: "u-later"}, Began: o.orphans.begun.Add(-1)}
		o.after(5 * time.Second)
		o.change(func() { o.found = append(o.found, later) })
		if got := o.after(time.Minute); got != "later" {
			t.Errorf("an orphan that appears later: %q", got)
		}
	})
}

// TestNoOrphans checks which pods are never deleted.
func TestNoOrphans(t *testing.T) {
	ended := pod("ended", "u-gone", "")
	ended.Status.Phase = v1.PodSucceeded
	list := func(text string) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/pods") || r.URL.Query().Get("watch") == "true" {
				return false
			}
			apitest.JSON(http.StatusOK, text)(w, r)
			return true
		}
	}
	for what, c := range map[string]struct {
		stored *v1.Pod
		answer func(w http.ResponseWriter, r *http.Request) bool
		before func(*orphanTest)
	}{
		"a pod that the API server has":          {stored: pod("web", "u-gone", "")},
		"a pod that has ended":                   {stored: ended},
		"a pod that is not accepted":             {stored: unusable("web", "u-gone")},
		"the uid of a pod of the agent":          {before: func(o *orphanTest) { o.shown = []*podspec.Desired{podspec.New(pod("f", "u-gone", ""), "", "")} }},
		"a file is not read":                     {before: func(o *orphanTest) { o.read = false }},
		"the Node is not registered":             {before: func(o *orphanTest) { o.object = nil }},
		"the Node is younger":                    {before: func(o *orphanTest) { o.object.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Hour)) }},
		"a kubelet has started it beside podctl": {before: func(o *orphanTest) { o.found[0].Began = o.orphans.begun }},
		"one page of the list":                   {answer: list(`{"kind":"PodList","apiVersion":"v1","metadata":{"continue":"x"},"items":[]}`)},
		"the pods are not listed":                {answer: list(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}`)},
		"a part of the list":                     {answer: list(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[`)},
		"no list":                                {answer: list(`{}`)},
		"another cluster":                        {answer: otherCluster, before: recordCluster},
		"it is needed when it is adopted":        {before: func(o *orphanTest) { o.failure = gc.ErrNeeded }},
	} {
		var stored []*v1.Pod
		if c.stored != nil {
			stored = append(stored, c.stored)
		}
		// The source lists the pods before the answers become wrong.
		var broken atomic.Bool
		answer := func(w http.ResponseWriter, r *http.Request) bool {
			return broken.Load() && c.answer != nil && c.answer(w, r)
		}
		inOrphanage(t, answer, func(o *orphanTest) {
			synctest.Wait()
			broken.Store(true)
			if c.before != nil {
				o.change(func() { c.before(o) })
			}
			if got := o.after(10 * time.Minute); got != "" || len(o.deleted) > 0 {
				t.Errorf("%s: adopted %q, read %v", what, got, o.deleted)
			}
		}, stored...)
	}
}

// unusable returns a pod that podctl rejects.
func unusable(name, uid string) *v1.Pod {
	p := pod(name, uid, "")
	p.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "c"}}
	return p
}

// recordCluster records that the node belongs to a cluster.
func recordCluster(o *orphanTest) {
	r := &membership.Record{Name: "n1", UID: "node", Service: "service"}
	if err := r.Write(o.orphans.node.member.Layout.Root); err != nil {
		panic(err)
	}
}

// otherCluster answers with the identity of another cluster.
func otherCluster(w http.ResponseWriter, r *http.Request) bool {
	kind := ""
	switch {
	case strings.HasSuffix(r.URL.Path, "/nodes/n1"):
		kind = "Node"
	case strings.HasSuffix(r.URL.Path, "/services/kubernetes"):
		kind = "Service"
	default:
		return false
	}
	apitest.JSON(http.StatusOK, fmt.Sprintf(`{"kind":%q,"apiVersion":"v1","metadata":{"name":"x","uid":"other"}}`, kind))(w, r)
	return true
}

// TestFailedAdoption checks that a failure is logged once, and that the adoption is tried again.
func TestFailedAdoption(t *testing.T) {
	inOrphanage(t, nil, func(o *orphanTest) {
		o.change(func() { o.failure = errors.New("the disk is full") })
		o.after(10 * time.Minute)
		if n := strings.Count(o.log.String(), "the disk is full"); n != 1 {
			t.Errorf("logged %d times: %s", n, o.log.String())
		}
		o.change(func() { o.failure = nil })
		if got := o.after(2 * time.Minute); !strings.HasPrefix(got, "gone") {
			t.Errorf("then %q is adopted", got)
		}
	})
}

// served is an agent with one pod.
type served struct {
	orphanage
}

func (s *served) List(_ context.Context, all []*podspec.Desired) (listed []*v1.Pod, err error) {
	for _, d := range all {
		listed = append(listed, d.Pod)
	}
	return listed, nil
}

func (s *served) Healthy() error { return nil }

// TestServedPods checks that the node's server also has the pods that had ended before podctl ran, with their status in
// the API.
func TestServedPods(t *testing.T) {
	ended := pod("ended", "e", "")
	ended.Status.Phase = v1.PodFailed
	mirror := pod("mirror", "m", "digest")
	n := newMirrorNode(t, ended, pod("runs", "r", ""), mirror)
	agent := &served{orphanage{shown: []*podspec.Desired{podspec.New(pod("runs", "r", ""), podspec.OwnerAPI, "r")}}}
	s := servedPods{agent, n.source.Finished}
	shown, err := s.Shown(t.Context())
	if err != nil || len(shown) != 2 || !shown[1].FromCluster() {
		t.Fatalf("%v %v", shown, err)
	}
	for _, all := range [][]*podspec.Desired{shown, {shown[1], shown[0]}, shown[1:]} {
		listed, err := s.List(t.Context(), all)
		if err != nil || len(listed) != len(all) {
			t.Fatalf("%v %v", listed, err)
		}
		for i, pod := range listed {
			if pod.UID != all[i].Pod.UID || pod.UID == "e" && pod.Status.Phase != v1.PodFailed {
				t.Errorf("%d: %s %s", i, pod.UID, pod.Status.Phase)
			}
		}
	}
}
