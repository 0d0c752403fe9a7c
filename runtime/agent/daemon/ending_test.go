package daemon

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/admission"
	"github.com/podctl/podctl/runtime/agent"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/state"
)

// cluster is a cluster whose pods the test sends. Its log has the end of each pass, and the last look at the pods.
type cluster struct {
	t       *testing.T
	updates chan sources.Update
	// passed receives a value after each pass. leaving is closed when the source has ended.
	passed  chan struct{}
	leaving chan struct{}

	mu  sync.Mutex
	log []string
}

func (c *cluster) note(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, text)
}

func (c *cluster) notes() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.log)
}

// source is the source of a cluster.
type source struct{ *cluster }

func (c *cluster) Source() sources.Source { return source{c} }

func (*cluster) Pods(context.Context) *api.ClusterPods { return nil }

func (source) Name() string         { return podspec.OwnerAPI }
func (source) Rules() sources.Rules { return sources.Rules{UIDs: true} }
func (source) Ended(model.PodRef)   {}

func (s source) Run(ctx context.Context, _ <-chan chan struct{}, notify func(sources.Update)) {
	defer close(s.leaving)
	for {
		select {
		case u := <-s.updates:
			u.Source, u.Complete = s.Name(), true
			notify(u)
		case <-ctx.Done():
			return
		}
	}
}

func (c *cluster) HandleEvent(_ context.Context, e *agent.Event) {
	if e.Kind == agent.Passed {
		c.note("pass")
		c.passed <- struct{}{}
	}
}

func (*cluster) HandleFacts() {}

func (*cluster) RecordEvent(string, string, string) {}

func (*cluster) Node() *admission.Node { return nil }

func (*cluster) AwaitStatuses(context.Context) {}

func (*cluster) Describe(s *api.Status) { s.Cluster = &api.Cluster{Node: api.ClusterNode{Name: "n"}} }

// Run looks at the pods for the last time when the context ends, as a sender of statuses does.
func (c *cluster) Run(ctx context.Context, a *agent.Agent) error {
	<-ctx.Done()
	shown, err := a.ShownPods(context.WithoutCancel(ctx))
	if err != nil || len(shown) != 1 {
		c.t.Errorf("the last look: %v, %v", shown, err)
	}
	c.note("last look")
	return nil
}

// settings returns the settings of a daemon on a runtime in memory.
func settings(t *testing.T, socket string) Settings {
	t.Helper()
	layout := state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}
	client, err := cri.Connect(cri.Endpoint{Address: "unix://" + socket, Origin: "test"}, "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	// The cluster has no Services.
	if err = state.ClusterServices(layout).Write([]byte("{}")); err != nil {
		t.Fatal(err)
	}
	engine := runtime.NewEngine(client, runtime.Settings{
		Layout: layout, Now: time.Now,
		Sources: observe.Sources{
			Machine: func() criconfig.Node { return criconfig.Node{Name: "node"} }, Kubelet: func() error { return nil },
		},
	})
	return Settings{
		Layout: layout, Objects: engine.Objects, Parallel: 4, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Workloads: controller.NewStore(&state.Locker{Layout: layout, Waiting: func(string) {}}, time.Now),
		Connect:   func() (*runtime.Engine, error) { return engine, nil },
		Changes:   func(context.Context) ([]string, error) { return nil, nil },
	}
}

// web returns a pod of the cluster.
func web(t *testing.T) *podspec.Desired {
	t.Helper()
	m, err := load.Load(t.Context(), input.Reader{Stdin: strings.NewReader(
		`{apiVersion: v1, kind: Pod, metadata: {name: web, uid: u1}, spec: {containers: [{name: a, image: "i:1"}]}}`)}, "-")
	if err != nil || m.Err() != nil {
		t.Fatal(err, m.Err())
	}
	d := podspec.New(m.Pods[0].Pod, podspec.OwnerAPI, "u1")
	d.Owner = podspec.OwnerAPI
	return d
}

// TestEndOfANode checks the order at the end of a node: the running pass ends, then the cluster takes its last look at
// the pods, and then the agent ends without an error.
func TestEndOfANode(t *testing.T) {
	dir := t.TempDir()
	server, err := runtimetest.NewServer(t.Context(), filepath.Join(dir, "cri.sock"), runtimetest.WallClock(), "i:1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	proxy, err := runtimetest.StartProxy(t.Context(), filepath.Join(dir, "front.sock"), filepath.Join(dir, "cri.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	c := &cluster{
		t: t, updates: make(chan sources.Update), passed: make(chan struct{}, 100), leaving: make(chan struct{}),
	}
	s := settings(t, filepath.Join(dir, "front.sock"))
	s.Cluster, s.endLimit = &ClusterSettings{}, 10*time.Minute
	s.Node = &NodeProgram{Join: func(context.Context, *Member) (Cluster, error) { return c, nil }}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, s) }()

	pods := []*podspec.Desired{web(t)}
	c.updates <- sources.Update{Pods: pods}
	<-c.passed
	client := api.Client{Socket: s.Layout.AgentSocket()}
	got, err := client.Status(t.Context())
	// The first pass can come before the agent listens.
	for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); got, err = client.Status(t.Context()) {
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil || got.Cluster == nil {
		t.Errorf("the status has no cluster: %v", err)
	}
	proxy.Disturb(runtimetest.Disturbance{Method: "StopContainer", Hang: true, KillAfter: stop})
	c.updates <- sources.Update{Pods: pods, Ending: map[types.UID]int64{"u1": 30}}
	<-c.leaving
	// The stop ends, and with it the pass.
	proxy.Break()
	if err = <-ended; err != nil {
		t.Error(err)
	}
	if log := c.notes(); len(log) < 3 || log[len(log)-1] != "last look" {
		t.Errorf("log %v", log)
	}
}
