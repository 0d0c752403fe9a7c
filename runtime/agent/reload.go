package agent

import (
	"context"
	"time"

	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/agent/sources"
)

// rereadWait is how long Reload waits for the sources.
const rereadWait = 3 * time.Second

// ReadWorkloads reads the stored workloads again.
func (a *Agent) ReadWorkloads(ctx context.Context) error {
	if a.settings.Workloads == nil {
		return nil
	}
	return a.settings.Workloads.ReadWorkloads(ctx)
}

// Reload makes every source read its pods now, renews the facts of the machine, and checks the admission of rejected
// pods again. It waits up to rereadWait and returns the sources that are still being read.
func (a *Agent) Reload(ctx context.Context) (*api.Reloaded, error) {
	rereads, err := call(ctx, a.inbox, func() []reread {
		a.world.Renew()
		a.admitter.recheckRejected(a.now())
		begun := make([]reread, 0, len(a.rereads))
		for _, begin := range a.rereads {
			begun = append(begun, begin())
		}
		return begun
	})
	if err != nil {
		return nil, err
	}
	return &api.Reloaded{Reading: stillRead(ctx, rereads)}, context.Cause(ctx)
}

// reread is a requested read of a source. done is closed after the read.
type reread struct {
	source string
	done   chan struct{}
}

// rereads returns a function that requests a read of a source.
func rereads(ctx context.Context, s sources.Source, to chan<- chan struct{}) func() reread {
	return func() reread {
		r := reread{s.Name(), make(chan struct{})}
		go func() {
			select {
			case to <- r.done:
			case <-ctx.Done():
			}
		}()
		return r
	}
}

// stillRead waits for reads, and returns the sources whose reads have not ended in time.
func stillRead(ctx context.Context, all []reread) (names []string) {
	ctx, cancel := context.WithTimeout(ctx, rereadWait)
	defer cancel()
	for _, r := range all {
		select {
		case <-r.done:
			continue
		default:
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			names = append(names, r.source)
		}
	}
	return names
}
