package podworkers

import (
	"testing"
)

// TestEnds checks that a pod that ends gets End passes until only its records are left, and then none until it is
// deleted. The grace period only becomes shorter, and a shorter one cuts the pass short (kubelet:
// Test_calculateEffectiveGracePeriod, completeTerminating).
func TestEnds(t *testing.T) {
	w := New(Settings{Parallel: 1})
	a := pod("web", "a", "i:1")
	w.Update(at(0), a)
	wants(t, w, 0, "sync a i:1; ")
	w.End(at(1), pod("web", "a", "i:2"), 30)
	wants(t, w, 1, "cut a; ")
	w.Done(at(2), "a", Result{Failed: true})
	wants(t, w, 2, "end a i:2 30s; ")
	w.End(at(3), a, 40)
	w.End(at(3), a, 30)
	w.Update(at(3), a)
	wants(t, w, 3, "")
	w.End(at(4), a, 0)
	wants(t, w, 4, "cut a; ")
	w.Done(at(5), "a", Result{Failed: true})
	wants(t, w, 5, "end a i:1 1s; ")
	w.Done(at(6), "a", Result{Failed: true})
	wants(t, w, 6, "wake 16.0; ")
	wants(t, w, 16, "end a i:1 1s; ")
	w.Done(at(17), "a", Result{Pending: true})
	wants(t, w, 17, "end a i:1 1s; ")
	w.Done(at(18), "a", Result{Pending: true, Ended: true})
	w.WakeAll(at(19))
	w.End(at(19), a, 1)
	wants(t, w, 19, "")
	if !w.Ended("a") || !w.Ending("a") || !w.Stopped("a") || w.Evict(at(20), "a", nil) {
		t.Error("it has not ended")
	}
	w.MarkAbsent("a")
	wants(t, w, 20, "end a i:1 1s; ")
	w.Done(at(21), "a", Result{Ended: true})
	w.Remove(at(22), a, nil)
	wants(t, w, 22, "terminate a 1s; ")
	w.Done(at(23), "a", Result{})
	wants(t, w, 23, "")
	if len(w.workers) > 0 {
		t.Error("a pod that is gone is remembered")
	}
}

// TestRemovedWhileItEnds checks that a pod that its source removes before it has ended goes on to end in its time. A
// failed pass is followed by the deletion.
func TestRemovedWhileItEnds(t *testing.T) {
	w := New(Settings{})
	a := pod("web", "a", "i:1")
	w.End(at(0), a, 30)
	wants(t, w, 0, "end a i:1 30s; ")
	w.Remove(at(1), a, nil)
	w.Remove(at(1), a, nil)
	wants(t, w, 1, "")
	w.Done(at(2), "a", Result{Failed: true})
	wants(t, w, 2, "terminate a 30s; ")
	w.End(at(3), a, 5)
	wants(t, w, 3, "cut a; ")
	w.Done(at(4), "a", Result{Failed: true})
	wants(t, w, 4, "terminate a 5s; ")
	w.Done(at(5), "a", Result{})
	w.End(at(6), a, 9)
	wants(t, w, 6, "end a i:1 9s; ")
}

// TestEndsDuringAShutdown checks that pods end while all others stop, within the time of the shutdown.
func TestEndsDuringAShutdown(t *testing.T) {
	w := New(Settings{})
	a, b := pod("web", "a", "i:1"), pod("db", "b", "i:1")
	w.Update(at(0), b)
	wants(t, w, 0, "sync b i:1; ")
	w.Done(at(0), "b", Result{})
	w.End(at(0), a, 30)
	wants(t, w, 0, "end a i:1 30s; wake 60.0; ")
	w.Hold()
	w.Stop(at(1), "a", 5, nil)
	wants(t, w, 1, "cut a; ")
	w.Done(at(2), "a", Result{Failed: true})
	wants(t, w, 2, "end a i:1 5s; ")
	if w.Stopped("a") {
		t.Error("it has stopped too early")
	}
	w.Done(at(3), "a", Result{Ended: true})
	if !w.Stopped("a") {
		t.Error("it has not stopped")
	}
	w.Resume(at(4))
	wants(t, w, 4, "sync b i:1; ")
}
