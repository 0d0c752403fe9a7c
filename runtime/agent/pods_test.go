package agent

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1 "k8s.io/api/core/v1"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/agent/owner"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
)

// watchPods watches the pods of an agent over a socket. The returned function next waits for an event.
func watchPods(t *testing.T, a *Agent) (next func() (string, *v1.Pod), all *[]byte) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patient)
	socket, served := filepath.Join(t.TempDir(), "pods.sock"), make(chan error, 1)
	l, err := api.Listen(ctx, socket)
	if err != nil {
		t.Fatal(err)
	}
	go func() { served <- a.ServePods(ctx, l) }()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		stop()
		if failure := <-served; failure != nil {
			t.Error(failure)
		}
	})
	stream, err := podsv1alpha1.NewPodsClient(conn).WatchPods(ctx, &podsv1alpha1.WatchPodsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	all = new([]byte)
	return func() (string, *v1.Pod) {
		t.Helper()
		e, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		*all = append(*all, e.GetPod()...)
		p := &v1.Pod{}
		if err := p.Unmarshal(e.GetPod()); err != nil {
			t.Fatal(err)
		}
		return e.GetType().String(), p
	}, all
}

// TestWatchOfPods checks that a watch reports when a pod is added, runs, is ready and is gone, also if a user deletes
// it by hand. No value of a Secret is sent.
func TestWatchOfPods(t *testing.T) {
	l := newLab(t)
	c := newChannel()
	a, stop := l.run(c)
	defer stop()
	next, all := watchPods(t, a)
	if kind, _ := next(); kind != "INITIAL_SYNC_COMPLETE" {
		t.Fatalf("first event %s", kind)
	}
	receive := func(what, kind string, is func(*v1.Pod) bool) {
		t.Helper()
		for {
			got, p := next()
			if got == kind && is(p) {
				return
			}
			if got != "MODIFIED" {
				t.Fatalf("event %s of %s, want %s (%s)", got, p.Name, kind, what)
			}
		}
	}
	text := `{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {word: hidden-from-all}}
---
{apiVersion: v1, kind: Pod, metadata: {name: one}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: a, image: "i:1",
  env: [{name: W, valueFrom: {secretKeyRef: {name: s, key: word}}}], readinessProbe: {exec: {command: [ok]}, periodSeconds: 1}}]}}`
	m, err := load.Load(t.Context(), input.Reader{Stdin: strings.NewReader(text)}, "-")
	if err != nil || m.Err() != nil {
		t.Fatal(err, m.Err())
	}
	m.Pods[0].Owner = c.Name()
	c.updates <- m.Pods
	receive("the pod comes", "ADDED", func(p *v1.Pod) bool { return p.Name == "one" })
	receive("it is ready", "MODIFIED", func(p *v1.Pod) bool {
		return p.Status.Phase == v1.PodRunning && len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].Ready
	})
	c.updates <- []*podspec.Desired{l.manifest("two", "i:1")}
	seen := map[string]bool{}
	for !seen["DELETED one"] || !seen["ADDED two"] {
		kind, p := next()
		seen[kind+" "+p.Name] = true
	}
	two := l.manifest("two", "i:1")
	c.updates <- nil
	receive("it is gone", "DELETED", func(p *v1.Pod) bool { return p.UID == two.Pod.UID })

	hand := l.manifest("hand", "i:1")
	hand.Owner = ""
	if _, err := l.engine.Pods.Apply(t.Context(), hand, executor.Options{}); err != nil {
		t.Fatal(err)
	}
	receive("a pod applied by hand comes", "ADDED", func(p *v1.Pod) bool { return p.Name == "hand" })
	if _, err := l.engine.Pods.Delete(t.Context(), model.RefOf(hand.Pod), executor.Options{}); err != nil {
		t.Fatal(err)
	}
	receive("it is deleted by hand", "DELETED", func(p *v1.Pod) bool { return p.Name == "hand" })
	if strings.Contains(string(*all), "hidden") {
		t.Error("an event contains the value of a Secret")
	}
}

// TestCachedPods checks that the runtime is queried again only after an event or a failure.
func TestCachedPods(t *testing.T) {
	l := &countingLister{}
	in := make(inbox)
	s := newShownPods(&loopState{inbox: in, reconciler: newReconciler(nil, owner.New(owner.Pods, false), nil, nil), world: World{Lister: l}}, func() {})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			select {
			case do := <-in:
				do()
			case <-ctx.Done():
			}
		}
	}()
	for i, step := range []struct {
		do    func()
		fails error
		calls int
	}{
		{calls: 1},
		{calls: 1},
		{do: func() { s.handleEvent(ctx, &Event{Pod: model.PodRef{UID: "a"}}) }, calls: 2},
		{do: func() { s.handleEvent(ctx, &Event{Kind: Ended, Pod: model.PodRef{UID: "a"}}) }, fails: errors.New("no answer"), calls: 3},
		{calls: 4},
		{do: s.notePodsChanged, calls: 5},
		{calls: 5},
	} {
		if step.do != nil {
			step.do()
		}
		l.err = step.fails
		if _, err := s.cachedPods(ctx); !errors.Is(err, step.fails) || l.calls != step.calls {
			t.Errorf("%d: asked %d times, want %d; %v", i, l.calls, step.calls, err)
		}
	}
}

// countingLister returns no pods, and counts its calls.
type countingLister struct {
	calls int
	err   error
}

func (l *countingLister) List(context.Context, []*podspec.Desired) ([]*v1.Pod, error) {
	l.calls++
	return nil, l.err
}
