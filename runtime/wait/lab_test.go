package wait

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/gc"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/observe"
	"github.com/podctl/podctl/runtime/probe"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/syncpod"
)

// lab is a Waiter with an in-memory runtime, in real time.
type lab struct {
	*Waiter
	t      *testing.T
	server *runtimetest.Server
	layout state.Layout
	locker *state.Locker

	mu       sync.Mutex
	reported []string
}

func newLab(t *testing.T, names ...string) *lab {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "cri.sock")
	server, err := runtimetest.NewServer(t.Context(), socket, runtimetest.WallClock(), names...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	client, err := cri.Connect(cri.Endpoint{Address: "unix://" + socket, Origin: "test"}, "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	l := &lab{t: t, server: server, layout: state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}}
	w := observe.World{Client: client, Layout: l.layout, Cgroups: runtimetest.NewCgroups(server), Now: time.Now}
	host := observe.NewHost(client, l.layout, observe.Sources{
		Machine: func() criconfig.Node { return criconfig.Node{Name: "node"} }, Kubelet: func() error { return nil },
	})
	digests := observe.NewDigests(l.layout)
	observer := observe.New(w, host, digests)
	l.locker = &state.Locker{Layout: l.layout, Waiting: l.recordWait}
	x := executor.New(w, host, gc.New(w, host, images.NewStore(client, l.layout)))
	prober := probe.NewProber(client, l.layout, observer, l.locker)
	l.Waiter = New(w, observer, syncpod.New(l.locker, digests, observer, x), prober, l.recordWait)
	return l
}

func (l *lab) recordWait(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reported = append(l.reported, text)
}

func loadPod(t *testing.T, text string) *podspec.Desired {
	t.Helper()
	m, err := load.Load(t.Context(), input.Reader{Stdin: strings.NewReader(text)}, "-")
	if err != nil || m.Err() != nil {
		t.Fatal(err, m.Err())
	}
	return m.Pods[0]
}

// pod returns a manifest of a pod with a grace period of one second; spec is the rest of its spec.
func pod(spec string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  terminationGracePeriodSeconds: 1\n" + spec
}

// onePod has one container.
func onePod() string { return pod("  containers: [{name: a, image: 'i:1'}]\n") }

// never returns a manifest with restartPolicy Never.
func never(text string) string {
	return strings.Replace(text, "spec:\n", "spec:\n  restartPolicy: Never\n", 1)
}

// apply makes a pass.
func (l *lab) apply(d *podspec.Desired) *executor.Outcome {
	l.t.Helper()
	outcome, err := l.pods.Apply(l.t.Context(), d, executor.Options{})
	if err != nil || outcome.Err() != nil {
		l.t.Fatal(err, outcome.Err())
	}
	return outcome
}

// waiter returns a wait that has not begun.
func (l *lab) waiter(d *podspec.Desired, goal Goal) *podWait {
	return &podWait{on: l.Waiter, desired: d, goal: goal, activity: &activity{happened: make(chan struct{}, 1)}}
}

// at returns a wait at a fixed time, without a runtime, and its announcements.
func at(now time.Time, d *podspec.Desired, goal Goal) (w *podWait, reported *[]string) {
	reported = &[]string{}
	on := &Waiter{now: func() time.Time { return now }, announce: func(text string) { *reported = append(*reported, text) }}
	return &podWait{on: on, desired: d, goal: goal}, reported
}
