package apievents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/rest"
	kubeletevents "k8s.io/kubernetes/pkg/kubelet/events"

	"github.com/podctl/podctl/runtime/cluster/apitest"
	"github.com/podctl/podctl/runtime/state"
)

// apiServer stores events. It is the transport of the client, so that the clock of the test waits for it.
type apiServer struct {
	mu       sync.Mutex
	events   map[string]*v1.Event
	requests []string
	// down is the error of connections. code is the status of all answers; zero means that requests succeed.
	down error
	code int
	// other is the error of Confirm.
	other error
}

// RoundTrip makes one request.
func (s *apiServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.Method)
	if s.down != nil {
		return nil, s.down
	}
	w := httptest.NewRecorder()
	s.serve(w, r)
	return w.Result(), nil
}

func refuse(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: map[int]metav1.StatusReason{404: metav1.StatusReasonNotFound}[code], // a status code
	})
}

func (s *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	parts := strings.Split(r.URL.Path, "/")
	if s.code != 0 {
		refuse(w, s.code)
		return
	}
	e := &v1.Event{}
	if r.Method == http.MethodPatch {
		before := s.events[parts[len(parts)-1]]
		if before == nil {
			refuse(w, http.StatusNotFound)
			return
		}
		text, _ := json.Marshal(before)
		merged, _ := strategicpatch.StrategicMergePatch(text, body, v1.Event{})
		_ = json.Unmarshal(merged, e)
	} else {
		_ = json.Unmarshal(body, e)
		if s.events[e.Name] != nil || e.Namespace != parts[4] {
			refuse(w, http.StatusConflict)
			return
		}
	}
	e.ResourceVersion = fmt.Sprint(len(s.requests))
	s.events[e.Name] = e
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(e)
}

// shown returns the stored events: "web spec.containers{c} Started x2".
func (s *apiServer) shown() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, e := range s.events {
		all = append(all, strings.Join(strings.Fields(fmt.Sprintf("%s %s %s x%d", e.InvolvedObject.Name, e.InvolvedObject.FieldPath, e.Reason, e.Count)), " "))
	}
	slices.Sort(all)
	return all
}

func (s *apiServer) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := strings.Join(s.requests, " ")
	s.requests = nil
	return log
}

func (s *apiServer) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

var web = &v1.Pod{
	ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web", UID: "u", ResourceVersion: "7"},
	Spec: v1.PodSpec{
		InitContainers: []v1.Container{{Name: "i"}}, Containers: []v1.Container{{Name: "c"}},
		EphemeralContainers: []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "e"}}},
	},
}

func event(reason, container string) state.PodEvent {
	return state.PodEvent{Type: state.Normal, Reason: reason, Container: container, Message: "m of " + reason, Last: time.Now()}
}

// run runs a sender on the clock of the test.
func run(t *testing.T, do func(t *testing.T, s *Sender, server *apiServer, log *apitest.Log)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := &apiServer{events: map[string]*v1.Event{}}
		client, err := NewClient(&rest.Config{
			Host: "http://api", Transport: server, ContentConfig: rest.ContentConfig{ContentType: "application/json"},
		})
		if err != nil {
			t.Fatal(err)
		}
		log := &apitest.Log{}
		s := New(Settings{
			Client: client, Node: "n", Random: func() float64 { return 0.5 }, Log: slog.New(slog.NewTextHandler(log, nil)),
			Check: func() error {
				server.mu.Lock()
				defer server.mu.Unlock()
				return server.down
			},
			Confirm: func(context.Context) error {
				server.mu.Lock()
				defer server.mu.Unlock()
				return server.other
			},
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.Run(ctx)
		}()
		do(t, s, server, log)
		stop()
		<-ended
	})
}

// TestEvents checks the contents of events.
func TestEvents(t *testing.T) {
	run(t, func(t *testing.T, s *Sender, server *apiServer, _ *apitest.Log) {
		at := time.Now().Add(-time.Minute)
		long := state.PodEvent{Type: state.Warning, Reason: "Failed", Message: strings.Repeat("é", 1000), Last: at}
		long.Annotations = map[string]string{"starved_resource": "memory"}
		s.Pod(web, []state.PodEvent{event("Started", "c"), event("Created", "i"), event("Started", "e"), event("Killing", "absent"), long})
		s.Node("Normal", "NodeReady", "Node n status is now: NodeReady")
		apitest.Sleep(time.Second)
		want := []string{
			"n NodeReady x1", "web Failed x1", "web Killing x1", "web spec.containers{c} Started x1",
			"web spec.ephemeralContainers{e} Started x1", "web spec.initContainers{i} Created x1",
		}
		if got := server.shown(); !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
		for _, e := range server.events {
			if e.Source != (v1.EventSource{Component: "kubelet", Host: "n"}) || e.ReportingController != "kubelet" || e.ReportingInstance != "n" {
				t.Errorf("%+v", e)
			}
			switch o := e.InvolvedObject; {
			case e.Reason == "Failed" && (e.Type != "Warning" || len(e.Message) != 1024 || !e.LastTimestamp.Equal(&metav1.Time{Time: at})):
				t.Errorf("%+v", e)
			case !maps.Equal(e.Annotations, map[string]string{"starved_resource": "memory"}) && e.Reason == "Failed":
				t.Errorf("%+v", e)
			case o.Kind == "Node" && (e.Namespace != "default" || o.UID != "n" || o.APIVersion != "v1"):
				t.Errorf("%+v", e)
			case o.Kind == "Pod" && (e.Namespace != "a" || o.UID != "u" || o.ResourceVersion != "7"):
				t.Errorf("%+v", e)
			}
		}
	})
}

// TestOwnEvents checks that the API gets podctl's own events only if they explain a difference from a kubelet.
func TestOwnEvents(t *testing.T) {
	run(t, func(t *testing.T, s *Sender, server *apiServer, _ *apitest.Log) {
		s.Pod(web, []state.PodEvent{event("SandboxCreated", ""), event("ProbeStale", "c"), event("Killing", "c")})
		apitest.Sleep(time.Second)
		if got := server.shown(); !slices.Equal(got, []string{"web spec.containers{c} Killing x1", "web spec.containers{c} ProbeStale x1"}) {
			t.Errorf("%q", got)
		}
	})
	for _, reason := range []string{kubeletevents.StartedContainer, kubeletevents.SandboxChanged, kubeletevents.FailedSync} {
		if _, is := own()[reason]; is || !isSent(reason) {
			t.Errorf("%s is an event of a kubelet", reason)
		}
	}
}

// TestCounts checks that identical events are counted, also if the counted event has expired.
func TestCounts(t *testing.T) {
	run(t, func(t *testing.T, s *Sender, server *apiServer, _ *apitest.Log) {
		for range 3 {
			s.Pod(web, []state.PodEvent{event("BackOff", "c")})
			apitest.Sleep(time.Second)
		}
		if got := server.shown(); !slices.Equal(got, []string{"web spec.containers{c} BackOff x3"}) {
			t.Errorf("%q", got)
		}
		server.change(func() { clear(server.events) })
		s.Pod(web, []state.PodEvent{event("BackOff", "c")})
		apitest.Sleep(time.Second)
		if got := server.shown(); !slices.Equal(got, []string{"web spec.containers{c} BackOff x4"}) || server.log() != "POST PATCH PATCH PATCH POST" {
			t.Errorf("%q", got)
		}
	})
}

// TestStatusFirst checks that the first event leaves time for the status of its pod.
func TestStatusFirst(t *testing.T) {
	run(t, func(t *testing.T, s *Sender, server *apiServer, _ *apitest.Log) {
		synctest.Wait()
		s.Pod(web, []state.PodEvent{event("Started", "c")})
		apitest.Sleep(statusFirst - time.Millisecond)
		if got := server.shown(); len(got) > 0 {
			t.Errorf("%q is sent at once", got)
		}
		apitest.Sleep(2 * time.Millisecond)
		if got := server.shown(); len(got) != 1 {
			t.Errorf("%q is sent after %s", got, statusFirst)
		}
	})
}

// TestUnreachable checks that the last event of each kind is sent when the API server responds again.
func TestUnreachable(t *testing.T) {
	run(t, func(t *testing.T, s *Sender, server *apiServer, log *apitest.Log) {
		server.change(func() { server.down = errors.New("connection refused") })
		for i := range 30 {
			e := event("Unhealthy", "c")
			e.Message = fmt.Sprintf("probe %d", i)
			pod := web.DeepCopy()
			pod.ResourceVersion = fmt.Sprint(i)
			s.Pod(pod, []state.PodEvent{e, event("Pulled", "c")})
			apitest.Sleep(time.Minute)
		}
		server.log()
		server.change(func() { server.down = nil })
		s.Wake()
		apitest.Sleep(time.Second)
		// The event that was on its way stays too.
		want := []string{"web spec.containers{c} Pulled x1", "web spec.containers{c} Unhealthy x1", "web spec.containers{c} Unhealthy x1"}
		if got := server.shown(); !slices.Equal(got, want) || server.log() != "POST POST POST" {
			t.Errorf("%q", got)
		}
		last := false
		for _, e := range server.events {
			last = last || e.Message == "probe 29"
		}
		if n := strings.Count(log.String(), "cannot send"); n != 1 || !last {
			t.Errorf("%d failures: %s", n, log)
		}
	})
}

// TestAnotherCluster checks that another cluster gets no event, although it responds, and that the events that wait are
// sent when that ends.
func TestAnotherCluster(t *testing.T) {
	run(t, func(t *testing.T, s *Sender, server *apiServer, log *apitest.Log) {
		server.change(func() { server.other = errors.New("another cluster") })
		s.Node("Normal", "Starting", "")
		s.Pod(web, []state.PodEvent{event("Started", "c")})
		apitest.Sleep(time.Hour)
		if requests := server.log(); requests != "" || log.String() != "" {
			t.Errorf("requests %s, log %s", requests, log)
		}
		server.change(func() { server.other = nil })
		apitest.Sleep(pause)
		if got := server.shown(); !slices.Equal(got, []string{"n Starting x1", "web spec.containers{c} Started x1"}) {
			t.Errorf("%q", got)
		}
	})
}

// TestFailures checks which answers end an event.
func TestFailures(t *testing.T) {
	for code, want := range map[int]int{403: 1, 404: 1, 409: 1, 422: 1, 500: 12, 501: 12} {
		run(t, func(t *testing.T, s *Sender, server *apiServer, _ *apitest.Log) {
			server.change(func() { server.code = code })
			s.Pod(web, []state.PodEvent{event("Started", "c")})
			apitest.Sleep(time.Hour)
			if got := len(strings.Fields(server.log())); got != want {
				t.Errorf("%d: %d requests", code, got)
			}
			server.change(func() { server.code = 0 })
			s.Pod(web, []state.PodEvent{event("Created", "c")})
			apitest.Sleep(time.Second)
			if got := server.shown(); !slices.Equal(got, []string{"web spec.containers{c} Created x1"}) {
				t.Errorf("%d: %q", code, got)
			}
		})
	}
}

// TestQueue checks the limit of the queue.
func TestQueue(t *testing.T) {
	var q queue
	for i := range queueMax + 5 {
		pod := web.DeepCopy()
		pod.Name = fmt.Sprint(i)
		e := event("Started", "c")
		if dropped := q.add(newEvent("n", podReference(pod, "c"), &e, int64(i))); dropped != (i >= queueMax) {
			t.Errorf("%d: %v", i, dropped)
		}
	}
	if q.keepLast(); len(q.events) != queueMax || q.take().InvolvedObject.Name != "5" {
		t.Error(len(q.events))
	}
	if (&queue{}).take() != nil {
		t.Error("an empty queue has an event")
	}
}
