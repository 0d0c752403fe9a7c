package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/cri"
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
			Node: &NodeProgram{Join: func(context.Context, *Member) (Cluster, error) {
				joined = true
				return nil, nil
			}},
		}}
		err := d.join(t.Context())
		if joined != (want == "") || err != nil != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("port %d: joined %t, %v", port, joined, err)
		}
	}
}

// TestCheck checks which settings end a daemon at its start, and that the port of a running daemon is none of them.
func TestCheck(t *testing.T) {
	used, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close() //nolint:errcheck // nothing was sent
	_, port, _ := net.SplitHostPort(used.Addr().String())
	locker := &state.Locker{Layout: state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}, Waiting: func(string) {}}
	node := &ClusterSettings{Server: ServerSettings{Port: 10250}}
	for name, c := range map[string]struct {
		listen    *Address
		connected error
		cluster   *ClusterSettings
		want      string
	}{
		"valid":           {nil, nil, nil, ""},
		"no runtime yet":  {nil, cri.ErrNoEndpoint, nil, ""},
		"no such runtime": {nil, errors.New("there is no such socket"), nil, "no such socket"},
		"a port":          {&Address{Port: "0"}, nil, nil, ""},
		"its own port":    {&Address{Port: port}, nil, nil, ""},
		"no such port":    {&Address{Port: "99999"}, nil, nil, "--listen :99999: "},
		"another machine": {&Address{Host: "192.0.2.1", Port: "0"}, nil, nil, "--listen 192.0.2.1:0: "},
		"a node":          {nil, nil, node, "no such kubeconfig"},
	} {
		s := &Settings{
			Listen: c.listen, Cluster: c.cluster, Objects: objects.New(locker, time.Now),
			Connect: func() (*runtime.Engine, error) { return nil, c.connected },
			Node:    &NodeProgram{Check: func(*Settings) error { return errors.New("no such kubeconfig") }},
		}
		err := s.Check(t.Context())
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}
