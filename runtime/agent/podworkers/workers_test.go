package podworkers

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
)

func at(seconds float64) time.Time {
	return time.Unix(1_700_000_000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func pod(name, uid, image string) *podspec.Desired {
	p := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "a", Image: image}}}}
	p.Namespace, p.Name, p.UID = "default", name, types.UID(uid)
	return podspec.New(p, "", p.UID)
}

// next returns the results of Next as text.
func next(w *Workers, now float64) string {
	begin, cut, wake := w.Next(at(now))
	text := ""
	for _, p := range begin {
		text += fmt.Sprintf("%s %s", p.Kind, p.Ref.UID)
		if p.Pod != nil {
			text += " " + p.Pod.Pod.Spec.Containers[0].Image
		}
		if p.Grace != nil {
			text += fmt.Sprintf(" %ds", *p.Grace)
		}
		text += "; "
	}
	for _, uid := range cut {
		text += fmt.Sprintf("cut %s; ", uid)
	}
	if !wake.IsZero() {
		text += fmt.Sprintf("wake %.1f; ", wake.Sub(at(0)).Seconds())
	}
	return text
}

func wants(t *testing.T, w *Workers, now float64, want string) {
	t.Helper()
	if got := next(w, now); got != want {
		t.Errorf("at %.1f: %q, want %q", now, got, want)
	}
}

// TestNextPass checks the time of the next pass: after a delay, after a minute, or after ten seconds if
// something failed. After an event, also during the pass, it begins at once (kubelet: completeWork).
func TestNextPass(t *testing.T) {
	w := New(Settings{Jitter: func() float64 { return 0.5 }})
	a := pod("web", "a", "i:1")
	w.Update(at(0), a)
	wants(t, w, 0, "sync a i:1; ")
	wants(t, w, 1, "")
	w.Done(at(1), "a", Result{})
	wants(t, w, 1, "wake 76.0; ")
	w.Wake(at(2), "a")
	wants(t, w, 2, "sync a i:1; ")
	w.Wake(at(3), "a")
	wants(t, w, 3, "")
	w.Done(at(4), "a", Result{Failed: true, Pending: true})
	wants(t, w, 4, "sync a i:1; ")
	w.Done(at(5), "a", Result{Failed: true, Pending: true})
	wants(t, w, 5, "wake 17.5; ")
	wants(t, w, 17.5, "sync a i:1; ")
	w.Done(at(18), "a", Result{Until: at(20.5)})
	wants(t, w, 18, "wake 20.5; ")
	wants(t, w, 20.5, "sync a i:1; ")
	w.Done(at(21), "a", Result{Pending: true})
	wants(t, w, 21, "sync a i:1; ")
	w.Done(at(22), "a", Result{})
	w.WakeAll(at(23))
	wants(t, w, 23, "sync a i:1; ")
}

// TestHoldsAreRecheckedSoon checks that a held pod is checked sooner than usual, because the hold may end by itself.
// The time counts from the end of the pass.
func TestHoldsAreRecheckedSoon(t *testing.T) {
	w := New(Settings{Jitter: func() float64 { return 0.5 }})
	w.Update(at(0), pod("web", "a", "i:1"))
	for _, c := range []struct{ took, recheck, want float64 }{{1, 1, 1.25}, {8, 1, 1.25}, {1, 10, 12.5}, {1, 600, 75}, {1, 0, 75}} {
		w.Wake(at(0), "a")
		wants(t, w, 0, "sync a i:1; ")
		w.Done(at(c.took), "a", Result{Recheck: time.Duration(c.recheck * float64(time.Second))})
		if got, want := w.States()[0].Due, at(c.took).Add(time.Duration(c.want*float64(time.Second))); !got.Equal(want) {
			t.Errorf("after %v s, recheck %v: in %s", c.took, c.recheck, got.Sub(at(c.took)))
		}
	}
}

// TestPodsThatAlwaysChange checks that such pods get five passes in a row, and then one each second. A pod whose passes
// fail waits for the usual time.
func TestPodsThatAlwaysChange(t *testing.T) {
	w := New(Settings{})
	w.Update(at(0), pod("web", "a", "i:1"))
	for range busyMax {
		wants(t, w, 0, "sync a i:1; ")
		w.Done(at(0), "a", Result{Pending: true})
	}
	wants(t, w, 0, "sync a i:1; ")
	w.Done(at(0), "a", Result{Pending: true})
	wants(t, w, 0, "wake 1.0; ")
	wants(t, w, 1, "sync a i:1; ")
	for i := range 2 * busyMax {
		now := float64(1 + 10*i)
		w.Done(at(now), "a", Result{Failed: true, Pending: true})
		wants(t, w, now, fmt.Sprintf("wake %.1f; ", now+10))
		wants(t, w, now+10, "sync a i:1; ")
	}
	w.Done(at(200), "a", Result{Pending: true})
	wants(t, w, 200, "sync a i:1; ")
}

// TestGenerations checks that an edit of a pod of the API server that was taken back leads to a pass, because the status
// must have its generation. A version without another generation leads to none.
func TestGenerations(t *testing.T) {
	version := func(generation int64) *podspec.Desired {
		d := pod("web", "a", "i:1")
		d.Owner, d.Pod.Generation = podspec.OwnerAPI, generation
		return d
	}
	w := New(Settings{})
	w.Update(at(0), version(1))
	wants(t, w, 0, "sync a i:1; ")
	w.Done(at(0), "a", Result{})
	wants(t, w, 1, "wake 60.0; ")
	w.Update(at(1), version(1))
	wants(t, w, 1, "wake 60.0; ")
	w.Update(at(1), version(3))
	wants(t, w, 1, "sync a i:1; ")
}

// TestTheLastUpdateWins checks that intermediate updates are skipped, and that their pass is cut short once.
func TestTheLastUpdateWins(t *testing.T) {
	w := New(Settings{})
	w.Update(at(0), pod("web", "a", "i:1"))
	wants(t, w, 0, "sync a i:1; ")
	w.Update(at(1), pod("web", "a", "i:1"))
	wants(t, w, 1, "")
	w.Update(at(1), pod("web", "a", "i:2"))
	w.Update(at(2), pod("web", "a", "i:3"))
	wants(t, w, 2, "cut a; ")
	wants(t, w, 2, "")
	w.Done(at(3), "a", Result{Failed: true})
	wants(t, w, 3, "sync a i:3; ")
}

// TestAnotherSource checks that the record of a pod is written at once when another source provides the same manifest.
// It is not written when the source only renames the file.
func TestAnotherSource(t *testing.T) {
	w := New(Settings{})
	hand, file, renamed := pod("web", "a", "i:1"), pod("web", "a", "i:1"), pod("web", "a", "i:1")
	file.Owner, renamed.Owner, renamed.Source = "/pods", "/pods", "/pods/other.yaml"
	w.Update(at(0), hand)
	wants(t, w, 0, "sync a i:1; ")
	w.Done(at(1), "a", Result{})
	w.Update(at(2), file)
	wants(t, w, 2, "sync a i:1; ")
	w.Done(at(3), "a", Result{})
	if w.Update(at(4), renamed); strings.Contains(next(w, 4), "sync") {
		t.Error("a pass begins for another file")
	}
}

// TestDeletions checks that no deletion is canceled and that its time only becomes shorter. A failed one is retried,
// and an update in between is applied afterwards (kubelet: Test_calculateEffectiveGracePeriod,
// TestUpdatePodDoesNotForgetSyncPodKill).
func TestDeletions(t *testing.T) {
	w := New(Settings{})
	removed := pod("web", "a", "i:1")
	w.Update(at(0), pod("web", "a", "i:1"))
	wants(t, w, 0, "sync a i:1; ")
	w.Remove(at(1), removed, nil)
	wants(t, w, 1, "cut a; ")
	w.Update(at(1), pod("web", "a", "i:2"))
	w.Done(at(2), "a", Result{Failed: true})
	wants(t, w, 2, "terminate a; ")
	w.Remove(at(3), removed, new(int64(5)))
	wants(t, w, 3, "cut a; ")
	w.Update(at(3), pod("web", "a", "i:3"))
	w.Remove(at(3), removed, new(int64(9)))
	w.Update(at(3), pod("web", "a", "i:4"))
	w.Done(at(4), "a", Result{Failed: true})
	wants(t, w, 4, "terminate a 5s; ")
	w.Done(at(5), "a", Result{Failed: true})
	wants(t, w, 5, "wake 15.0; ")
	w.Remove(at(6), removed, new(int64(0)))
	w.Update(at(6), pod("web", "a", "i:5"))
	wants(t, w, 6, "terminate a 1s; ")
	w.Done(at(7), "a", Result{})
	wants(t, w, 7, "sync a i:5; ")
	w.Done(at(8), "a", Result{})
	w.Remove(at(8), removed, nil)
	wants(t, w, 8, "terminate a; ")
	w.Remove(at(9), removed, new(int64(3)))
	w.Done(at(9), "a", Result{})
	wants(t, w, 9, "")
	if len(w.workers) > 0 {
		t.Error("a pod that is gone is remembered")
	}
}

// TestExistingPodKeepsItsName checks that an existing pod keeps its name even if its deletion was not known when
// another pod was added.
func TestExistingPodKeepsItsName(t *testing.T) {
	w := New(Settings{})
	there := pod("web", "a", "i:1")
	w.Update(at(0), pod("web", "b", "i:1"))
	w.Remove(at(0), there, nil)
	wants(t, w, 0, "terminate a; ")
	w.Done(at(1), "a", Result{})
	wants(t, w, 1, "sync b i:1; ")
}

// TestForgottenPods checks that no pass begins while a pass of a forgotten pod runs, even if the pod is wanted again. A
// pod that stays forgotten is gone once its pass has ended.
func TestForgottenPods(t *testing.T) {
	w := New(Settings{})
	removed := pod("web", "a", "i:1")
	w.Update(at(0), pod("web", "a", "i:1"))
	wants(t, w, 0, "sync a i:1; ")
	w.Forget("a")
	if w.Has("a") {
		t.Error("a forgotten pod is known")
	}
	w.Update(at(1), pod("web", "a", "i:2"))
	wants(t, w, 1, "cut a; ")
	w.Done(at(2), "a", Result{Failed: true})
	wants(t, w, 2, "sync a i:2; ")
	w.Forget("a")
	w.Update(at(3), pod("web", "b", "i:3"))
	wants(t, w, 3, "")
	w.Done(at(4), "a", Result{})
	wants(t, w, 4, "sync b i:3; ")
	w.Done(at(5), "b", Result{})
	w.Remove(at(5), removed, nil)
	wants(t, w, 5, "terminate a; wake 65.0; ")
	w.Update(at(5), pod("web", "a", "i:4"))
	w.Forget("a")
	w.Remove(at(6), removed, nil)
	w.Done(at(6), "a", Result{Failed: true})
	wants(t, w, 16, "terminate a; wake 65.0; ")
	w.Forget("a")
	w.Done(at(17), "a", Result{})
	w.Forget("b")
	if len(w.workers) > 0 {
		t.Error("a forgotten pod is remembered")
	}
}

// TestOnePodPerName checks that a pod waits until the earlier one is gone. The newest of the waiting pods is started,
// and one that never began is dropped (kubelet: TestStaticPodExclusion, Test_allowPodStart,
// Test_removeTerminatedWorker).
func TestOnePodPerName(t *testing.T) {
	w := New(Settings{})
	first, second, third := pod("web", "1", "i:1"), pod("web", "2", "i:2"), pod("web", "3", "i:3")
	w.Update(at(0), first)
	wants(t, w, 0, "sync 1 i:1; ")
	w.Remove(at(1), first, nil)
	w.Update(at(1), second)
	w.Update(at(1), third)
	w.Update(at(1), pod("other", "4", "i:4"))
	wants(t, w, 1, "sync 4 i:4; cut 1; ")
	w.Done(at(2), "1", Result{Failed: true})
	wants(t, w, 2, "terminate 1; ")
	w.Done(at(3), "1", Result{})
	wants(t, w, 3, "sync 3 i:3; ")
	w.Update(at(4), second)
	w.Remove(at(4), second, nil)
	w.Remove(at(4), third, nil)
	wants(t, w, 4, "cut 3; ")
	w.Done(at(5), "3", Result{Failed: true})
	wants(t, w, 5, "terminate 3; ")
	w.Done(at(6), "3", Result{})
	wants(t, w, 6, "")
}

// TestPodsWithoutNames checks that pods that UIDs identify run beside others of the same name. They neither wait for
// the name, nor hold it, nor drop a pod that waits for it, also if only their deletion is known.
func TestPodsWithoutNames(t *testing.T) {
	w := New(Settings{ByUID: func(source string) bool { return source == "api" }})
	api := func(uid string) *podspec.Desired {
		d := pod("web", uid, "i:1")
		d.Owner = "api"
		return d
	}
	w.Remove(at(0), api("0"), nil)
	w.Update(at(0), pod("web", "a", "i:1"))
	wants(t, w, 0, "terminate 0; sync a i:1; ")
	w.Update(at(1), pod("web", "b", "i:2"))
	w.Update(at(1), api("1"))
	w.Update(at(1), api("2"))
	wants(t, w, 1, "sync 1 i:1; sync 2 i:1; ")
	if states := w.States(); len(states) != 5 || states[4].Ref.UID != "b" || states[4].WaitsFor.UID != "a" {
		t.Errorf("%+v", states)
	}
	w.Remove(at(2), pod("web", "a", "i:1"), nil)
	w.Remove(at(2), api("1"), nil)
	wants(t, w, 2, "cut a; cut 1; ")
	w.Done(at(3), "a", Result{Failed: true})
	w.Done(at(3), "1", Result{Failed: true})
	wants(t, w, 3, "terminate a; terminate 1; ")
	w.Update(at(3), api("1"))
	w.Done(at(4), "a", Result{})
	w.Done(at(4), "1", Result{})
	wants(t, w, 4, "sync b i:2; sync 1 i:1; ")
}

// TestParallel checks the limit of parallel passes. Pods that have been due longest go first, and deletions do not
// wait.
func TestParallel(t *testing.T) {
	w := New(Settings{Parallel: 2})
	for i, uid := range []string{"a", "b", "c", "d"} {
		w.Update(at(float64(i)), pod(uid, uid, "i"))
	}
	wants(t, w, 4, "sync a i; sync b i; ")
	w.Remove(at(5), pod("d", "d", "i"), nil)
	wants(t, w, 5, "terminate d; ")
	w.Wake(at(5), "a")
	w.Done(at(6), "a", Result{})
	wants(t, w, 6, "sync c i; ")
	w.Done(at(7), "b", Result{})
	wants(t, w, 7, "sync a i; wake 67.0; ")
}

// life is a random life of pods with its expected results.
type life struct {
	t       *testing.T
	rand    *rand.Rand
	now     float64
	w       *Workers
	running map[types.UID]*pass
	// wanted are the pods that a source wants. removed are those whose deletion is requested and has not ended. made is
	// the running image by UID.
	wanted  map[string]*podspec.Desired
	removed map[types.UID]bool
	made    map[types.UID]string
	names   map[types.UID]string
}

type pass struct {
	Pass
	until float64
	cut   bool
}

const parallel = 3

// TestRandomSourceChanges checks random lives. At most one pass per pod and one pod per name run at a time, and the
// last update wins. No deletion is canceled, and only requested deletions are made. Once nothing changes any more, the
// wanted pods run.
func TestRandomSourceChanges(t *testing.T) {
	for seed := range uint64(300) {
		l := &life{
			t: t, rand: rand.New(rand.NewPCG(seed, 1)), running: map[types.UID]*pass{}, wanted: map[string]*podspec.Desired{},
			removed: map[types.UID]bool{}, made: map[types.UID]string{}, names: map[types.UID]string{},
		}
		l.w = New(Settings{Parallel: parallel, Jitter: l.rand.Float64})
		for range 120 {
			l.change()
			l.step(l.rand.Float64() * 4)
		}
		for range 400 {
			l.step(5)
		}
		l.converged(seed)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// change makes a random change of a source or the runtime.
func (l *life) change() {
	name := fmt.Sprint("pod", l.rand.IntN(4))
	have := l.wanted[name]
	switch l.rand.IntN(5) {
	case 0, 1: // a manifest is added or edited, sometimes with another UID
		uid := fmt.Sprint(name, "-", l.rand.IntN(3))
		d := pod(name, uid, fmt.Sprint("i:", l.rand.IntN(1000)))
		if have != nil && have.Pod.UID != d.Pod.UID {
			l.remove(have)
		}
		l.wanted[name] = d
		l.names[d.Pod.UID] = name
		l.w.Update(at(l.now), d)
	case 2:
		if have != nil {
			l.remove(have)
			delete(l.wanted, name)
		}
	case 3:
		l.w.Wake(at(l.now), types.UID(fmt.Sprint(name, "-", l.rand.IntN(3))))
	case 4:
		if l.rand.IntN(10) == 0 {
			l.w.WakeAll(at(l.now))
		}
	}
}

func (l *life) remove(d *podspec.Desired) {
	l.removed[d.Pod.UID] = true
	var grace *int64
	if l.rand.IntN(2) == 0 {
		grace = new(int64(l.rand.IntN(20)))
	}
	l.w.Remove(at(l.now), d, grace)
	if l.w.workers[d.Pod.UID] == nil {
		// It waited for its name, so there is nothing to delete.
		delete(l.removed, d.Pod.UID)
	}
}

// step advances the time, and ends the passes that are due to end.
func (l *life) step(seconds float64) {
	l.begin()
	l.now += seconds
	for _, uid := range sortedKeys(l.running) {
		if p := l.running[uid]; p.until <= l.now {
			delete(l.running, uid)
			l.end(uid, p)
		}
	}
	l.begin()
}

func sortedKeys[V any](m map[types.UID]V) []types.UID {
	var keys []types.UID
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (l *life) begin() {
	begin, cut, _ := l.w.Next(at(l.now))
	for _, uid := range cut {
		if l.running[uid] == nil || l.running[uid].cut {
			l.t.Errorf("%s is cut and does not run, or is cut twice", uid)
			continue
		}
		l.running[uid].cut, l.running[uid].until = true, l.now
	}
	syncs := 0
	for _, p := range begin {
		l.check(p)
		l.running[p.Ref.UID] = &pass{Pass: p, until: l.now + l.rand.Float64()*6}
	}
	for _, p := range l.running {
		if p.Kind == Sync {
			syncs++
		}
	}
	if syncs > parallel {
		l.t.Errorf("%d passes at once", syncs)
	}
}

// check checks whether a pass may begin.
func (l *life) check(p Pass) {
	uid := p.Ref.UID
	if l.running[uid] != nil {
		l.t.Errorf("two passes of %s at once", uid)
	}
	switch p.Kind { //nolint:exhaustive // TestStop covers the other kinds
	case Sync:
		if l.removed[uid] {
			l.t.Errorf("%s is made while it is to be deleted", uid)
		}
		if want := l.wanted[p.Ref.Name]; want == nil || !want.SameAs(p.Pod) {
			l.t.Errorf("%s is made as it was wanted before", uid)
		}
		for other := range l.made {
			if other != uid && l.names[other] == p.Ref.Name {
				l.t.Errorf("%s is made beside %s", uid, other)
			}
		}
	case Terminate:
		if !l.removed[uid] {
			l.t.Errorf("%s is deleted without a request", uid)
		}
	}
}

func (l *life) end(uid types.UID, p *pass) {
	failed := p.cut && l.rand.IntN(4) > 0 || l.rand.IntN(8) == 0
	switch {
	case p.Kind == Sync:
		// A failed pass may also have started something.
		l.made[uid] = p.Pod.Pod.Spec.Containers[0].Image
	case !failed:
		delete(l.made, uid)
		delete(l.removed, uid)
	}
	l.w.Done(at(l.now), uid, Result{Failed: failed, Pending: l.rand.IntN(10) == 0})
}

func (l *life) converged(seed uint64) {
	for uid, image := range l.made {
		want := l.wanted[l.names[uid]]
		if want == nil || want.Pod.UID != uid || want.Pod.Spec.Containers[0].Image != image {
			l.t.Errorf("seed %d: %s runs with %s", seed, uid, image)
		}
	}
	for name, d := range l.wanted {
		if l.made[d.Pod.UID] == "" {
			l.t.Errorf("seed %d: %s is wanted and does not run", seed, name)
		}
	}
	if len(l.w.workers) != len(l.wanted) {
		l.t.Errorf("seed %d: %d workers for %d pods", seed, len(l.w.workers), len(l.wanted))
	}
}

// TestStop checks that only stops and deletions begin while the workers are held. An update takes effect after Resume.
func TestStop(t *testing.T) {
	w := New(Settings{Parallel: 2})
	w.Update(at(0), pod("a", "1", "i:1"))
	w.Update(at(0), pod("b", "2", "i:1"))
	w.Update(at(0), pod("c", "3", "i:1"))
	wants(t, w, 0, "sync 1 i:1; sync 2 i:1; ")
	w.Done(at(0), "1", Result{})
	w.Hold()
	wants(t, w, 0, "cut 2; ")
	w.Stop(at(1), "1", 5, nil)
	w.Update(at(1), pod("a", "1", "i:2"))
	wants(t, w, 1, "stop 1 i:2 5s; ")
	w.Update(at(2), pod("a", "1", "i:3"))
	w.Done(at(2), "2", Result{Failed: true})
	wants(t, w, 2, "")
	w.Done(at(3), "1", Result{Pending: true})
	if !w.Stopped("1") || w.Stopped("2") || !w.Stopped("gone") {
		t.Error("the first has stopped, the second has not, and one that is gone has")
	}
	w.Wake(at(3), "1")
	w.Remove(at(3), pod("c", "3", "i:1"), nil)
	wants(t, w, 3, "terminate 3; ")
	w.Stop(at(3), "3", 4, nil)
	wants(t, w, 3, "cut 3; ")
	w.Done(at(3), "3", Result{Failed: true})
	wants(t, w, 3, "terminate 3 4s; ")
	w.Stop(at(4), "2", 1, nil)
	wants(t, w, 4, "stop 2 i:1 1s; ")
	w.Done(at(4), "2", Result{Failed: true})
	wants(t, w, 4, "wake 5.0; ")
	w.Done(at(4), "3", Result{})
	w.Resume(at(5))
	wants(t, w, 5, "sync 1 i:3; sync 2 i:1; ")
}

// TestStopUnheld checks that Stop has no effect while passes may begin.
func TestStopUnheld(t *testing.T) {
	w := New(Settings{})
	w.Update(at(0), pod("a", "1", "i:1"))
	w.Stop(at(0), "1", 5, nil)
	wants(t, w, 0, "sync 1 i:1; ")
}

// TestWallClockIsSetBack checks that the worker waits for the duration until a plan's wall-clock time, and not forever
// if the clock is set back.
func TestWallClockIsSetBack(t *testing.T) {
	now := time.Now()
	w := New(Settings{})
	w.Update(now, pod("web", "a", "i:1"))
	w.Next(now)
	w.Done(now, "a", Result{Until: now.Round(0).Add(30 * time.Second)})
	if _, _, wake := w.Next(now); wake.Sub(now) != 30*time.Second || !strings.Contains(wake.String(), " m=") {
		t.Errorf("next pass at %s, now %s", wake, now)
	}
}

// TestStarting checks that only a Sync pass whose plan is unknown or has a start may start a container.
func TestStarting(t *testing.T) {
	w := New(Settings{})
	a := pod("web", "a", "i:1")
	check := func(when string, want bool) {
		t.Helper()
		if got := w.Starting("a"); got != want {
			t.Errorf("%s: %t, want %t", when, got, want)
		}
	}
	check("an unknown pod", false)
	w.Planned("a", true)
	w.Update(at(0), a)
	check("before its pass", false)
	wants(t, w, 0, "sync a i:1; ")
	check("before the plan", true)
	w.Planned("a", true)
	check("a plan without a start", false)
	w.Planned("a", false)
	check("another plan", true)
	w.Planned("a", true)
	w.Done(at(1), "a", Result{Pending: true})
	wants(t, w, 2, "sync a i:1; ")
	check("the next pass", true)
	w.Done(at(3), "a", Result{})
	w.End(at(3), a, 30)
	wants(t, w, 3, "end a i:1 30s; ")
	check("an End pass", false)
}
