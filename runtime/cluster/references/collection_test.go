package references

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/cluster/apitest"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/service"
	"github.com/podctl/podctl/runtime/sleep"
	"github.com/podctl/podctl/runtime/state"
)

// collected is an API server with the objects of one kind, and a file that a collection writes.
type collected struct {
	t      *testing.T
	client *apiclient.Client
	layout state.Layout
	// answers is closed when the server may answer lists. events are those of the watch.
	answers chan struct{}
	events  chan any
}

func newCollected(t *testing.T, list any) *collected {
	t.Helper()
	c := &collected{
		t: t, layout: state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()},
		answers: make(chan struct{}), events: make(chan any),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch q := r.URL.Query(); {
		case q.Get("sendInitialEvents") == "true":
			apitest.WithoutWatchList(w, r)
		case q.Get("watch") != "true":
			<-c.answers
			_ = json.NewEncoder(w).Encode(list)
		default:
			apitest.Stream(c.events)(w, r)
		}
	}))
	var err error
	if c.client, err = apiclient.New(&rest.Config{Host: server.URL}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return c
}

// run runs a collection until the returned function is called.
func (c *collected) run(do func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(c.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		do(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// until waits until the file has a content.
func (c *collected) until(content func() string, want string) {
	c.t.Helper()
	for content() != want {
		if sleep.For(c.t.Context(), time.Millisecond) != nil {
			c.t.Fatalf("%q, want %q", content(), want)
		}
	}
}

func serviceNamed(name, ip, version string) v1.Service {
	return v1.Service{
		TypeMeta:   metav1.TypeMeta{Kind: "Service", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, ResourceVersion: version},
		Spec:       v1.ServiceSpec{ClusterIP: ip, Ports: []v1.ServicePort{{Port: 80}}},
	}
}

// TestServices checks that the file has the Services of the list and of each event, and is not written before the API
// server has answered.
func TestServices(t *testing.T) {
	c := newCollected(t, v1.ServiceList{
		TypeMeta: metav1.TypeMeta{Kind: "ServiceList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "5"},
		Items: []v1.Service{serviceNamed("web", "10.0.0.1", "1"), serviceNamed("db", "10.0.0.2", "2")},
	})
	s := Collection{
		Client: c.client.Core, Confirm: apitest.Confirmed, File: state.ClusterServices(c.layout),
		Log: slog.New(slog.DiscardHandler),
	}
	defer c.run(func(ctx context.Context) { KeepServices(ctx, s) })()
	hosts := func() string {
		text, err := s.File.Read()
		if err != nil || text == nil {
			return "none"
		}
		v := service.DecodeKnown(text).Links["a"]
		return v["WEB_SERVICE_HOST"] + " " + v["DB_SERVICE_HOST"]
	}
	if got := hosts(); got != "none" {
		t.Errorf("before the list: %q", got)
	}
	close(c.answers)
	c.until(hosts, "10.0.0.1 10.0.0.2")
	c.events <- map[string]any{"type": "MODIFIED", "object": serviceNamed("web", "10.0.0.9", "6")}
	c.until(hosts, "10.0.0.9 10.0.0.2")
	c.events <- map[string]any{"type": "DELETED", "object": serviceNamed("db", "10.0.0.2", "7")}
	c.until(hosts, "10.0.0.9 ")
}

// TestFullDisk checks that a file that could not be written is written later, although nothing changes, and that the log
// reports the failure once.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.NewCluster()
		api.Store("/api/v1/namespaces/a/services/web", new(serviceNamed("web", "10.0.0.1", "1")))
		_, config := apitest.Serve(t, api)
		client, err := apiclient.New(config)
		if err != nil {
			t.Fatal(err)
		}
		layout, log := state.Layout{Root: filepath.Join(t.TempDir(), "file")}, &apitest.Log{}
		if err = os.WriteFile(layout.Root, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		s := Collection{
			Confirm: apitest.Confirmed,
			Client:  client.Core, File: state.ClusterServices(layout), Log: slog.New(slog.NewTextHandler(log, nil)),
		}
		c := &collected{t: t}
		defer c.run(func(ctx context.Context) { KeepServices(ctx, s) })()
		apitest.Sleep(time.Minute)
		if n := strings.Count(log.String(), "cannot store the Services"); n != 1 {
			t.Errorf("%d failures: %s", n, log)
		}
		if err = os.Remove(layout.Root); err != nil {
			t.Fatal(err)
		}
		apitest.Sleep(writeAgain + time.Second)
		if text, readErr := s.File.Read(); readErr != nil || !strings.Contains(string(text), "10.0.0.1") {
			t.Errorf("%s %v", text, readErr)
		}
	})
}

func classNamed(name, handler, version string) nodev1.RuntimeClass {
	return nodev1.RuntimeClass{
		TypeMeta:   metav1.TypeMeta{Kind: "RuntimeClass", APIVersion: "node.k8s.io/v1"},
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}, Handler: handler,
	}
}

// TestRuntimeClasses checks that the file has the valid RuntimeClasses of the list and of each event, and that each
// change of the file is reported once it is written.
func TestRuntimeClasses(t *testing.T) {
	c := newCollected(t, nodev1.RuntimeClassList{
		TypeMeta: metav1.TypeMeta{Kind: "RuntimeClassList", APIVersion: "node.k8s.io/v1"},
		ListMeta: metav1.ListMeta{ResourceVersion: "5"},
		Items:    []nodev1.RuntimeClass{classNamed("fast", "one", "1"), classNamed("bad", "../x", "2")},
	})
	file := state.ClusterClasses(c.layout)
	classes := func() string {
		text, err := file.Read()
		if err != nil {
			t.Error(err)
		}
		return fmt.Sprint(model.DecodeRuntimeClasses(text))
	}
	reported := make(chan string, 10)
	s := Collection{
		Confirm: apitest.Confirmed,
		Client:  c.client.Node, File: file, Log: slog.New(slog.DiscardHandler), Changed: func() { reported <- classes() },
	}
	defer c.run(func(ctx context.Context) { KeepRuntimeClasses(ctx, s) })()
	close(c.answers)
	for _, step := range []struct {
		event string
		class nodev1.RuntimeClass
		want  string
	}{
		{"", nodev1.RuntimeClass{}, "map[fast:one]"},
		{"ADDED", classNamed("slow", "two", "6"), "map[fast:one slow:two]"},
		{"MODIFIED", classNamed("fast", "three", "7"), "map[fast:three slow:two]"},
		{"DELETED", classNamed("fast", "three", "8"), "map[slow:two]"},
		{"DELETED", classNamed("slow", "two", "9"), "map[]"},
	} {
		if step.event != "" {
			c.events <- map[string]any{"type": step.event, "object": step.class}
		}
		if got := <-reported; got != step.want {
			t.Errorf("%s %s: %s, want %s", step.event, step.class.Name, got, step.want)
		}
	}
}
