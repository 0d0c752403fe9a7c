package references

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/cluster/apitest"
	"github.com/podctl/podctl/runtime/service"
	"github.com/podctl/podctl/runtime/sleep"
	"github.com/podctl/podctl/runtime/state"
)

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
	answers, events := make(chan struct{}), make(chan any)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch q := r.URL.Query(); {
		case q.Get("sendInitialEvents") == "true":
			apitest.WithoutWatchList(w, r)
		case q.Get("watch") != "true":
			<-answers
			_ = json.NewEncoder(w).Encode(v1.ServiceList{
				TypeMeta: metav1.TypeMeta{Kind: "ServiceList", APIVersion: "v1"},
				ListMeta: metav1.ListMeta{ResourceVersion: "5"},
				Items:    []v1.Service{serviceNamed("web", "10.0.0.1", "1"), serviceNamed("db", "10.0.0.2", "2")},
			})
		default:
			apitest.Stream(events)(w, r)
		}
	}))
	layout := state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}
	set, err := apiclient.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	s := &Services{Client: set.Core, File: state.ClusterServices(layout), Log: slog.New(slog.DiscardHandler)}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	defer func() {
		stop()
		server.CloseClientConnections()
		<-ended
		server.Close()
	}()
	hosts := func() string {
		text, err := s.File.Read()
		if err != nil || text == nil {
			return "none"
		}
		v := service.DecodeKnown(text).Links["a"]
		return v["WEB_SERVICE_HOST"] + " " + v["DB_SERVICE_HOST"]
	}
	until := func(want string) {
		t.Helper()
		for hosts() != want {
			if sleep.For(t.Context(), time.Millisecond) != nil {
				t.Fatalf("%q, want %q", hosts(), want)
			}
		}
	}
	if got := hosts(); got != "none" {
		t.Errorf("before the list: %q", got)
	}
	close(answers)
	until("10.0.0.1 10.0.0.2")
	events <- map[string]any{"type": "MODIFIED", "object": serviceNamed("web", "10.0.0.9", "6")}
	until("10.0.0.9 10.0.0.2")
	events <- map[string]any{"type": "DELETED", "object": serviceNamed("db", "10.0.0.2", "7")}
	until("10.0.0.9 ")
}
