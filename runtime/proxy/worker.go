package proxy

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/sleep"
)

// worker runs a function shortly after a request, in a goroutine that exists only while there are requests. Requests
// that arrive while the function runs lead to one more run.
type worker struct {
	do func(ctx context.Context) error
	// onResult is called with the result of each run. It may be nil.
	onResult func(error)

	mu        sync.Mutex
	requested bool
	// ended is closed when the goroutine ends. It is nil while there is none. hurry skips the delay before a run.
	ended  chan struct{}
	hurry  context.CancelFunc
	failed error
}

// settle is the delay between a request and its run, because other changes usually follow the first.
const settle = 20 * time.Millisecond

// request requests a run and returns at once.
func (w *worker) request(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requested = true
	if w.ended == nil {
		hurried, hurry := context.WithCancel(context.WithoutCancel(ctx))
		w.ended, w.hurry = make(chan struct{}), hurry
		go w.run(context.WithoutCancel(ctx), hurried.Done(), w.ended)
	}
}

// run runs the function until no request is left.
func (w *worker) run(ctx context.Context, hurried <-chan struct{}, ended chan<- struct{}) {
	defer close(ended)
	for again := true; again; {
		select {
		case <-hurried:
		case <-time.After(settle):
		}
		w.begin()
		err := w.do(ctx)
		if w.onResult != nil {
			w.onResult(err)
		}
		again = w.finish(err)
	}
}

// begin takes the requests that the next run covers.
func (w *worker) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requested = false
}

// finish records the result of a run and reports whether requests arrived during it. If none did, the goroutine ends.
func (w *worker) finish(err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = err
	if !w.requested {
		w.hurry()
		w.ended = nil
	}
	return w.requested
}

// wait makes the worker skip its delay, waits until no request is left, and returns the error of the last run.
func (w *worker) wait() error {
	w.mu.Lock()
	ended, hurry := w.ended, w.hurry
	w.mu.Unlock()
	if ended != nil {
		hurry()
		<-ended
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

// Changed notifies the proxy of a possible change of a pod or, without a UID, of a Service. It does not block: the sync
// follows soon. Without Services a sync costs almost nothing.
func (p *Proxy) Changed(ctx context.Context, uid types.UID) {
	p.mu.Lock()
	delete(p.known, uid)
	p.changed[uid] = true
	p.mu.Unlock()
	p.worker.request(ctx)
}

// Wait waits until all changes have been handled, and returns the error of the last sync.
func (p *Proxy) Wait() error { return p.worker.wait() }

// restores limits how often rules that another program removes are written again in a row. A program that removes them
// all the time must not keep the machine busy.
const restores = 5

// Restore writes the rules again whenever another program has removed some of them, for example with `nft flush
// ruleset` when a firewall is reloaded. It returns when the context ends, or with the reason why the kernel cannot be
// watched.
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
	return p.Kernel.Watch(ctx, func() { sleep.Wake(removed) })
}
