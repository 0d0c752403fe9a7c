package executor

import (
	"sync"
	"time"

	"github.com/podctl/podctl/runtime/plan"
)

// gate is the progress of a step, for the steps that wait for it.
type gate struct {
	// done is closed when the step has ended.
	done chan struct{}
	// exited is closed when the last process of the stopped container has ended, at the latest with the step.
	exited chan struct{}
	exit   func()
}

func newGate() *gate {
	exited := make(chan struct{})
	return &gate{done: make(chan struct{}), exited: exited, exit: sync.OnceFunc(func() { close(exited) })}
}

// reached returns the channel that is closed when the step has reached the state.
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

// semaphore limits concurrent stops. containerd 2 deadlocks if about thirty containers of a pod are stopped at once.
type semaphore chan struct{}

// holdMax is how long a slow stop occupies a slot. Otherwise a container that ignores the signal would delay the rest
// for its whole grace period.
const holdMax = time.Second

// enter waits for a free slot. The slot becomes free when leave is called, or after holdMax.
func (s semaphore) enter() (leave func()) {
	s <- struct{}{}
	leave = sync.OnceFunc(func() { <-s })
	time.AfterFunc(holdMax, leave)
	return leave
}
