package workload

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/model"
)

// life is a workload and its pods; its time advances in seconds.
type life struct {
	t    *testing.T
	r    *rand.Rand
	now  time.Time
	w    *podspec.Workload
	pods map[string]*living
	log  []string
	// grace is how long a pod takes to stop, before it starts again or is gone.
	grace time.Duration
}

// living is an existing pod.
type living struct {
	applied *podspec.Desired
	// ready is since when it is ready; zero while it is not. deadline is when it becomes ready or is gone.
	ready, deadline time.Time
	deleting        bool
	// stops is when the containers of its old version have ended; zero if none are being stopped. Until then they
	// answer their probes.
	stops time.Time
}

const manifest = `apiVersion: apps/v1
kind: %s
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: app, image: "registry.local/app:%d"}
%s`

// loaded returns a workload of a kind, with a version of its image and the rest of its spec.
func loaded(t *testing.T, kind string, version int, rest ...string) *podspec.Workload {
	t.Helper()
	text := fmt.Sprintf(manifest, kind, version, "  "+strings.Join(rest, "\n  ")+"\n")
	m, err := load.Loader{Workloads: true}.Parse(input.Source{Name: "-", Text: []byte(text)})
	if err != nil || m.Err() != nil {
		t.Fatal(err, m.Err())
	}
	return m.Workloads[0]
}

func newLife(t *testing.T, seed uint64) *life {
	return &life{t: t, r: rand.New(rand.NewPCG(seed, 0)), now: time.Unix(1e9, 0), pods: map[string]*living{}}
}

func (l *life) expand() *Expansion {
	in := &Input{Workload: l.w, Now: l.now}
	for _, p := range l.pods {
		pod := Pod{Applied: p.applied, Deleting: p.deleting}
		pod.Stopping = !p.stops.IsZero()
		pod.Pending = pod.Stopping
		if !p.ready.IsZero() {
			pod.Status.Conditions = []v1.PodCondition{{
				Type:               v1.PodReady,
				Status:             v1.ConditionTrue,
				LastTransitionTime: metav1.NewTime(p.ready),
			}}
		}
		in.Pods = append(in.Pods, pod)
	}
	return Expand(in)
}

// ready counts the ready pods.
func (l *life) ready() (count int) {
	for _, p := range l.pods {
		if !p.ready.IsZero() && !p.deleting && p.stops.IsZero() {
			count++
		}
	}
	return count
}

// do carries out an expansion like passes over its pods. It reports whether a pod changed.
func (l *life) do(x *Expansion) (changed bool) {
	for _, d := range x.Pods {
		p := l.pods[d.Pod.Name]
		switch {
		case p == nil:
			p = &living{}
			l.pods[d.Pod.Name] = p
		case p.deleting || same(p.applied, d):
			continue
		}
		l.log = append(l.log, fmt.Sprintf("%d: %s gets %s", l.now.Unix()-1e9, d.Pod.Name, d.Pod.Spec.Containers[0].Image))
		changed = true
		if p.applied != nil && l.grace > 0 {
			p.applied, p.stops = d, l.now.Add(l.grace)
			continue
		}
		p.applied, p.ready, p.deadline = d, time.Time{}, l.startsBy()
	}
	for _, ref := range x.Gone {
		if p := l.pods[ref.Name]; !p.deleting {
			l.log = append(l.log, fmt.Sprintf("%d: %s is deleted", l.now.Unix()-1e9, ref.Name))
			p.deleting, p.deadline = true, l.now.Add(l.grace+time.Duration(l.r.IntN(5))*time.Second)
			changed = true
		}
	}
	return changed
}

// startsBy returns when a pod that starts now is ready.
func (l *life) startsBy() time.Time { return l.now.Add(time.Duration(1+l.r.IntN(10)) * time.Second) }

// pass advances the time by a second.
func (l *life) pass() {
	l.now = l.now.Add(time.Second)
	for name, p := range l.pods {
		switch {
		case !p.stops.IsZero() && !p.deleting:
			if !l.now.Before(p.stops) {
				p.stops, p.ready, p.deadline = time.Time{}, time.Time{}, l.startsBy()
			}
		case p.deadline.IsZero() || l.now.Before(p.deadline):
		case p.deleting:
			delete(l.pods, name)
		default:
			p.ready, p.deadline = l.now, time.Time{}
		}
	}
}

func (l *life) wrong(format string, args ...any) {
	l.t.Helper()
	l.t.Errorf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(l.log, "\n"))
}

// settle lets the workload reach a stable state.
func (l *life) settle(check func()) {
	l.t.Helper()
	for range 2000 {
		x := l.expand()
		l.do(x)
		if check(); l.t.Failed() {
			return
		}
		if x.Status.Complete() && len(x.Gone) == 0 {
			return
		}
		l.pass()
	}
	l.wrong("it does not come to rest: %+v", l.expand())
}

// TestRollingUpdates checks that an update of any Deployment keeps to its limits of unavailable and additional pods,
// and that it ends.
func TestRollingUpdates(t *testing.T) {
	for seed := range uint64(100) {
		l := newLife(t, seed)
		replicas, surge, unavailable, minReady := l.r.IntN(7), l.r.IntN(3), l.r.IntN(3), l.r.IntN(4)
		rest := []string{
			fmt.Sprintf("replicas: %d", replicas), fmt.Sprintf("minReadySeconds: %d", minReady),
			fmt.Sprintf("strategy: {rollingUpdate: {maxSurge: %d, maxUnavailable: %d}}", surge, max(unavailable, 1-surge)),
		}
		l.w = loaded(t, "Deployment", 1, rest...)
		l.settle(func() {})
		if len(l.pods) != replicas {
			l.wrong("there are %d pods, want %d", len(l.pods), replicas)
		}
		lowest := replicas - max(unavailable, 1-surge)
		for version := 2; version < 4; version++ {
			l.w = loaded(t, "Deployment", version, rest...)
			l.settle(func() {
				if l.ready() < lowest || len(l.pods) > replicas+surge {
					l.wrong("%d of %d pods are ready, at least %d have to be, and at most %d be there",
						l.ready(), len(l.pods), lowest, replicas+surge)
				}
			})
		}
		for name, p := range l.pods {
			if image := p.applied.Pod.Spec.Containers[0].Image; image != "registry.local/app:3" {
				l.wrong("%s has %s", name, image)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d, %v", seed, rest)
		}
	}
}

// TestRollingUpdatesOverlapStops checks that pods that stop slowly do not delay each other. Enough pods stay available,
// and there is at most one additional pod for each updated one.
func TestRollingUpdatesOverlapStops(t *testing.T) {
	for seed := range uint64(25) {
		l := newLife(t, seed)
		l.grace = 40 * time.Second
		replicas, surge, unavailable := 1+l.r.IntN(6), 1+l.r.IntN(3), l.r.IntN(3)
		rest := []string{
			fmt.Sprintf("replicas: %d", replicas),
			fmt.Sprintf("strategy: {rollingUpdate: {maxSurge: %d, maxUnavailable: %d}}", surge, unavailable),
		}
		l.w = loaded(t, "Deployment", 1, rest...)
		l.settle(func() {})
		l.w = loaded(t, "Deployment", 2, rest...)
		began := l.now
		l.settle(func() {
			counted := 0
			for _, p := range l.pods {
				if !p.deleting {
					counted++
				}
			}
			if l.ready() < replicas-unavailable || counted > 2*replicas {
				l.wrong("%d of %d pods are ready, at least %d have to be, and at most %d be there",
					l.ready(), counted, replicas-unavailable, 2*replicas)
			}
		})
		// All stop at once, and then the additional pods. Starts add at most ten seconds each.
		if took := l.now.Sub(began); took > 2*l.grace+time.Duration(replicas+2)*11*time.Second {
			l.wrong("%d replicas took %s", replicas, took)
		}
		if t.Failed() {
			t.Fatalf("seed %d, %v", seed, rest)
		}
	}
}

// TestRecreate checks that two versions never exist at the same time.
func TestRecreate(t *testing.T) {
	l := newLife(t, 1)
	l.w = loaded(t, "Deployment", 1, "replicas: 4", "strategy: {type: Recreate}")
	l.settle(func() {})
	l.w = loaded(t, "Deployment", 2, "replicas: 4", "strategy: {type: Recreate}")
	l.settle(func() {
		images := map[string]bool{}
		for _, p := range l.pods {
			images[p.applied.Pod.Spec.Containers[0].Image] = true
		}
		if len(images) > 1 {
			l.wrong("there are %v", images)
		}
	})
	if len(l.pods) != 4 {
		l.wrong("there are %d pods", len(l.pods))
	}
}

// TestRecreateKeepsAPodThatIsHeld checks that a pod of the newest version that waits for its image or Secret, or
// crashes, is not recreated.
func TestRecreateKeepsAPodThatIsHeld(t *testing.T) {
	w := loaded(t, "Deployment", 1, "strategy: {type: Recreate}")
	first := Expand(&Input{Workload: w, Now: time.Unix(1e9, 0)})
	x := Expand(&Input{Workload: w, Now: time.Unix(1e9, 0), Pods: []Pod{{Applied: first.Pods[0], Standing: model.Standing{Pending: true}}}})
	if len(x.Gone) != 0 || len(x.Waits) != 0 || len(x.Pods) != 1 || x.Status.Updated != 0 || x.Status.Complete() {
		t.Errorf("%+v", x)
	}
}

// TestScaling checks that pods with the highest ordinals are created and deleted, and that the others do not change.
func TestScaling(t *testing.T) {
	for _, kind := range []string{"Deployment", "ReplicaSet", "StatefulSet"} {
		l := newLife(t, 1)
		l.w = loaded(t, kind, 1, "replicas: 2")
		l.settle(func() {})
		first := l.pods["web-0"].applied
		for _, replicas := range []int{5, 1, 0, 3} {
			l.w = loaded(t, kind, 1, fmt.Sprintf("replicas: %d", replicas))
			l.settle(func() {})
			if len(l.pods) != replicas {
				l.wrong("%s: %d pods, want %d", kind, len(l.pods), replicas)
			}
			if replicas == 1 && l.pods["web-0"].applied != first {
				l.wrong("%s: web-0 was touched", kind)
			}
		}
	}
}

// TestStatefulSetOrder checks that pods are created in order, and deleted and updated in reverse order, one after the
// other.
func TestStatefulSetOrder(t *testing.T) {
	l := newLife(t, 3)
	l.w = loaded(t, "StatefulSet", 1, "replicas: 3", "serviceName: web")
	one := func() {
		if n := len(l.pods) - l.ready(); n > 1 {
			l.wrong("%d pods are not ready", n)
		}
	}
	l.settle(one)
	l.w = loaded(t, "StatefulSet", 2, "replicas: 3", "serviceName: web")
	l.settle(one)
	l.w = loaded(t, "StatefulSet", 2, "replicas: 0", "serviceName: web")
	l.settle(func() {})
	var order []string
	for _, line := range l.log {
		_, what, _ := strings.Cut(line, ": ")
		order = append(order, strings.NewReplacer("registry.local/app:", "", "gets ", "", "web-", "").Replace(what))
	}
	want := []string{"0 1", "1 1", "2 1", "2 2", "1 2", "0 2", "2 is deleted", "1 is deleted", "0 is deleted"}
	if !slices.Equal(order, want) {
		t.Errorf("the order is %q, want %q", order, want)
	}
}

// TestStatefulSetUpdateStrategies checks that a partition and OnDelete leave pods as they are, and that a parallel set
// creates all at once.
func TestStatefulSetUpdateStrategies(t *testing.T) {
	for strategy, updated := range map[string]int{
		"updateStrategy: {rollingUpdate: {partition: 2}}": 1,
		"updateStrategy: {type: OnDelete}":                0,
	} {
		l := newLife(t, 1)
		l.w = loaded(t, "StatefulSet", 1, "replicas: 3", "podManagementPolicy: Parallel", strategy)
		if x := l.expand(); len(x.Pods) != 3 {
			t.Errorf("a parallel set makes %d pods at once", len(x.Pods))
		}
		l.settle(func() {})
		l.w = loaded(t, "StatefulSet", 2, "replicas: 3", "podManagementPolicy: Parallel", strategy)
		for range 100 {
			l.do(l.expand())
			l.pass()
		}
		x := l.expand()
		if x.Status.Updated != updated || len(x.Waits) != 3-updated || !x.Status.Complete() {
			t.Errorf("%s: %+v, want %d updated and nothing to come; waits %v", strategy, x.Status, updated, x.Waits)
		}
	}
}

// TestStatefulSetReportsDelayedUpdate checks that an edit that also scales down updates nothing before the last pod is
// gone, and that the reason is reported.
func TestStatefulSetReportsDelayedUpdate(t *testing.T) {
	l := newLife(t, 1)
	l.w = loaded(t, "StatefulSet", 1, "replicas: 2")
	l.settle(func() {})
	l.w = loaded(t, "StatefulSet", 2, "replicas: 1")
	if x := l.expand(); len(x.Gone) != 1 || len(x.Waits) != 1 ||
		x.Waits[0] != (Wait{"web-0", "It is updated once the surplus pods are gone."}) {
		t.Errorf("%+v %+v", x.Gone, x.Waits)
	}
	l.w = loaded(t, "StatefulSet", 2, "replicas: 3")
	if x := l.expand(); len(x.Pods) != 3 || len(x.Waits) != 2 ||
		x.Waits[1] != (Wait{"web-1", "It is updated once all pods are available."}) {
		t.Errorf("%+v %+v", x.Pods, x.Waits)
	}
}

// TestReplicaSetKeepsItsPods checks that an edit changes no existing pod, and that a missing one gets the newest
// version. Nothing else is pending.
func TestReplicaSetKeepsItsPods(t *testing.T) {
	l := newLife(t, 1)
	l.w = loaded(t, "ReplicaSet", 1, "replicas: 2")
	l.settle(func() {})
	l.w = loaded(t, "ReplicaSet", 2, "replicas: 3")
	if x := l.expand(); x.Status.Complete() {
		t.Errorf("a pod is missing: %+v", x.Status)
	}
	l.settle(func() {})
	if x := l.expand(); x.Status != (Status{Desired: 3, Current: 3, Updated: 1, Old: 2, Ready: 3, Available: 3}) {
		t.Errorf("%+v", x.Status)
	}
}

// TestAPendingPodIsNotUpdated checks that a pod delays the others if its newest version is applied and its old
// containers still run because the new ones cannot be created.
func TestAPendingPodIsNotUpdated(t *testing.T) {
	for _, kind := range []string{podspec.KindDeployment, podspec.KindStatefulSet} {
		l := newLife(t, 1)
		rest := []string{"replicas: 2"}
		if kind == podspec.KindDeployment {
			rest = append(rest, "strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}")
		} else {
			rest = append(rest, "serviceName: web")
		}
		l.w = loaded(t, kind, 1, rest...)
		l.do(l.expand())
		for range 3 {
			for _, p := range l.pods {
				p.ready = l.now
			}
			l.do(l.expand())
		}
		for _, p := range l.pods {
			p.ready = l.now
		}
		l.w = loaded(t, kind, 2, rest...)
		l.do(l.expand())
		in := &Input{Workload: l.w, Now: l.now}
		for _, p := range l.pods {
			pod := Pod{Applied: p.applied, Standing: model.Standing{Pending: p.ready.IsZero()}}
			pod.Status.Conditions = []v1.PodCondition{{
				Type:               v1.PodReady,
				Status:             v1.ConditionTrue,
				LastTransitionTime: metav1.NewTime(l.now),
			}}
			in.Pods = append(in.Pods, pod)
		}
		x := Expand(in)
		if x.Status.Updated != 0 || x.Status.Complete() || len(x.Waits) != 1 || len(x.Settled) != 1 {
			t.Errorf("%s: %+v, %d settled, waits %v", kind, x.Status, len(x.Settled), x.Waits)
		}
		for i := range in.Pods {
			in.Pods[i].Pending = false
		}
		if x := Expand(in); x.Status.Updated != 1 || len(x.Waits) != 0 {
			t.Errorf("%s, then: %+v, waits %v", kind, x.Status, x.Waits)
		}
	}
}

// TestDaemonSetForOtherNodes checks that a DaemonSet for other nodes has no pod here, with the reason, and that an
// existing pod is deleted.
func TestDaemonSetForOtherNodes(t *testing.T) {
	w := loaded(t, "DaemonSet", 1)
	there := Pod{Applied: newMaker(w).pod(0)}
	for why, pods := range map[string][]Pod{"": {there}, "this node has no label disk=ssd": {there}} {
		x := Expand(&Input{Workload: w, Pods: pods, Now: time.Unix(1e9, 0), Unfit: func(pod *v1.Pod) string {
			if pod.Name != "web-0" {
				t.Errorf("requested %s", pod.Name)
			}
			return why
		}})
		if got := [3]int{len(x.Pods), len(x.Gone), x.Status.Desired}; why == "" && got != [3]int{1, 0, 1} ||
			why != "" && got != [3]int{0, 1, 0} || x.Unfit != why {
			t.Errorf("%q: %v, %q", why, got, x.Unfit)
		}
	}
}
