package controllers

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/state"
)

// stock has one workload with the pods that the test sets.
type stock struct {
	mu      sync.Mutex
	changed time.Time
	looks   int
	pods    []string
	next    time.Time
	expired bool
	deleted bool
	err     error
	readErr error
}

func (s *stock) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *stock) All() ([]*controller.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deleted || s.readErr != nil {
		return nil, s.readErr
	}
	w := &podspec.Workload{Deployment: &appsv1.Deployment{}}
	w.Deployment.Namespace, w.Deployment.Name = "default", "web"
	return []*controller.Record{{Workload: w}}, nil
}

func (s *stock) ChangedAt() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *stock) Expand(context.Context, *controller.Record) (*controller.Expanded, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	if s.err != nil {
		return nil, s.err
	}
	x := &controller.Expanded{Next: s.next, Expired: s.expired}
	for _, text := range s.pods {
		name, image, _ := strings.Cut(text, " ")
		p := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "a", Image: image}}}}
		p.Namespace, p.Name, p.UID = "default", name, types.UID(name)
		d := podspec.New(p, "/web.yaml", p.UID)
		d.Stored = true
		x.Pods = append(x.Pods, d)
	}
	return x, nil
}

func (s *stock) Tick(context.Context, *controller.Record, []*controller.Record) (bool, time.Time, error) {
	return false, time.Time{}, nil
}

func (s *stock) Apply(context.Context, *podspec.Workload) error { return nil }

func (s *stock) KeepJob(context.Context, *controller.Record) error { return nil }

func (s *stock) Delete(context.Context, state.ObjectKey) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deleted = true
	return true, nil
}

// noObjects is an empty store.
type noObjects struct{}

func (noObjects) All() ([]*podspec.Object, error)               { return nil, nil }
func (noObjects) ChangedAt() time.Time                          { return time.Time{} }
func (noObjects) Apply(context.Context, *podspec.Object) error  { return nil }
func (noObjects) Delete(context.Context, state.ObjectKey) error { return nil }

// recorder records the updates of a source as text: "complete: web-0 i:1, web-1 i:1".
type recorder struct {
	mu    sync.Mutex
	texts []string
	last  sources.Update
}

func (s *recorder) record(u sources.Update) {
	var pods []string
	for _, d := range u.Pods {
		pods = append(pods, d.Pod.Name+" "+d.Pod.Spec.Containers[0].Image)
		if d.Stored {
			pods = append(pods, "stored")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = u
	s.texts = append(s.texts, map[bool]string{true: "complete: ", false: "not complete: "}[u.Complete]+strings.Join(pods, ", "))
}

// want waits, and checks the updates since the last call.
func (s *recorder) want(t *testing.T, after time.Duration, want ...string) {
	t.Helper()
	time.Sleep(after)
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.texts, want) {
		t.Errorf("said %q, want %q", s.texts, want)
	}
	s.texts = nil
}

// run runs a source until the end of the test.
func run(t *testing.T, w Workloads) (*Source, *recorder) {
	t.Helper()
	rec := &recorder{}
	s := New(Settings{
		Workloads: w,
		Objects:   noObjects{},
		ByHand:    true,
		Now:       time.Now,
		Log:       slog.New(slog.DiscardHandler),
	})
	ctx, end := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { s.Run(ctx, nil, rec.record) })
	t.Cleanup(func() { end(); done.Wait() })
	return s, rec
}

// TestSource checks that the source reports changes of the wanted pods, and that an unchanged pod keeps its pointer.
func TestSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &stock{pods: []string{"web-0 i:1", "web-1 i:1"}}
		s, rec := run(t, w)
		rec.want(t, time.Millisecond, "complete: web-0 i:1, web-1 i:1")
		first := rec.last.Pods
		w.set(func() { w.pods = []string{"web-0 i:2", "web-1 i:1"}; w.changed = time.Now() })
		rec.want(t, 1100*time.Millisecond, "complete: web-0 i:2, web-1 i:1")
		if now := rec.last.Pods; now[0] == first[0] || now[1] != first[1] {
			t.Error("the reported pods are not those that changed")
		}
		w.set(func() { w.pods = []string{"web-0 i:2", "web-1 i:2"} })
		s.Changed("other")
		rec.want(t, 900*time.Millisecond)
		s.Changed("web-0")
		rec.want(t, 60*time.Millisecond, "complete: web-0 i:2, web-1 i:2")
	})
}

// TestSourceIdle checks that the source makes no calls while nothing happens.
func TestSourceIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &stock{pods: []string{"web-0 i:1"}}
		_, rec := run(t, w)
		rec.want(t, time.Hour, "complete: web-0 i:1")
		if w.looks != 1 {
			t.Errorf("it has looked %d times in an hour", w.looks)
		}
		w.set(func() { w.pods = nil; w.next = time.Now().Add(10 * time.Second); w.changed = time.Now() })
		rec.want(t, 2*time.Second, "complete: ")
		w.set(func() { w.pods = []string{"web-0 i:1"}; w.next = time.Time{} })
		rec.want(t, 10*time.Second, "complete: web-0 i:1")
	})
}

// TestSourceFailures checks that a workload that cannot be read keeps its earlier pods, and that nothing is reported
// before the first success.
func TestSourceFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &stock{pods: []string{"web-0 i:1"}, err: errors.New("the runtime is down")}
		s, rec := run(t, w)
		rec.want(t, time.Minute)
		w.set(func() { w.err = nil })
		rec.want(t, 6*time.Second, "complete: web-0 i:1")
		w.set(func() { w.err = errors.New("the runtime is down"); w.pods = nil })
		s.Changed("web-0")
		rec.want(t, time.Minute)
		w.set(func() { w.err, w.readErr = nil, state.ErrDamaged })
		rec.want(t, time.Minute)
		w.set(func() { w.readErr = nil })
		rec.want(t, 6*time.Second, "complete: ")
	})
}

// TestSourceExpired checks that an expired Job is deleted with its pods.
func TestSourceExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &stock{pods: []string{"web-0 i:1"}}
		s, rec := run(t, w)
		rec.want(t, time.Millisecond, "complete: web-0 i:1")
		w.set(func() { w.expired = true })
		s.Changed("web-0")
		rec.want(t, time.Second, "complete: ")
		if !w.deleted {
			t.Error("its record stays")
		}
	})
}
