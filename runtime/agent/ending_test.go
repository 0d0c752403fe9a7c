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

// makes lets a source have one pod, and waits until it runs.
func (l *life) makes(name, uid string) {
	l.t.Helper()
	l.wants["one"][name] = l.manifest("one", name, uid, 1)
	l.tell("one")
	l.tell("two")
	l.rest(0)
	if l.runs(l.wants["one"][name].Pod.UID) == nil {
		l.t.Fatal("it does not run")
	}
}

// deliverAll lets the loop of the agent take all that it is told.
func (l *life) deliverAll() {
	for len(l.mail) > 0 {
		l.deliver()
	}
}

// TestAShutdownWaitsForDeletions: also what is being deleted runs until it is gone, and what is to be made anew after that
// is not waited for.
func TestAShutdownWaitsForDeletions(t *testing.T) {
	for name, again := range map[string]bool{"gone": false, "anew": true} {
		t.Run(name, func(t *testing.T) {
			l := newStill(t)
			l.makes("a", "a1")
			d := l.wants["one"]["a"]
			delete(l.wants["one"], "a")
			l.tell("one")
			l.deliverAll()
			if again {
				l.wants["one"]["a"] = d
				l.tell("one")
				l.deliverAll()
			}
			done := l.agent.ending.begin(30 * time.Second)
			l.wake = l.agent.begin(l.ctx)
			if closed(done) {
				t.Fatal("the shutdown goes on while a container runs")
			}
			l.rest(time.Second)
			if !closed(done) || l.runs("a1") != nil {
				t.Errorf("after the deletion: closed %t, runs %+v", closed(done), l.runs("a1"))
			}
			l.agent.ending.callOff()
			l.rest(time.Second)
			if runs := l.runs("a1") != nil; runs != again {
				t.Errorf("after the shutdown was called off it runs: %t", runs)
			}
		})
	}
}

// TestAShutdownWaitsForNobodyWhoIsGone: a pod that a user has deleted, as its pass finds while the shutdown begins.
func TestAShutdownWaitsForNobodyWhoIsGone(t *testing.T) {
	l := newStill(t)
	l.makes("a", "a1")
	l.removes(l.runs("a1")).do()
	l.deliverAll()
	delete(l.pods, "a1")
	for len(l.tasks) > 0 {
		l.run(l.tasks[0])
	}
	done := l.agent.ending.begin(30 * time.Second)
	l.wake = l.agent.begin(l.ctx)
	l.rest(2 * time.Second)
	if !closed(done) {
		t.Error("it is waited for")
	}
}
