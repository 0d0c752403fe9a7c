package wait

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// TestWaitersSeeTheSame checks that a poll gives the same result as the snapshot before it, also beside an unmanaged
// container.
func TestWaitersSeeTheSame(t *testing.T) {
	l := newLab(t, "i:1")
	d := loadPod(t, pod("  containers: [{name: a, image: 'i:1'}, {name: b, image: 'i:1'}, {name: c, image: 'i:1'}]\n"))
	sandbox := l.apply(d).Plan.SandboxID
	s, err := l.observer.Observe(t.Context(), model.RefOf(d.Pod), d)
	if err != nil {
		t.Fatal(err)
	}
	if sandbox == "" {
		sandbox = s.Sandboxes[0].GetId()
	}
	_, err = l.client.CreateContainer(t.Context(), &runtimeapi.CreateContainerRequest{
		PodSandboxId: sandbox, SandboxConfig: &runtimeapi.PodSandboxConfig{},
		Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "stranger"},
			Image:    &runtimeapi.ImageSpec{Image: "i:1"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if s, err = l.observer.Observe(t.Context(), model.RefOf(d.Pod), d); err != nil || len(s.Containers) != 4 {
		t.Fatalf("%d containers are seen, %v", len(s.Containers), err)
	}
	w := l.waiter(d, Ready)
	before, err := w.look(t.Context())
	if seen := s.Observed(s.Pod, d); err != nil || before != fingerprint(&seen) {
		t.Errorf("observed %s, the snapshot has %s, %v", before, fingerprint(&seen), err)
	}
	l.server.Exit("b", 0)
	after, err := w.look(t.Context())
	if err != nil || after == before {
		t.Errorf("an exit was not observed: %s, %v", after, err)
	}
}

// TestNextObservation checks that the whole pod is observed when a probe may be due, when a hold ends, and after a
// while in any case. A deletion is observed often.
func TestNextObservation(t *testing.T) {
	probed := strings.Replace(onePod(), "image: 'i:1'", "image: 'i:1', readinessProbe: {exec: {command: [x]}, periodSeconds: 30}", 1)
	now := time.Now()
	for name, c := range map[string]struct {
		text  string
		goal  Goal
		until time.Duration
		want  time.Duration
	}{
		"nothing is due":    {onePod(), Ready, 0, 10 * time.Second},
		"a probe":           {probed, Ready, 0, time.Second},
		"a hold ends":       {onePod(), Ready, 3 * time.Second, 3 * time.Second},
		"a hold ends later": {onePod(), Ready, time.Hour, 10 * time.Second},
		"a hold ended":      {onePod(), Ready, -time.Second, -time.Second},
		"a deletion":        {probed, Deleted, 0, 200 * time.Millisecond},
	} {
		w, _ := at(now, loadPod(t, c.text), c.goal)
		if c.until != 0 {
			w.until = now.Add(c.until)
		}
		if got := w.nextObservation().Sub(now); got != c.want {
			t.Errorf("%s: in %v, want in %v", name, got, c.want)
		}
	}
}

// TestPauses checks that a pause ends when a container has changed its state, at a given time, and when the context
// ends. A failed poll is an error.
func TestPauses(t *testing.T) {
	l := newLab(t, "i:1")
	d := loadPod(t, onePod())
	l.apply(d)
	seen, err := l.waiter(d, Ready).look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ended, failed := errors.New("interrupted"), errors.New("injected failure")
	for _, c := range []struct {
		name   string
		change func(*podWait, context.CancelCauseFunc)
		want   error
	}{
		{"a moment has come", func(w *podWait, _ context.CancelCauseFunc) { w.until = time.Now().Add(30 * time.Millisecond) }, nil},
		{"the context is canceled", func(_ *podWait, end context.CancelCauseFunc) { end(ended) }, ended},
		{"an observation fails", func(*podWait, context.CancelCauseFunc) {
			l.server.Fail(runtimetest.Fault{Method: "ListContainers", Times: 1, Err: failed})
		}, failed},
		{"a container ended", func(*podWait, context.CancelCauseFunc) {
			time.AfterFunc(30*time.Millisecond, func() { l.server.Exit("a", 0) })
		}, nil},
	} {
		ctx, end := context.WithCancelCause(t.Context())
		w := l.waiter(d, Ready)
		w.seen = seen
		c.change(w, end)
		began := time.Now()
		err := w.pause(ctx)
		end(nil)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s: it took %v", c.name, took)
		}
		if (err == nil) != (c.want == nil) || (err != nil && !strings.Contains(err.Error(), c.want.Error())) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}
