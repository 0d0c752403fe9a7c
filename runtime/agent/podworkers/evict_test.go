package podworkers

import (
	"testing"

	"github.com/podctl/podctl/runtime/model"
)

// TestEvict checks that an eviction cuts the pod's running pass short, does not wait for other passes, and continues
// until a pass changes nothing. A failed eviction is repeated.
func TestEvict(t *testing.T) {
	w := New(Settings{Parallel: 1})
	why := &model.Eviction{Signal: "memory.available"}
	if w.Update(at(0), pod("web", "a", "i:1")); w.Evict(at(0), "a", why) || w.Evict(at(0), "nobody", why) {
		t.Error("a pod was evicted that has not begun, or is not there")
	}
	wants(t, w, 0, "sync a i:1; ")
	w.Done(at(0), "a", Result{})
	w.Update(at(1), pod("other", "b", "i:1"))
	wants(t, w, 1, "sync b i:1; wake 60.0; ")
	if !w.Evict(at(2), "a", why) {
		t.Error("not evicted")
	}
	wants(t, w, 2, "evict a i:1; ")
	w.Done(at(3), "a", Result{Failed: true})
	wants(t, w, 3, "wake 13.0; ")
	wants(t, w, 13, "evict a i:1; ")
	w.Done(at(3), "a", Result{Failed: true})
	w.Evict(at(4), "b", why)
	wants(t, w, 4, "cut b; wake 13.0; ")
	w.Done(at(5), "b", Result{Failed: true})
	wants(t, w, 5, "evict b i:1; wake 13.0; ")
	w.Done(at(6), "b", Result{Pending: true})
	wants(t, w, 6, "evict b i:1; wake 13.0; ")
	w.Done(at(6), "b", Result{})
	wants(t, w, 6, "sync b i:1; wake 13.0; ")
	if w.Hold(); w.Evict(at(8), "b", why) {
		t.Error("a pod was evicted while all pods are being stopped")
	}
}

// TestEditDuringEviction checks that an edit does not cancel an eviction. The edited version gets a pass at its end.
func TestEditDuringEviction(t *testing.T) {
	w := New(Settings{})
	w.Update(at(0), pod("web", "a", "i:1"))
	wants(t, w, 0, "sync a i:1; ")
	w.Done(at(0), "a", Result{})
	w.Evict(at(1), "a", &model.Eviction{Signal: "memory.available"})
	wants(t, w, 1, "evict a i:1; ")
	w.Update(at(2), pod("web", "a", "i:2"))
	wants(t, w, 2, "")
	w.Done(at(3), "a", Result{Failed: true})
	wants(t, w, 3, "evict a i:2; ")
	w.Done(at(4), "a", Result{Pending: true})
	wants(t, w, 4, "evict a i:2; ")
	w.Done(at(5), "a", Result{})
	wants(t, w, 5, "sync a i:2; ")
}

// TestEvictionAfterAShutdown checks that the end of a shutdown cancels only the evictions of the shutdown.
func TestEvictionAfterAShutdown(t *testing.T) {
	for _, c := range []struct {
		shutdown bool
		cut      string
		next     string
	}{{false, "", "evict a i:1; "}, {true, "cut a; ", "sync a i:1; "}} {
		w := New(Settings{})
		w.Update(at(0), pod("web", "a", "i:1"))
		wants(t, w, 0, "sync a i:1; ")
		w.Done(at(0), "a", Result{})
		if c.shutdown {
			w.Hold()
			w.Stop(at(1), "a", 30, model.ShutdownEviction(at(1), 30))
		} else {
			w.Evict(at(1), "a", &model.Eviction{Signal: "memory.available"})
		}
		wants(t, w, 1, "evict a i:1; ")
		w.Hold()
		w.Resume(at(2))
		wants(t, w, 2, c.cut)
		w.Done(at(3), "a", Result{Failed: true})
		wants(t, w, 3, c.next)
	}
}

// TestEvictionOfDeletedPods checks that an eviction with a shorter grace period shortens that of a pod that is being
// deleted, once.
func TestEvictionOfDeletedPods(t *testing.T) {
	w := New(Settings{})
	hard, soft, own := &model.Eviction{}, &model.Eviction{GracePeriodSeconds: 20}, &model.Eviction{GracePeriodSeconds: 30}
	for _, uid := range []string{"a", "b"} {
		w.Update(at(0), pod("web-"+uid, uid, "i:1"))
	}
	wants(t, w, 0, "sync a i:1; sync b i:1; ")
	w.Done(at(0), "a", Result{})
	w.Done(at(0), "b", Result{})
	w.Remove(at(1), pod("web-a", "a", "i:1"), nil)
	w.End(at(1), pod("web-b", "b", "i:1"), 3600)
	wants(t, w, 1, "terminate a; end b i:1 3600s; ")
	if w.Evict(at(2), "a", own) || !w.Evict(at(2), "a", soft) || w.Evict(at(2), "a", soft) {
		t.Error("its own grace period: only a shorter one changes it, and only once")
	}
	wants(t, w, 2, "cut a; ")
	w.Done(at(2), "a", Result{Failed: true})
	wants(t, w, 2, "terminate a 20s; ")
	if !w.Evict(at(2), "a", hard) || w.Evict(at(2), "a", hard) || w.Evictable("a") {
		t.Error("20 seconds: an eviction without a grace period changes it, and only once")
	}
	wants(t, w, 2, "cut a; ")
	w.Done(at(2), "a", Result{Failed: true})
	wants(t, w, 2, "terminate a 1s; ")
	if !w.Evict(at(3), "b", soft) || w.Evict(at(3), "b", soft) || !w.Evict(at(3), "b", hard) {
		t.Error("an hour: the grace period becomes 20 seconds, then none")
	}
	wants(t, w, 3, "cut b; ")
	w.Done(at(3), "b", Result{Failed: true})
	wants(t, w, 3, "end b i:1 1s; ")
	if w.Done(at(4), "b", Result{Ended: true}); w.Evict(at(4), "b", hard) {
		t.Error("a pod was evicted that has ended")
	}
	brief := pod("brief", "c", "i:1")
	brief.Pod.Spec.TerminationGracePeriodSeconds = new(int64(20))
	w.Remove(at(5), brief, nil)
	wants(t, w, 5, "terminate c; ")
	if w.Evict(at(6), "c", soft) || !w.Evict(at(6), "c", hard) {
		t.Error("20 seconds in the manifest: only an eviction without a grace period changes it")
	}
}

// TestShutdownEviction checks that a pod that a shutdown evicts has stopped once a pass changes nothing more. A failed
// pass is repeated after a pause.
func TestShutdownEviction(t *testing.T) {
	w := New(Settings{})
	w.Update(at(0), pod("web", "a", "i:1"))
	wants(t, w, 0, "sync a i:1; ")
	w.Done(at(0), "a", Result{})
	w.Hold()
	w.Stop(at(1), "a", 1, model.ShutdownEviction(at(1), 1))
	for _, r := range []Result{{Pending: true}, {Pending: true}, {}} {
		wants(t, w, 1, "evict a i:1; ")
		if w.Stopped("a") {
			t.Error("it has stopped before its leftovers are removed")
		}
		w.Done(at(1), "a", r)
	}
	if wants(t, w, 1, ""); !w.Stopped("a") {
		t.Error("it has not stopped")
	}
}
