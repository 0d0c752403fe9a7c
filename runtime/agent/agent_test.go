package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/admission"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/agent/pleg"
	"github.com/podctl/podctl/runtime/agent/shutdown"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/state"
)

// lab is an agent on a runtime in memory. It runs in real time.
type lab struct {
	t      *testing.T
	server *runtimetest.Server
	socket string
	client *cri.Client
	layout state.Layout
	engine *runtime.Engine
	// stopPods is the time in which the agent stops its pods at its end. If zero, the pods keep running.
	stopPods time.Duration
	// lastPasses and ending are the settings of the same names.
	lastPasses time.Duration
	ending     func()
	// admission sets how pods are admitted on the node. If nil, all are admitted. log receives the agent's log.
	admission *admission.Settings
	node      criconfig.Node
	log       slog.Handler
	// factsChanged counts the calls of Settings.FactsChanged.
	factsChanged atomic.Int32
}

func newLab(t *testing.T) *lab {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "cri.sock")
	server, err := runtimetest.NewServer(t.Context(), socket, runtimetest.WallClock(), "i:1", "i:2")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	layout := state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}
	// The cluster has no Services.
	if err = state.ClusterServices(layout).Write([]byte("{}")); err != nil {
		t.Fatal(err)
	}
	return &lab{
		t:      t,
		server: server,
		socket: socket,
		layout: layout,
		node:   criconfig.Node{Name: "node"},
		log:    slog.DiscardHandler,
	}
}

// connect opens a new connection, as a new process does.
func (l *lab) connect() {
	l.t.Helper()
	client, err := cri.Connect(cri.Endpoint{Address: "unix://" + l.socket, Origin: "test"}, "", time.Minute)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = client.Close() })
	l.client = client
	l.engine = runtime.NewEngine(client, runtime.Settings{
		Layout: l.layout, Now: time.Now, Cgroups: runtimetest.NewCgroups(l.server),
		Sources: observe.Sources{Machine: func() criconfig.Node { return l.node }, Kubelet: func() error { return nil }},
	})
}

// channel is a source that the test controls.
type channel struct {
	updates chan []*podspec.Desired
	ended   chan model.PodRef
}

func newChannel() *channel {
	return &channel{updates: make(chan []*podspec.Desired), ended: make(chan model.PodRef, 10)}
}

func (*channel) Name() string { return "channel" }

func (*channel) Rules() sources.Rules { return sources.Rules{DropDelay: sources.DropDelay} }

func (c *channel) Ended(ref model.PodRef) { c.ended <- ref }

func (c *channel) Run(ctx context.Context, reread <-chan chan struct{}, notify func(sources.Update)) {
	for {
		select {
		case pods := <-c.updates:
			notify(sources.Update{Source: c.Name(), Pods: pods, Complete: true})
		case done := <-reread:
			close(done)
		case <-ctx.Done():
			return
		}
	}
}

// run runs an agent until the returned function is called.
func (l *lab) run(c *channel) (a *Agent, stop func()) {
	l.t.Helper()
	l.connect()
	a = New(World{
		Passes:  l.engine.Pods,
		Records: Checkpoints{Layout: l.layout},
		Prober:  l.engine.Prober,
		Client:  l.client,
		Lister:  l.engine.Lister,
		Renew:   l.engine.Host.Renew,
	}, Settings{
		Sources:      []sources.Source{c},
		Applied:      true,
		StopPods:     l.stopPods,
		Parallel:     4,
		Admission:    l.admission,
		FactsChanged: func() { l.factsChanged.Add(1) },
		Now:          time.Now,
		Log:          slog.New(l.log),
		Events: pleg.Times{
			Relist:    10 * time.Millisecond,
			Resync:    time.Minute,
			ReopenMin: time.Millisecond,
			ReopenMax: time.Second,
			Quiet:     time.Second,
		},
	})
	ctx, cancel := context.WithCancel(l.t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	return a, func() {
		cancel()
		if err := <-done; err != nil {
			l.t.Error(err)
		}
	}
}

// manifest returns a pod of the source with one container.
func (l *lab) manifest(name, image string) *podspec.Desired {
	l.t.Helper()
	text := fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {terminationGracePeriodSeconds: 1, containers: [
		{name: a, image: "%s", readinessProbe: {exec: {command: [ok]}, periodSeconds: 1}}]}}`, name, image)
	m, err := load.Load(l.t.Context(), input.Reader{Stdin: strings.NewReader(text)}, "-")
	if err != nil || m.Err() != nil {
		l.t.Fatal(err, m.Err())
	}
	m.Pods[0].Owner = "channel"
	return m.Pods[0]
}

// running maps pods to the IDs of their running containers.
func (l *lab) running() map[string]string {
	l.t.Helper()
	reply, err := l.client.ListContainers(l.t.Context(), &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{
		State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
	}})
	if err != nil {
		l.t.Fatal(err)
	}
	all := map[string]string{}
	for _, c := range reply.GetContainers() {
		all[c.GetLabels()[criconfig.LabelPodName]] = c.GetId()
	}
	return all
}

// patient is how long a test waits for an expected event. Only a test that fails needs it.
const patient = 10 * time.Minute

func (l *lab) until(what string, done func() bool) {
	l.t.Helper()
	for end := time.Now().Add(patient); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			l.t.Fatalf("timeout: %s", what)
		}
	}
}

// TestAgent checks that the agent creates, changes and deletes pods as a source requires, restarts ended containers and
// runs probes. The next agent restarts nothing.
func TestAgent(t *testing.T) {
	l := newLab(t)
	c := newChannel()
	a, stop := l.run(c)
	c.updates <- []*podspec.Desired{l.manifest("one", "i:1"), l.manifest("two", "i:1")}
	l.until("both run", func() bool { return len(l.running()) == 2 })
	ready := func(name string) bool {
		checkpoint, err := l.layout.Pod(podspec.UID("default", name)).Checkpoint().Read()
		return err == nil && checkpoint.Probes[l.running()[name]][model.Readiness].Result == model.ProbeSuccess
	}
	l.until("both are ready", func() bool { return ready("one") && ready("two") })

	before := l.running()
	c.updates <- []*podspec.Desired{l.manifest("one", "i:2"), l.manifest("two", "i:1")}
	l.until("one is replaced", func() bool { now := l.running()["one"]; return now != "" && now != before["one"] })
	if _, err := l.client.StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: before["two"]}); err != nil {
		t.Fatal(err)
	}
	l.until("two runs again", func() bool { now := l.running()["two"]; return now != "" && now != before["two"] })
	before = l.running()
	stop()

	a, stop = l.run(c)
	c.updates <- []*podspec.Desired{l.manifest("two", "i:1")}
	l.until("one is gone", func() bool { return l.running()["one"] == "" })
	if ref := <-c.ended; ref.Name != "one" {
		t.Errorf("the source is notified of the end of %s", ref)
	}
	l.until("the agent is ready", func() bool { s, err := a.Status(t.Context()); return err == nil && s.Ready })
	if now := l.running(); now["two"] != before["two"] {
		t.Errorf("the next agent has restarted two: %v, before %v", now, before)
	}
	stop()
	if now := l.running(); now["two"] != before["two"] {
		t.Error("a pod was stopped at the end of the agent")
	}
}

// TestSlowPullsDoNotBlockOtherPods checks that Parallel hanging pulls neither block the start of other pods nor the
// restart of ended containers.
func TestSlowPullsDoNotBlockOtherPods(t *testing.T) {
	l := newLab(t)
	proxy := l.behindProxy()
	c := newChannel()
	_, stop := l.run(c)
	pods := []*podspec.Desired{}
	for i := range 4 {
		proxy.Disturb(runtimetest.Disturbance{Method: "PullImage", Nth: 1, Hang: true})
		pods = append(pods, l.manifest(fmt.Sprintf("a%d", i), fmt.Sprintf("slow:%d", i)))
	}
	c.updates <- pods
	l.until("all pulls hang", func() bool { return proxy.Count("PullImage") == 4 })
	c.updates <- append(pods, l.manifest("quick", "i:1"))
	l.until("another pod runs", func() bool { return l.running()["quick"] != "" })
	before := l.running()["quick"]
	if _, err := l.client.StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: before}); err != nil {
		t.Fatal(err)
	}
	l.until("it runs again", func() bool { now := l.running()["quick"]; return now != "" && now != before })
	stop()
}

// alone is an agent without the parts of its daemon: it has no devices and no cluster.
type alone struct{ *Agent }

func (alone) Devices() model.DeviceManager { return nil }

func (alone) ClusterPods(context.Context) (*api.ClusterPods, error) {
	return nil, errors.New("no cluster")
}

// TestSocket checks that the agent's socket serves its status.
func TestSocket(t *testing.T) {
	l := newLab(t)
	c := newChannel()
	a, stop := l.run(c)
	defer stop()
	ctx, end := context.WithCancel(t.Context())
	socket := filepath.Join(t.TempDir(), "agent.sock")
	served := make(chan error, 1)
	go func() { served <- api.Serve(ctx, socket, alone{a}) }()
	client := api.Client{Socket: socket}
	c.updates <- []*podspec.Desired{l.manifest("one", "i:1")}
	l.until("the pod is shown", func() bool {
		s, err := client.Status(t.Context())
		return err == nil && len(s.Pods) == 1 && s.Pods[0].Source == "channel" && s.Runtime.Answers && !s.Pods[0].LastPass.IsZero()
	})
	if done, err := client.Reload(t.Context()); err != nil || len(done.Reading) > 0 {
		t.Errorf("%+v, %v", done, err)
	}
	end()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if _, err := client.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "podctl agent") {
		t.Errorf("without an agent: %v", err)
	}
}

// TestStopPods checks that pods stop on request, and that the facts of the node then have a shutdown. They start again
// when the shutdown is canceled or with the next agent.
func TestStopPods(t *testing.T) {
	l := newLab(t)
	c := newChannel()
	a, stop := l.run(c)
	c.updates <- []*podspec.Desired{l.manifest("one", "i:1"), l.manifest("two", "i:1")}
	l.until("both run", func() bool { return len(l.running()) == 2 })
	if err := a.StopPods(t.Context(), shutdown.Settings{Within: 30 * time.Second}); err != nil {
		t.Fatal(err)
	}
	if now := l.running(); len(now) > 0 || !a.NodeFacts().ShuttingDown || l.factsChanged.Load() != 1 {
		t.Errorf("pods run after StopPods: %v, facts %+v, changed %d times", now, a.NodeFacts(), l.factsChanged.Load())
	}
	c.updates <- []*podspec.Desired{l.manifest("one", "i:2"), l.manifest("two", "i:1")}
	a.ResumePods(t.Context())
	l.until("both run again", func() bool { return len(l.running()) == 2 })
	if a.NodeFacts().ShuttingDown || l.factsChanged.Load() != 2 {
		t.Errorf("facts %+v, changed %d times", a.NodeFacts(), l.factsChanged.Load())
	}
	stop()

	l.stopPods = 30 * time.Second
	_, stop = l.run(c)
	c.updates <- []*podspec.Desired{l.manifest("one", "i:2"), l.manifest("two", "i:1")}
	stop()
	if now := l.running(); len(now) > 0 {
		t.Errorf("pods run after the end of an agent with StopPods: %v", now)
	}
	_, stop = l.run(c)
	l.until("both run with the next agent", func() bool { return len(l.running()) == 2 })
	l.stopPods = 0
	stop()
}
