package agent

import (
	"testing"
	"time"
)

// closed reports whether a channel is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// makes adds a pod to a source, and waits until it runs.
func (l *life) makes(name, uid string) {
	l.t.Helper()
	l.wants["one"][name] = l.manifest("one", name, uid, 1)
	l.sendUpdate("one")
	l.sendUpdate("two")
	l.rest(0)
	if l.runs(l.wants["one"][name].Pod.UID) == nil {
		l.t.Fatal("the container does not run")
	}
}

// deliverAll delivers all pending mail to the agent's loop.
func (l *life) deliverAll() {
	for len(l.mail) > 0 {
		l.deliver()
	}
}

// TestShutdownWaitsForDeletions checks that a shutdown waits for pods that are being deleted, and not for those that
// would be recreated afterwards.
func TestShutdownWaitsForDeletions(t *testing.T) {
	for name, again := range map[string]bool{"gone": false, "applied again": true} {
		t.Run(name, func(t *testing.T) {
			l := newStill(t)
			l.makes("a", "a1")
			d := l.wants["one"]["a"]
			delete(l.wants["one"], "a")
			l.sendUpdate("one")
			l.deliverAll()
			if again {
				l.wants["one"]["a"] = d
				l.sendUpdate("one")
				l.deliverAll()
			}
			done := l.agent.stopper.begin(30 * time.Second)
			l.wake = l.agent.begin(l.ctx)
			if closed(done) {
				t.Fatal("the shutdown continues while a container runs")
			}
			l.rest(time.Second)
			if !closed(done) || l.runs("a1") != nil {
				t.Errorf("after the deletion: done %t, running %+v", closed(done), l.runs("a1"))
			}
			l.agent.stopper.cancel()
			l.rest(time.Second)
			if runs := l.runs("a1") != nil; runs != again {
				t.Errorf("pod runs after the shutdown was canceled: %t", runs)
			}
		})
	}
}

// TestShutdownIgnoresDeletedPods checks a pod that a user has deleted and whose pass finds that while the
// shutdown begins.
func TestShutdownIgnoresDeletedPods(t *testing.T) {
	l := newStill(t)
	l.makes("a", "a1")
	l.removes(l.runs("a1")).do()
	l.deliverAll()
	delete(l.pods, "a1")
	for len(l.tasks) > 0 {
		l.run(l.tasks[0])
	}
	done := l.agent.stopper.begin(30 * time.Second)
	l.wake = l.agent.begin(l.ctx)
	l.rest(2 * time.Second)
	if !closed(done) {
		t.Error("the shutdown waits for a deleted pod")
	}
}
