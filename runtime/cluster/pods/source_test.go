package pods

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/cluster/apitest"
)

// server is an API server with pods. It streams the events that the test sends.
type server struct {
	*httptest.Server

	mu      sync.Mutex
	pods    []v1.Pod
	version int
	refuse  func(w http.ResponseWriter) bool
	// answer answers each request; nil, or writing nothing, lets the server answer.
	answer   http.HandlerFunc
	selector []string
	events   chan any
	lists    int
	// fromCache is set if a request accepts any version.
	fromCache bool
}

func newServer(t *testing.T, pods ...v1.Pod) *server {
	s := &server{pods: pods, version: 1, events: make(chan any)}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.selector = append(s.selector, r.URL.Query().Get("fieldSelector"))
	s.fromCache = s.fromCache || r.URL.Query().Get("resourceVersion") == "0"
	refuse, answer := s.refuse, s.answer
	s.mu.Unlock()
	if answer != nil {
		answered := &answered{ResponseWriter: w}
		if answer(answered, r); answered.is || r.Context().Err() != nil {
			return
		}
	}
	if refuse != nil && refuse(w) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") != "true" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lists++
		_ = json.NewEncoder(w).Encode(v1.PodList{
			TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"},
			ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(s.version)}, Items: s.pods,
		})
		return
	}
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		apitest.WithoutWatchList(w, r)
		return
	}
	if s.forgot(r) {
		apitest.Refusal(http.StatusGone, metav1.StatusReasonExpired, 0)(w, r)
		return
	}
	apitest.Stream(s.events)(w, r)
}

// forgot reports whether a watch would begin at a version whose changes are gone.
func (s *server) forgot(r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	from, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	return err != nil || from < s.version
}

// answered records whether there was an answer.
type answered struct {
	http.ResponseWriter

	is bool
}

func (a *answered) WriteHeader(code int) {
	a.is = true
	a.ResponseWriter.WriteHeader(code)
}

func (a *answered) Write(text []byte) (int, error) {
	a.is = true
	return a.ResponseWriter.Write(text)
}

// Hijack takes over the connection.
func (a *answered) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	a.is = true
	return a.ResponseWriter.(http.Hijacker).Hijack() // a test server's writer is one
}

// send sends an event of a pod to the watch.
func (s *server) send(kind string, pod v1.Pod) {
	s.mu.Lock()
	s.version++
	pod.ResourceVersion = fmt.Sprint(s.version)
	s.mu.Unlock()
	s.events <- map[string]any{"type": kind, "object": pod}
}

func podNamed(name string, uid types.UID) v1.Pod {
	return v1.Pod{
		TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: uid, ResourceVersion: "1"},
		Spec:       v1.PodSpec{NodeName: "n", Containers: []v1.Container{{Name: "c", Image: "i"}}},
		Status:     v1.PodStatus{Phase: v1.PodPending},
	}
}

// lab is a source that watches a server.
type lab struct {
	*Source

	t       *testing.T
	updates chan sources.Update
	log     *apitest.Log
	// changed are the pods that were reported as changed. Each report wakes the callers of waitForChange.
	mu       sync.Mutex
	changing *sync.Cond
	changed  []types.UID
}

// waitForChange waits until a pod was reported as changed.
func (l *lab) waitForChange(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !slices.Contains(l.changed, uid) {
		l.changing.Wait()
	}
}

func run(t *testing.T, s *server, known ...types.UID) *lab {
	t.Helper()
	set, err := apiclient.New(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, updates: make(chan sources.Update), log: &apitest.Log{}}
	l.changing = sync.NewCond(&l.mu)
	l.Source = New(Settings{
		Name: "api", Client: set.Core, Node: "n", Confirm: apitest.Confirmed, Known: func(uid types.UID) bool { return slices.Contains(known, uid) },
		Load: func(pod *v1.Pod) (*podspec.Desired, error) {
			if pod.Annotations["bad"] != "" {
				return nil, errors.New("it is bad")
			}
			return podspec.New(pod, "api", pod.UID), nil
		},
		Changed: func(uid types.UID) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.changed = append(l.changed, uid)
			l.changing.Broadcast()
		},
		Log: slog.New(slog.NewTextHandler(l.log, nil)),
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.Run(ctx, nil, func(u sources.Update) {
			select {
			case l.updates <- u:
			case <-ctx.Done():
			}
		})
	}()
	t.Cleanup(func() {
		stop()
		s.CloseClientConnections()
		<-ended
	})
	return l
}

// until returns the first update with a property.
func (l *lab) until(what string, has func(sources.Update) bool) sources.Update {
	l.t.Helper()
	for {
		select {
		case u := <-l.updates:
			if has(u) {
				return u
			}
		case <-l.t.Context().Done():
			l.t.Fatalf("no update: %s", what)
		}
	}
}

func uids(u sources.Update) string {
	var all []string
	for _, d := range u.Pods {
		all = append(all, string(d.Pod.UID))
	}
	return strings.Join(all, " ")
}

// TestListAndWatch checks the updates after a list and after each kind of event.
func TestListAndWatch(t *testing.T) {
	s := newServer(t, podNamed("two", "2"), podNamed("one", "1"))
	l := run(t, s)
	first := l.until("the list", func(u sources.Update) bool { return u.Complete })
	if uids(first) != "1 2" || first.Source != "api" || !l.Listed() {
		t.Errorf("after the list: %q, %+v", uids(first), first)
	}
	status := podNamed("one", "1")
	status.Status.Phase = v1.PodRunning
	s.send("MODIFIED", status)
	u := l.until("a status", func(sources.Update) bool { return l.Get("1").Status.Phase == v1.PodRunning })
	if u.Pods[0] != first.Pods[0] {
		t.Error("a pod whose status has changed is converted again")
	}
	ending := podNamed("one", "1")
	ending.DeletionTimestamp, ending.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(7))
	s.send("MODIFIED", ending)
	u = l.until("a deletion", func(u sources.Update) bool { return len(u.Ending) > 0 })
	if u.Ending["1"] != 7 || uids(u) != "1 2" {
		t.Errorf("a deletion: %v, %q", u.Ending, uids(u))
	}
	s.send("DELETED", ending)
	l.until("the end", func(u sources.Update) bool { return uids(u) == "2" })
	s.send("ADDED", podNamed("one", "3"))
	l.until("another pod with the name", func(u sources.Update) bool { return uids(u) == "3 2" })
	if l.Get("1") != nil || l.Get("3") == nil {
		t.Error("the copies are not those of the API server")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fromCache {
		t.Error("a list may be older than the pods that run")
	}
	if want := "spec.nodeName=n"; slices.ContainsFunc(s.selector, func(got string) bool { return got != want }) {
		t.Errorf("requested are %q", s.selector)
	}
	l.waitForChange("1")
	l.waitForChange("3")
}

// TestWatchEnds checks that a source lists again after the API server has lost its history, and reports what it missed.
func TestWatchEnds(t *testing.T) {
	s := newServer(t, podNamed("one", "1"))
	l := run(t, s)
	l.until("the list", func(u sources.Update) bool { return uids(u) == "1" })
	s.mu.Lock()
	s.pods, s.version = []v1.Pod{podNamed("two", "2")}, 100
	s.mu.Unlock()
	s.events <- map[string]any{"type": "ERROR", "object": metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   "Failure",
		Reason:   metav1.StatusReasonExpired,
		Code:     http.StatusGone,
	}}
	l.until("a new list", func(u sources.Update) bool { return uids(u) == "2" })
	// The pod that is gone has changed, too.
	l.waitForChange("1")
}

// TestRefusals checks that a source without an answer reports nothing, logs the reason once, and recovers.
func TestRefusals(t *testing.T) {
	for name, refuse := range map[string]func(w http.ResponseWriter){
		"unauthorized": func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) },
		"an error":     func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		"HTML": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<html>login</html>"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, refused := newServer(t, podNamed("one", "1")), make(chan struct{})
			count := 0
			s.refuse = func(w http.ResponseWriter) bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				if count++; count > 2 {
					return false
				}
				if count == 2 {
					defer close(refused)
				}
				refuse(w)
				return true
			}
			l := run(t, s)
			u := l.until("an answer", func(sources.Update) bool { return true })
			<-refused
			if !u.Complete || uids(u) != "1" {
				t.Errorf("the first update is %+v", u)
			}
			l.Source.mu.Lock()
			defer l.Source.mu.Unlock()
			// The connection logs the answer to all requests.
			if strings.Contains(l.log.String(), "cannot watch the pods") == (name == "unauthorized") {
				t.Errorf("logged: %s", l.log)
			}
		})
	}
}

// TestCopies checks which pods of the API server the agent must run.
func TestCopies(t *testing.T) {
	load := func(pod *v1.Pod) (*podspec.Desired, error) {
		if pod.Annotations["bad"] != "" {
			return nil, errors.New("it is bad")
		}
		return podspec.New(pod, "api", pod.UID), nil
	}
	ended, recorded, bad := podNamed("ended", "1"), podNamed("recorded", "2"), podNamed("bad", "3")
	ended.Status.Phase, recorded.Status.Phase = v1.PodSucceeded, v1.PodFailed
	bad.Annotations = map[string]string{"bad": "yes"}
	c := newCopies("n", load, func(uid types.UID) bool { return uid == "2" })
	c.replace([]*v1.Pod{&ended, &recorded, &bad})
	u := c.update("api")
	if uids(u) != "2" || len(u.Problems) != 1 || u.Problems[0].Pod != "3" || !strings.Contains(u.Problems[0].Text, "it is bad") {
		t.Errorf("%q with problems %v", uids(u), u.Problems)
	}
	edited := ended
	edited.Labels = map[string]string{"a": "b"}
	c.set(&edited)
	if uids(c.update("api")) != "2" {
		t.Error("a pod that has ended runs again after an edit")
	}
	edited.Status.Phase = v1.PodRunning
	if c.set(&edited); uids(c.update("api")) != "2" {
		t.Error("a pod that has ended runs again after a foreign status")
	}
	deleted := edited
	deleted.DeletionTimestamp = new(metav1.Now())
	if c.set(&deleted); uids(c.update("api")) != "1 2" || c.update("api").Ending["1"] != 30 {
		t.Errorf("a pod that has ended is deleted: %q", uids(c.update("api")))
	}
	again := podNamed("recorded", "4")
	if affected := c.set(&again); !slices.Equal(affected, []types.UID{"2", "4"}) {
		t.Errorf("a new pod with the name affects %v", affected)
	}
	if c.removePod(&recorded); uids(c.update("api")) != "1 4" {
		t.Errorf("a late end removes the new pod: %q", uids(c.update("api")))
	}
	if affected := c.replace(nil); !slices.Equal(affected, []types.UID{"1", "3", "4"}) || len(c.byName) != 0 {
		t.Errorf("an empty list affects %v and leaves %v", affected, c.byName)
	}
}

// TestMirrorPods checks that a pod that shows a pod of another source never reaches the agent.
func TestMirrorPods(t *testing.T) {
	for _, phase := range []v1.PodPhase{v1.PodPending, v1.PodRunning, v1.PodFailed} {
		for _, known := range []bool{false, true} {
			s := New(Settings{
				Name: "api", Node: "n", Known: func(types.UID) bool { return known },
				Load: func(pod *v1.Pod) (*podspec.Desired, error) { return podspec.New(pod, "api", pod.UID), nil },
			})
			mirror, own := podNamed("web-n", "1"), podNamed("own", "2")
			mirror.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "digest"}
			mirror.Status.Phase = phase
			if phase == v1.PodFailed {
				mirror.DeletionTimestamp = new(metav1.Now())
			}
			s.copies.replace([]*v1.Pod{&mirror, &own})
			if u := s.update(); uids(u) != "2" || len(u.Ending)+len(u.Unread)+len(u.Problems)+len(s.Rejected()) > 0 {
				t.Errorf("%s, known %t: %+v", phase, known, u)
			}
			name := types.NamespacedName{Namespace: "a", Name: "web-n"}
			if all := s.Mirrors(); len(all) != 1 || all[0] != &mirror || s.Mirror(name) != &mirror || s.Get("1") != &mirror {
				t.Errorf("%s, known %t: mirror pods %v", phase, known, all)
			}
			if name.Name = "own"; s.Mirror(name) != nil {
				t.Error("an ordinary pod is no mirror pod")
			}
		}
	}
}

// TestForcedDeletion checks that the last grace period of a pod that is gone is reported until its records are gone.
func TestForcedDeletion(t *testing.T) {
	known := map[types.UID]bool{"1": true, "2": true}
	c := newCopies("n", func(pod *v1.Pod) (*podspec.Desired, error) { return podspec.New(pod, "api", pod.UID), nil },
		func(uid types.UID) bool { return known[uid] })
	slow, vanished := podNamed("slow", "1"), podNamed("vanished", "2")
	c.replace([]*v1.Pod{&slow, &vanished})
	c.removePod(&vanished)
	ending := slow
	ending.DeletionTimestamp, ending.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(3600))
	c.set(&ending)
	forced := ending
	forced.DeletionGracePeriodSeconds = new(int64(0))
	c.set(&forced)
	c.removePod(&forced)
	again := podNamed("slow", "3")
	c.set(&again)
	if u := c.update("api"); uids(u) != "3" || !maps.Equal(u.Ending, map[types.UID]int64{"1": 0}) {
		t.Errorf("pods %q, ending %v", uids(u), u.Ending)
	}
	known["1"] = false
	if u := c.update("api"); len(u.Ending) != 0 || len(c.gone) != 0 {
		t.Errorf("without a record: ending %v, gone %v", u.Ending, c.gone)
	}
}

// TestList checks that a list for a user has the pods of this node as the API server has them now, and changes no copy.
func TestList(t *testing.T) {
	own, other := v1.Pod{}, v1.Pod{}
	own.Namespace, own.Name, own.UID, own.Spec.NodeName = "a", "web", "u", "n"
	own.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	other.Namespace, other.Name, other.UID, other.Spec.NodeName = "a", "other", "v", "m"
	s := newServer(t, own, other)
	set, err := apiclient.New(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	source := New(Settings{Client: set.Core, Node: "n", Confirm: apitest.Confirmed})
	list, err := source.List(t.Context())
	if err != nil || len(list) != 1 || list[0].UID != "u" || list[0].ManagedFields != nil || source.Listed() || source.All() != nil {
		t.Errorf("%v, %v", list, err)
	}
	if !slices.Equal(s.selector, []string{"spec.nodeName=n"}) {
		t.Errorf("the selector is %q", s.selector)
	}
	s.Close()
	if _, err = source.List(t.Context()); err == nil {
		t.Error("without a server, there is no error")
	}
}
