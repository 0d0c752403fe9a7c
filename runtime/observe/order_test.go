package observe

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// TestNewestFirst checks that sandboxes count first, then attempts, and the time only if these are equal, because a
// clock may have been set back.
func TestNewestFirst(t *testing.T) {
	type record struct {
		id, sandbox string
		attempt     uint32
		created     int64
	}
	for name, c := range map[string]struct {
		sandboxes, containers []record
		want                  string
	}{
		"attempts":               {nil, []record{{"old", "", 1, 10}, {"new", "", 2, 20}}, "new old"},
		"the clock was set back": {nil, []record{{"old", "", 1, 20}, {"new", "", 2, 10}}, "new old"},
		"the same attempt":       {nil, []record{{"old", "", 1, 10}, {"new", "", 1, 20}}, "new old"},
		"newer sandboxes first": {
			[]record{{"s1", "", 1, 10}, {"s2", "", 2, 20}},
			[]record{{"old", "s1", 7, 30}, {"new", "s2", 0, 20}},
			"new old",
		},
		"sandboxes, set back": {
			[]record{{"s1", "", 1, 20}, {"s2", "", 2, 10}},
			[]record{{"old", "s1", 7, 20}, {"new", "s2", 0, 10}},
			"new old",
		},
		"sandboxes of one attempt": {
			[]record{{"s1", "", 1, 10}, {"s2", "", 1, 20}},
			[]record{{"old", "s1", 0, 0}, {"new", "s2", 0, 0}},
			"new old",
		},
		"a sandbox that is gone": {[]record{{"s1", "", 0, 10}}, []record{{"lost", "gone", 9, 99}, {"kept", "s1", 0, 10}}, "kept lost"},
	} {
		var sandboxes []*runtimeapi.PodSandbox
		for _, s := range c.sandboxes {
			sandboxes = append(sandboxes, &runtimeapi.PodSandbox{
				Id:        s.id,
				Metadata:  &runtimeapi.PodSandboxMetadata{Attempt: s.attempt},
				CreatedAt: s.created,
			})
		}
		for range 2 {
			var containers []*runtimeapi.Container
			for _, r := range c.containers {
				containers = append(containers, &runtimeapi.Container{
					Id: r.id, PodSandboxId: r.sandbox, Metadata: &runtimeapi.ContainerMetadata{Attempt: r.attempt}, CreatedAt: r.created,
				})
			}
			NewestFirst(sandboxes, containers)
			var got []string
			for _, one := range containers {
				got = append(got, one.GetId())
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%s: %v, want %s", name, got, c.want)
			}
			c.containers[0], c.containers[1] = c.containers[1], c.containers[0]
		}
	}
}

// TestOrderOfARuntime checks that the records are in the order of a plan, the newest first.
func TestOrderOfARuntime(t *testing.T) {
	l := newLab(t, "i:1")
	d := l.pod("web")
	ref := model.RefOf(d.Pod)
	first := l.sandbox(ref, 0)
	want := []string{l.container(ref, first, "a", 5)}
	l.server.Exit("a", 1)
	l.clock.Advance(-time.Hour)
	want = append(want, l.container(ref, first, "a", 6))
	l.clock.Advance(-time.Hour)
	want = append(want, l.container(ref, l.sandbox(ref, 1), "a", 0))
	want[0], want[2] = want[2], want[0]
	list, err := l.observer.ListNewestFirst(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	var got, planned []string
	for _, c := range list {
		got = append(got, c.GetId())
	}
	s, err := l.observer.Observe(t.Context(), ref, d)
	if err != nil {
		t.Fatal(err)
	}
	observed := s.Observed(ref, d)
	for _, c := range observed.NewestFirst() {
		planned = append(planned, c.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(want, planned); diff != "" {
		t.Errorf("as a plan sees it (-want +got)\n%s", diff)
	}
}

// TestOrderThatCannotBeKnown checks that the error names the pod and the failed list, and that a sandbox of another pod
// is refused like its containers.
func TestOrderThatCannotBeKnown(t *testing.T) {
	for method, want := range map[string]string{"ListPodSandbox": "listing its sandboxes", "ListContainers": "listing its containers"} {
		l := newLab(t, "i:1")
		l.server.Fail(runtimetest.Fault{Method: method, Times: 1, Err: errors.New("injected failure")})
		if _, err := l.observer.ListNewestFirst(t.Context(), model.RefOf(l.pod("web").Pod)); err == nil ||
			!strings.HasPrefix(err.Error(), "pod default/web: "+want) {
			t.Errorf("%s: %v", method, err)
		}
	}
	l := newLab(t)
	web := model.RefOf(l.pod("web").Pod)
	l.sandbox(model.PodRef{Namespace: "default", Name: "evil", UID: web.UID}, 0)
	if _, err := l.observer.ListNewestFirst(t.Context(), web); !errors.As(err, new(*UIDTakenError)) {
		t.Errorf("with a sandbox of another pod: %v", err)
	}
}
