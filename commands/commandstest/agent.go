package commandstest

import (
	"context"
	"errors"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/agent/metrics"
	"github.com/podctl/podctl/runtime/model"
)

// standIn is an agent that returns a fixed status.
type standIn struct {
	status *api.Status
	// remote are the pods in the API server; nil without a cluster.
	remote *api.ClusterPods
}

// Status returns the fixed status.
func (s *standIn) Status(context.Context) (*api.Status, error) { return s.status, nil }

// Pods returns an empty list.
func (s *standIn) Pods(context.Context) (*v1.PodList, error) { return &v1.PodList{}, nil }

// ClusterPods returns the fixed pods of the API server.
func (s *standIn) ClusterPods(context.Context) (*api.ClusterPods, error) {
	if s.remote == nil {
		return nil, errors.New("this machine is not a node of a cluster")
	}
	return s.remote, nil
}

// Metrics returns metrics of no pods.
func (s *standIn) Metrics() *metrics.Metrics {
	return metrics.New(func(context.Context) (int, map[string]int, error) { return 0, nil, nil })
}

// Devices returns nil: no test has devices.
func (*standIn) Devices() model.DeviceManager { return nil }

// Healthy returns nil.
func (*standIn) Healthy() error { return nil }

// Reload reports one source that is still being read.
func (s *standIn) Reload(context.Context) (*api.Reloaded, error) {
	return &api.Reloaded{Reading: []string{"/slow"}}, nil
}

// ReadWorkloads does nothing.
func (s *standIn) ReadWorkloads(context.Context) error { return nil }

// ServeAgent serves an agent that keeps the given pods on the socket of the lab, until the test ends.
func (l *Lab) ServeAgent(pods ...api.Pod) {
	l.t.Helper()
	l.ServeStatus(&api.Status{Pods: pods})
}

// ServeStatus serves an agent with the given status on the socket of the lab, until the test ends.
func (l *Lab) ServeStatus(status *api.Status) {
	l.t.Helper()
	l.ServeNode(status, nil)
}

// ServeNode serves an agent with the given status and the given pods in the API server, until the test ends or another
// agent is served.
func (l *Lab) ServeNode(status *api.Status, remote *api.ClusterPods) {
	l.t.Helper()
	l.stopAgent()
	ctx, stop := context.WithCancel(l.t.Context())
	ended := make(chan error)
	socket := l.Path("state/agent.sock")
	go func() { ended <- api.Serve(ctx, socket, &standIn{status, remote}) }()
	l.stopAgent = sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			l.t.Error(err)
		}
	})
	l.t.Cleanup(l.stopAgent)
	for {
		if _, err := (api.Client{Socket: socket}).Reload(ctx); err == nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
