package gc

import (
	"context"

	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/state/podlogs"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// addSizes fills in how much each piece takes. What containers have written only
// containerd tells; of others their logs are counted alone.
func (x *Collector) addSizes(ctx context.Context, l *leftovers, found []Garbage) {
	if len(found) == 0 {
		return
	}
	sizes := sizes{layout: x.layout, of: l, written: func(string) int64 { return 0 }}
	if store, err := x.images.Containerd(); err == nil {
		defer store.Close() //nolint:errcheck // the connection has done its work
		sizes.written = func(id string) int64 { return store.Written(ctx, id) }
	}
	for i := range found {
		found[i].Size = sizes.size(&found[i])
	}
}

// sizes tells how much the leftovers of a pod take.
type sizes struct {
	layout state.Layout
	of     *leftovers
	// written is what a container has written to its root file system, in bytes.
	written func(id string) int64
}

func (s *sizes) size(g *Garbage) int64 {
	switch g.Kind {
	case GarbageContainer:
		return s.container(g)
	case GarbageSandbox:
		return s.sandbox(g)
	case GarbageFiles:
		return s.layout.Pod(g.Pod.UID).DirSize()
	case GarbageLogs, GarbageEvents, GarbageFullLog, GarbageClaim:
	}
	return g.Size
}

func (s *sizes) logs(g *Garbage) podlogs.Logs {
	return s.layout.Pod(g.Pod.UID).Logs(g.Pod.Namespace, g.Pod.Name)
}

func (s *sizes) container(g *Garbage) int64 {
	if s.of.sharesLog(g) {
		return s.written(g.ID)
	}
	return s.written(g.ID) + s.logs(g).Size(g.Name, g.Attempt)
}

func (s *sizes) sandbox(g *Garbage) int64 {
	sum := int64(0)
	for _, c := range s.of.containers {
		if c.GetPodSandboxId() == g.ID {
			sum += s.written(c.GetId())
		}
	}
	if !s.of.checkpoint {
		if logs, err := s.logs(g).Dir(); err == nil {
			sum += statedir.Size(logs)
		}
	}
	return sum
}
