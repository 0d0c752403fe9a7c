package agent

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/cri"
)

// proxied has the traffic of Services follow what the agent finds of pods, and tells the next one. A failure is written once, until
// it works again.
func proxied(ctx context.Context, engine *runtime.Engine, log *slog.Logger, next func(types.UID)) func(types.UID) {
	failing := false
	engine.Proxy.Failed = func(err error) {
		switch {
		case err != nil && !failing:
			log.Error("services", "error", err.Error())
		case err == nil && failing:
			log.Info("the traffic of Services finds its way again")
		}
		failing = err != nil
	}
	return func(uid types.UID) {
		engine.Proxy.Changed(ctx, uid)
		if next != nil {
			next(uid)
		}
	}
}

// followed has names and traffic of Services follow at once, so that containers that start next find them. Why it failed is written
// as that of other looks is.
func followed(ctx context.Context, engine *runtime.Engine) func(context.Context) {
	return func(context.Context) {
		engine.Proxy.Changed(ctx, "")
		_ = engine.Proxy.Wait()
	}
}

// servicesEach is how often the rules of Services are written again, in case a removal was missed.
const servicesEach = time.Minute

// keepServices keeps the rules of Services in the kernel. It restores at once what another program removes.
func keepServices(ctx context.Context, engine *runtime.Engine, log *slog.Logger) {
	go func() {
		if err := engine.Proxy.Restore(ctx); err != nil {
			log.Warn("rules that other programs remove are restored only after a minute", "error", err.Error())
		}
	}()
	for {
		engine.Proxy.Changed(ctx, "")
		if cri.Sleep(ctx, servicesEach) != nil {
			return
		}
	}
}
