package daemon

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

// TestPublishedPorts checks that the server of a node does not listen on a port whose connections lead to a Service. The
// cluster is then not joined.
func TestPublishedPorts(t *testing.T) {
	locker := &state.Locker{Layout: state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}, Waiting: func(string) {}}
	store := objects.New(locker, time.Now)
	s := &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: v1.ServiceSpec{
		Type: v1.ServiceTypeNodePort, Ports: []v1.ServicePort{{Protocol: v1.ProtocolTCP, Port: 80, NodePort: 30250}},
	}}
	if err := store.Put(t.Context(), []*podspec.Object{{Service: s}}, func(objects.Change) {}); err != nil {
		t.Fatal(err)
	}
	for port, want := range map[int]string{
		30250: "--port 30250: connections to this port lead to service default/web: choose another port", 10250: "",
	} {
		joined := false
		d := &daemon{Settings: Settings{
			Objects: store, Log: slog.New(slog.DiscardHandler), Cluster: &ClusterSettings{Server: ServerSettings{Port: port}},
			Join: func(context.Context, *Member) (Cluster, error) {
				joined = true
				return nil, nil
			},
		}}
		err := d.join(t.Context())
		if joined != (want == "") || err != nil != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("port %d: joined %t, %v", port, joined, err)
		}
	}
}
