package proxy

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
)

// worker does a thing soon after it was asked for, in a goroutine of its own that is there only meanwhile. What is asked for
// while it is done is done again afterwards.
type worker struct {
	do func(ctx context.Context) error
	// told is called with what came of it each time; nil for nobody.
	told func(error)

	mu     sync.Mutex
	asked  bool
	ended  chan struct{}
	hurry  chan struct{}
	failed error
}

// settle is how long after a change it is looked what follows: others come with it.
const settle = 20 * time.Millisecond

// ask has it done. It does not wait.
func (w *worker) ask(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = true
	if w.ended == nil {
		w.ended, w.hurry = make(chan struct{}), make(chan struct{}, 1)
		go w.run(context.WithoutCancel(ctx), w.ended, w.hurry)
	}
}

func (w *worker) run(ctx context.Context, ended chan struct{}, hurry <-chan struct{}) {
	for {
		select {
		case <-hurry:
		case <-time.After(settle):
		}
		if !w.take() {
			close(ended)
			return
		}
		err := w.do(ctx)
		if w.told != nil {
			w.told(err)
		}
		w.mu.Lock()
		w.failed = err
		w.mu.Unlock()
	}
}

// take reports whether there is something to do. Otherwise the goroutine is gone.
func (w *worker) take() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.asked {
		w.ended = nil
		return false
	}
	w.asked = false
	return true
}

// wait waits until nothing is left to do, and returns why the last time failed.
func (w *worker) wait() error {
	w.mu.Lock()
	ended, hurry := w.ended, w.hurry
	w.mu.Unlock()
	if ended != nil {
		hurry <- struct{}{}
		<-ended
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

// Changed says that something may have happened to a pod; without a uid, to a Service. It does not wait: what follows is done
// soon. Next to nothing is done while there are no Services.
func (p *Proxy) Changed(ctx context.Context, uid types.UID) {
	p.mu.Lock()
	delete(p.known, uid)
	p.changed[uid] = true
	p.mu.Unlock()
	p.worker.ask(ctx)
}

// Wait waits until what Changed said has had its effect, and returns why that failed last.
func (p *Proxy) Wait() error { return p.worker.wait() }

// restores bounds how often rules that another program removes are written again: a program that removes them all the time must not
// keep the machine busy.
const restores = 5

// Restore writes the rules again whenever another program has removed something of them, for example `nft flush ruleset` when a
// firewall is reloaded. It returns when the context ends, or with the reason why the kernel cannot be watched.
func (p *Proxy) Restore(ctx context.Context) error {
	if p.Kernel == nil {
		return nil
	}
	limit := rate.NewLimiter(1, restores)
	removed := make(chan struct{}, 1)
	go func() {
		for range removed {
			if limit.Wait(ctx) != nil {
				return
			}
			p.Changed(ctx, "")
		}
	}()
	defer close(removed)
	return p.Kernel.Watch(ctx, func() {
		select {
		case removed <- struct{}{}:
		default:
		}
	})
}
