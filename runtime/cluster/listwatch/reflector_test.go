package listwatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/cluster/apitest"
)

func TestMain(m *testing.M) { apitest.Main(m) }

func service(name string) *v1.Service {
	return &v1.Service{
		TypeMeta:   metav1.TypeMeta{Kind: "Service", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, ResourceVersion: "5"},
	}
}

// end is the bookmark at the end of the list that a watch begins with.
func end() *v1.Service {
	mark := service("")
	mark.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	return mark
}

// lab is a reflector of Services with its results.
type lab struct {
	cache.Store

	mu       sync.Mutex
	requests int
	reports  []string
	// refusal is the error of Confirm.
	refusal error
}

// confirm returns the error of the test.
func (l *lab) confirm(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refusal
}

// report notes an error.
func (l *lab) report(_ context.Context, what string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.reports = append(l.reports, what+": "+err.Error())
	}
}

// run runs a reflector for half an hour, with a limit of 100 objects for the beginning of a watch. test checks it then.
func run(t *testing.T, serve http.HandlerFunc, test func(t *testing.T, l *lab)) {
	t.Helper()
	runUnless(t, nil, serve, test)
}

// runUnless is run with an error of Confirm.
func runUnless(t *testing.T, refusal error, serve http.HandlerFunc, test func(t *testing.T, l *lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &lab{Store: cache.NewStore(cache.MetaNamespaceKeyFunc), refusal: refusal}
		_, config := apitest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			l.mu.Lock()
			l.requests++
			l.mu.Unlock()
			serve(w, r)
		}))
		set, err := apiclient.New(config)
		if err != nil {
			t.Fatal(err)
		}
		s := newSource(Settings{
			Client: set.Core, Resource: "services", Object: &v1.Service{}, List: &v1.ServiceList{}, Report: l.report,
			Confirm: l.confirm,
			Backoff: wait.Backoff{Duration: time.Second, Cap: 5 * time.Second, Steps: 4, Factor: 2, Jitter: 1},
		})
		s.initialMax = 100 * objectMin
		go s.reflector(l).RunWithContext(t.Context())
		apitest.Sleep(30 * time.Minute)
		l.mu.Lock()
		defer l.mu.Unlock()
		test(t, l)
	})
}

// streams answers a watch with a number of objects at its beginning, and refuses other requests.
func streams(count int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("sendInitialEvents") != "true" {
			apitest.Refusal(http.StatusForbidden, metav1.StatusReasonForbidden, 0)(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		send := func(kind watch.EventType, s *v1.Service) {
			_ = json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": s})
		}
		for i := range count {
			send(watch.Added, service(fmt.Sprintf("s%d", i)))
		}
		send(watch.Bookmark, end())
		w.(http.Flusher).Flush() // a test server's writer is one
		<-r.Context().Done()
	}
}

// TestConfirm checks that an API server that is not confirmed gets no request, and that the reason is reported.
func TestConfirm(t *testing.T) {
	runUnless(t, errors.New("another cluster"), streams(1), func(t *testing.T, l *lab) {
		if l.requests != 0 || len(l.List()) != 0 || len(l.reports) < 100 || !strings.HasSuffix(l.reports[0], "another cluster") {
			t.Errorf("%d requests, %d objects, reports %q", l.requests, len(l.List()), l.reports)
		}
	})
}

// TestInitialSize checks that a watch may begin with objects up to a total size, and that a larger one is an error.
func TestInitialSize(t *testing.T) {
	run(t, streams(100), func(t *testing.T, l *lab) {
		if n := len(l.List()); n != 100 {
			t.Errorf("%d objects, reports %q", n, l.reports)
		}
	})
	run(t, streams(101), func(t *testing.T, l *lab) {
		if n := len(l.List()); n != 0 || len(l.reports) == 0 || !strings.Contains(l.reports[0], "larger than 102400 bytes") {
			t.Errorf("%d objects, reports %q", n, l.reports)
		}
		if l.requests > 1500 {
			t.Errorf("%d requests in half an hour", l.requests)
		}
	})
}

// TestObjectSize checks that the size of an object counts, and that objects after the beginning of a watch do not.
func TestObjectSize(t *testing.T) {
	large := service("large")
	large.Annotations = map[string]string{"a": strings.Repeat("x", 5000)}
	i := initial{lists: true, max: 11_000}
	for n, want := range []watch.EventType{watch.Added, watch.Added, watch.Error} {
		if got := i.limit(watch.Event{Type: watch.Added, Object: large}).Type; got != want {
			t.Errorf("object %d: %s", n, got)
		}
	}
	i = initial{lists: true, max: 11_000}
	i.limit(watch.Event{Type: watch.Bookmark, Object: end()})
	for range 10 {
		if got := i.limit(watch.Event{Type: watch.Added, Object: large}).Type; got != watch.Added {
			t.Error(got)
		}
	}
}

// TestLists checks that a list of another kind, one without a version and one that is older than requested are errors.
func TestLists(t *testing.T) {
	s := newSource(Settings{Resource: "services", List: &v1.ServiceList{}})
	version := func(v string) metav1.ListMeta { return metav1.ListMeta{ResourceVersion: v} }
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a list":            {s.checkList(&v1.ServiceList{ListMeta: version("7")}, "6"), "<nil>"},
		"another kind":      {s.checkList(&v1.PodList{ListMeta: version("7")}, ""), "instead of a list of services"},
		"no list":           {s.checkList(&v1.Service{}, ""), "instead of a list of services"},
		"without a version": {s.checkList(&v1.ServiceList{}, ""), "without a version"},
		"version 0":         {s.checkList(&v1.ServiceList{ListMeta: version("0")}, ""), "without a version"},
		"older":             {s.checkList(&v1.ServiceList{ListMeta: version("5")}, "6"), "older than 6"},
	} {
		if got := fmt.Sprint(c.err); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
