package observe

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
)

// fixedStatus is a runtime that says one thing of itself.
type fixedStatus struct {
	runtimeapi.RuntimeServiceClient
	status *runtimeapi.StatusResponse
}

// Status is asked for by whoever wants to know a runtime.
func (f *fixedStatus) Status(context.Context, *runtimeapi.StatusRequest, ...grpc.CallOption) (*runtimeapi.StatusResponse, error) {
	return f.status, nil
}

// TestHandlersOfAnOldRuntime: containerd 1.6 does not list its handlers, and has them in
// its configuration. What a runtime lists is believed.
func TestHandlersOfAnOldRuntime(t *testing.T) {
	info := map[string]string{"config": `{"containerd":{"defaultRuntimeName":"runc","runtimes":{"runc":{},"gvisor":{"options":null}}}}`}
	listed := []*runtimeapi.RuntimeHandler{{Name: "kata"}}
	for name, c := range map[string]struct {
		status *runtimeapi.StatusResponse
		want   []string
	}{
		"in its configuration": {&runtimeapi.StatusResponse{Info: info}, []string{"", "gvisor", "runc"}},
		"listed":               {&runtimeapi.StatusResponse{Info: info, RuntimeHandlers: listed}, []string{"kata"}},
		"another runtime":      {&runtimeapi.StatusResponse{Info: map[string]string{"config": "{}"}}, nil},
	} {
		client := connect(t)
		client.RuntimeServiceClient = &fixedStatus{client.RuntimeServiceClient, c.status}
		facts, err := NewHost(client, state.Layout{}, Sources{}).RuntimeFacts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s := &snapshot.Pod{Runtime: facts.Runtime}
		if diff := cmp.Diff(c.want, s.Observed(model.PodRef{}, nil).Runtime.Handlers); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// connect connects to a runtime in memory.
func connect(t *testing.T, names ...string) *cri.Client {
	t.Helper()
	_, _, endpoint := runtimetest.Start(t, names...)
	client, err := cri.Connect(cri.Endpoint{Address: endpoint, Origin: "test"}, "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}
