package agent

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/pleg"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// apiChannel is a source like an API server that the test controls.
type apiChannel struct {
	updates chan sources.Update
	ended   chan model.PodRef
	// stopped receives a value when an agent ends.
	stopped chan struct{}
}

func newAPIChannel() *apiChannel {
	return &apiChannel{
		updates: make(chan sources.Update), ended: make(chan model.PodRef, 10), stopped: make(chan struct{}, 10),
	}
}

func (*apiChannel) Name() string             { return apiSource }
func (*apiChannel) Rules() sources.Rules     { return sources.Rules{UIDs: true} }
func (c *apiChannel) Ended(ref model.PodRef) { c.ended <- ref }
func (c *apiChannel) Run(ctx context.Context, _ <-chan chan struct{}, notify func(sources.Update)) {
	for {
		select {
		case u := <-c.updates:
			u.Source, u.Complete = apiSource, true
			notify(u)
		case <-ctx.Done():
			c.stopped <- struct{}{}
			return
		}
	}
}

// withUID returns a pod of the API server with the name "web" and one container, which is not ready.
func (l *lab) withUID(uid, image string) *podspec.Desired {
	l.t.Helper()
	d := l.manifest("web", image)
	p := d.Pod.DeepCopy()
	p.UID = types.UID(uid)
	other := podspec.New(p, apiSource, p.UID)
	other.Owner = apiSource
	return other
}

// runBoth runs an agent with an API server and files.
func (l *lab) runBoth(api *apiChannel, files *channel) (a *Agent, stop func()) {
	l.t.Helper()
	l.connect()
	a = New(World{
		Passes: l.engine.Pods, Records: Checkpoints{Layout: l.layout}, Prober: l.engine.Prober, Client: l.client,
		Lister: l.engine.Lister, Renew: l.engine.Host.Renew,
	}, Settings{
		Sources: []sources.Source{files, api}, Applied: true, Parallel: 4, Now: time.Now, Log: slog.New(l.log),
		Events: pleg.Times{
			Relist: 10 * time.Millisecond, Resync: time.Minute,
			ReopenMin: time.Millisecond, ReopenMax: time.Second, Quiet: time.Second,
		},
		LastPasses: l.lastPasses, Ending: l.ending,
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

// states returns the shown pods by UID, with their phases and the states of their containers.
func states(t *testing.T, a *Agent) (states map[types.UID]string) {
	t.Helper()
	states = map[types.UID]string{}
	shown, err := a.ShownPods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range shown {
		pods, err := a.List(t.Context(), []*podspec.Desired{shown[i].Desired})
		if err != nil {
			t.Fatal(err)
		}
		s := pods[0].Status
		text := string(s.Phase)
		if c := s.ContainerStatuses[0].State; c.Terminated != nil {
			text += fmt.Sprint(" ", c.Terminated.ExitCode)
		}
		if shown[i].Reclaimed {
			text += " reclaimed"
		}
		states[pods[0].UID] = text
	}
	return states
}

func (l *lab) untilStates(a *Agent, what string, want map[types.UID]string) {
	l.t.Helper()
	var now map[types.UID]string
	defer func() {
		if l.t.Failed() {
			l.t.Logf("states %v", now)
		}
	}()
	l.until(what, func() bool { now = states(l.t, a); return maps.Equal(now, want) })
}

// TestPodsOfOneName checks that two pods of the API server run beside a file's pod of the same name, each with its own
// directories. A pod that the API server deletes ends, and keeps its record and its logs until the API server has
// removed it. A new agent ends the rest.
func TestPodsOfOneName(t *testing.T) {
	l := newLab(t)
	api, files := newAPIChannel(), newChannel()
	a, stop := l.runBoth(api, files)
	one, two, file := l.withUID("uid-1", "i:1"), l.withUID("uid-2", "i:1"), l.manifest("web", "i:1")
	files.updates <- []*podspec.Desired{file}
	api.updates <- sources.Update{Pods: []*podspec.Desired{one, two}}
	l.untilStates(a, "all run", map[types.UID]string{file.Pod.UID: "Running", "uid-1": "Running", "uid-2": "Running"})
	logs := func(d *podspec.Desired) string {
		return filepath.Join(l.layout.LogRoot, "default_web_"+string(d.Pod.UID))
	}
	for _, d := range []*podspec.Desired{one, two, file} {
		c, err := l.layout.Pod(d.Pod.UID).Checkpoint().Read()
		if _, logErr := os.Stat(logs(d)); err != nil || logErr != nil || c.Applied.Pod.UID != d.Pod.UID {
			t.Errorf("%s: %v %v", d.Pod.UID, err, logErr)
		}
	}
	all := []*podspec.Desired{one, two}
	api.updates <- sources.Update{Pods: all, Ending: map[types.UID]int64{"uid-1": 1}}
	l.untilStates(a, "one ends", map[types.UID]string{
		file.Pod.UID: "Running", "uid-1": "Failed 143 reclaimed", "uid-2": "Running",
	})
	if _, err := os.Stat(logs(one)); err != nil {
		t.Error(err)
	}
	stop()
	a, stop = l.runBoth(api, files)
	api.updates <- sources.Update{Pods: all, Ending: map[types.UID]int64{"uid-1": 1, "uid-2": 1, "uid-3": 1}}
	l.untilStates(a, "two ends", map[types.UID]string{
		file.Pod.UID: "Running", "uid-1": "Failed 143 reclaimed", "uid-2": "Failed 143 reclaimed",
	})
	api.updates <- sources.Update{}
	l.untilStates(a, "both are gone", map[types.UID]string{file.Pod.UID: "Running"})
	if first, second := <-api.ended, <-api.ended; first == second || first.Name != "web" {
		t.Errorf("%v and %v have ended", first, second)
	}
	stop()
}

// TestReadinessAtTheEnd checks that an ending pod whose containers still run can become unready, that its liveness probe
// stops, and that a new agent in the middle of an end runs no probes (kubelet: SyncTerminatingPod).
func TestReadinessAtTheEnd(t *testing.T) {
	l := newLab(t)
	api, files := newAPIChannel(), newChannel()
	var mu sync.Mutex
	probes, failing := map[string]int{}, false
	count := func(kind string) int {
		mu.Lock()
		defer mu.Unlock()
		return probes[kind]
	}
	l.server.OnExec(func(_ string, command []string) *runtimeapi.ExecSyncResponse {
		mu.Lock()
		defer mu.Unlock()
		probes[command[0]]++
		if failing {
			return &runtimeapi.ExecSyncResponse{ExitCode: 1}
		}
		return &runtimeapi.ExecSyncResponse{}
	})
	d := l.withUID("uid-1", "i:1")
	c := &d.Pod.Spec.Containers[0]
	c.ReadinessProbe.FailureThreshold, c.ReadinessProbe.SuccessThreshold, c.ReadinessProbe.TimeoutSeconds = 1, 1, 1
	c.LivenessProbe = c.ReadinessProbe.DeepCopy()
	c.LivenessProbe.Exec.Command = []string{"alive"}
	isReady := func(a *Agent) bool {
		pods, err := a.List(t.Context(), []*podspec.Desired{d})
		if err != nil {
			t.Fatal(err)
		}
		all := pods[0].Status.ContainerStatuses
		return len(all) == 1 && all[0].Ready && all[0].State.Running != nil
	}
	a, stop := l.runBoth(api, files)
	api.updates <- sources.Update{Pods: []*podspec.Desired{d}}
	l.until("it is ready", func() bool { return isReady(a) && count("alive") > 0 })
	var free atomic.Bool
	var stops atomic.Int32
	l.server.Fail(runtimetest.Fault{
		Method: "StopContainer", Times: 1000, Err: status.Error(codes.Unknown, "busy"),
		Only: func(any) bool { return stops.Add(1) > 0 && !free.Load() },
	})
	api.updates <- sources.Update{Pods: []*podspec.Desired{d}, Ending: map[types.UID]int64{"uid-1": 1}}
	l.until("the end has begun", func() bool {
		c, err := l.layout.Pod("uid-1").Checkpoint().Read()
		return err == nil && c.End != nil
	})
	alive, ready := count("alive"), count("ok")
	l.until("its readiness probe runs again", func() bool { return count("ok") > ready+2 })
	mu.Lock()
	failing = true
	mu.Unlock()
	l.until("it is not ready any more", func() bool { return !isReady(a) })
	if now := count("alive"); now > alive+1 || states(t, a)["uid-1"] != "Running" {
		t.Errorf("%d liveness probes since, states %v", now-alive, states(t, a))
	}
	stop()
	ready = count("ok")
	before := stops.Load()
	a, stop = l.runBoth(api, files)
	api.updates <- sources.Update{Pods: []*podspec.Desired{d}, Ending: map[types.UID]int64{"uid-1": 1}}
	l.until("a stop has failed", func() bool { return stops.Load() > before })
	free.Store(true)
	l.untilStates(a, "it has ended", map[types.UID]string{"uid-1": "Failed 143 reclaimed"})
	// The runtime can still run the last probe of the first agent.
	if now := count("ok"); now > ready+1 {
		t.Errorf("a new agent ran %d readiness probes", now-ready)
	}
	stop()
}

// TestEndAbortsAPull checks that a pod ends at once although its image is being pulled, and that a pod that the agent
// never saw running ends too.
func TestEndAbortsAPull(t *testing.T) {
	l := newLab(t)
	proxy := l.behindProxy()
	api, files := newAPIChannel(), newChannel()
	a, stop := l.runBoth(api, files)
	proxy.Disturb(runtimetest.Disturbance{Method: "PullImage", Nth: 1, Hang: true})
	one, two := l.withUID("uid-1", "slow:1"), l.withUID("uid-2", "i:1")
	api.updates <- sources.Update{Pods: []*podspec.Desired{one}}
	l.until("the pull hangs", func() bool { return proxy.Count("PullImage") == 1 })
	pods := []*podspec.Desired{one, two}
	api.updates <- sources.Update{Pods: pods, Ending: map[types.UID]int64{"uid-1": 30, "uid-2": 30}}
	failed := string(v1.PodFailed) + " 137 reclaimed"
	l.untilStates(a, "both have failed", map[types.UID]string{"uid-1": failed, "uid-2": failed})
	api.updates <- sources.Update{}
	l.untilStates(a, "both are gone", map[types.UID]string{})
	stop()
}
