package references

import (
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/cluster/apitest"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

// server is an API server with one namespace of Secrets. It streams the events that the test sends.
type server struct {
	mu       sync.Mutex
	requests []string
	secrets  []v1.Secret
	events   chan any
	refuse   bool
}

// watchOf serves a server, and returns a client that watches it.
func watchOf(t *testing.T, s *server) Watcher {
	t.Helper()
	_, config := apitest.Serve(t, http.HandlerFunc(s.serve))
	set, err := apiclient.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return Watcher{Client: set.Core, Confirm: apitest.Confirmed}
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.URL.Path+" "+r.URL.Query().Get("fieldSelector"))
	refuse := s.refuse
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case refuse:
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no","code":403}`))
	case r.URL.Query().Get("watch") != "true":
		_ = json.NewEncoder(w).Encode(v1.SecretList{
			TypeMeta: metav1.TypeMeta{Kind: "SecretList", APIVersion: "v1"},
			ListMeta: metav1.ListMeta{ResourceVersion: "5"}, Items: s.secrets,
		})
	case r.URL.Query().Get("sendInitialEvents") == "true":
		apitest.WithoutWatchList(w, r)
	default:
		apitest.Stream(s.events)(w, r)
	}
}

func secretNamed(name, value, version string) v1.Secret {
	return v1.Secret{
		TypeMeta:   metav1.TypeMeta{Kind: "Secret", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, ResourceVersion: version},
		Data:       map[string][]byte{"key": []byte(value)},
	}
}

// TestWatch checks that a watch requests one object only, reports its changes, and ignores other objects.
func TestWatch(t *testing.T) { synctest.Test(t, testWatch) }

func testWatch(t *testing.T) {
	s := &server{
		secrets: []v1.Secret{secretNamed("other", "no", "1"), secretNamed("one", "first", "2")}, events: make(chan any),
	}
	woken := make(chan types.UID)
	l := newLab(t, t.TempDir())
	l.settings.Watch = watchOf(t, s).Watch
	l.settings.Wake = func(uid types.UID) { woken <- uid }
	defer l.run().end()
	d := podWith("1", "", "")
	vol := v1.Volume{Name: "v"}
	vol.Secret = &v1.SecretVolumeSource{SecretName: "one"}
	d.Pod.Spec.Volumes = []v1.Volume{vol}
	value := func() string {
		with, err := l.Complete(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		if one := with.Objects.Secrets["one"]; one != nil {
			return string(one.Data["key"])
		}
		return "absent"
	}
	if got := value(); got != "first" {
		t.Errorf("after the list: %q", got)
	}
	s.events <- map[string]any{"type": "MODIFIED", "object": secretNamed("other", "no", "6")}
	s.events <- map[string]any{"type": "MODIFIED", "object": secretNamed("one", "second", "7")}
	if uid := <-woken; uid != "1" || value() != "second" {
		t.Errorf("after a change: %s, %q", uid, value())
	}
	s.events <- map[string]any{"type": "DELETED", "object": secretNamed("one", "second", "8")}
	if <-woken; value() != "absent" {
		t.Errorf("after the deletion: %q", value())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, got := range s.requests {
		if got != "/api/v1/namespaces/a/secrets metadata.name=one" {
			t.Errorf("requested is %q", got)
		}
	}
	copies := objects.Copies{Dir: state.ClusterObjects(l.layout)}
	key := state.ObjectKey{Namespace: "a", Kind: podspec.KindSecret, Name: "one"}
	if o, known, err := copies.Find(key); o != nil || !known || err != nil {
		t.Errorf("the copy: %v %t %v", o, known, err)
	}
}

// TestRefusedWatch checks that a pod reports why an object cannot be read.
func TestRefusedWatch(t *testing.T) { synctest.Test(t, testRefusedWatch) }

func testRefusedWatch(t *testing.T) {
	s := &server{refuse: true}
	l := newLab(t, t.TempDir())
	l.settings.Watch = watchOf(t, s).Watch
	defer l.run().end()
	with, err := l.Complete(t.Context(), podWith("1", "one", ""))
	why := with.Unread[podspec.ObjectName{Kind: podspec.KindConfigMap, Name: "one"}]
	if err != nil || why.Reason == "" {
		t.Errorf("%v %+v", err, with.Unread)
	}
}
