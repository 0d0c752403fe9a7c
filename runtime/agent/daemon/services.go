package daemon

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/agent"
	"github.com/podctl/podctl/runtime/sleep"
)

// services returns a listener that updates the traffic of Services and the workloads after passes. A failure is logged
// once, and the next success.
func (d *daemon) services(ctx context.Context, workloads func(types.UID)) agent.Listener {
	failing := false
	d.engine.Proxy.Failed = func(err error) {
		switch {
		case err != nil && !failing:
			d.Log.Error("services", "error", err.Error())
		case err == nil && failing:
			d.Log.Info("the rules and names of Services are up to date again")
		}
		failing = err != nil
	}
	return func(_ context.Context, e *agent.Event) {
		if e.Kind == agent.Passed && e.Changed {
			d.engine.Proxy.Changed(ctx, e.Pod.UID)
			workloads(e.Pod.UID)
		}
	}
}

// updateServices returns a function that updates names and traffic of Services at once, so that containers that start
// next find them. Failures are logged as those of other updates are.
func (d *daemon) updateServices(ctx context.Context) func(context.Context) {
	return func(context.Context) {
		d.engine.Proxy.Changed(ctx, "")
		_ = d.engine.Proxy.Wait()
	}
}

// servicesEach is how often the rules of Services are rewritten, in case a removal was missed.
const servicesEach = time.Minute

// keepServices keeps the rules of Services in the kernel. It restores rules at once that another program removes.
func (d *daemon) keepServices(ctx context.Context) {
	go func() {
		if err := d.engine.Proxy.Restore(ctx); err != nil {
			d.Log.Warn("rules that other programs remove are restored only after a minute", "error", err.Error())
		}
	}()
	for {
		d.engine.Proxy.Changed(ctx, "")
		if sleep.For(ctx, servicesEach) != nil {
			return
		}
	}
}
