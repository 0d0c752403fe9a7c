package executor

import (
	"sync"
	"time"

	"github.com/podctl/podctl/runtime/plan"
)

// gate is how far a step has come, for the steps that wait for it.
type gate struct {
	// done is closed when the step has ended.
	done chan struct{}
	// exited is closed when no process is left of the container that the step stops, at
	// the latest when the step has ended.
	exited chan struct{}
	exit   func()
}

func newGate() *gate {
	exited := make(chan struct{})
	return &gate{done: make(chan struct{}), exited: exited, exit: sync.OnceFunc(func() { close(exited) })}
}

// reached is closed when the step has come as far as others need it.
func (g *gate) reached(until plan.Until) <-chan struct{} {
	if until == plan.Exited {
		return g.exited
	}
	return g.done
}

func (g *gate) end() {
	g.exit()
	close(g.done)
}

// semaphore lets so many in at a time. containerd 2 locks up when some thirty containers of a
// pod are asked to end at once.
type semaphore chan struct{}

// holdMax is how long one that takes its time keeps others out: a container that does not
// obey would hold up the rest for its whole grace period.
const holdMax = time.Second

// enter waits for room. What it returns makes room again, if time has not.
func (s semaphore) enter() (leave func()) {
	s <- struct{}{}
	leave = sync.OnceFunc(func() { <-s })
	time.AfterFunc(holdMax, leave)
	return leave
}
