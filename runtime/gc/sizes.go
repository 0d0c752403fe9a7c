package gc

import (
	"context"

	"github.com/podctl/podctl/runtime/state/statedir"
)

// addSizes sets the size of each piece. Only containerd reports the data that containers wrote. For other runtimes only
// logs count.
func (x *Collector) addSizes(ctx context.Context, l *leftovers, found []Garbage) {
	if len(found) == 0 {
		return
	}
	written := func(string) int64 { return 0 }
	if store, err := x.images.Containerd(); err == nil {
		defer store.Close() //nolint:errcheck // the connection has done its work
		written = func(id string) int64 { return store.Written(ctx, id) }
	}
	for i := range found {
		found[i].Size = x.size(l, &found[i], written)
	}
}

// size returns the size of a piece of garbage. written returns the bytes that a container wrote to its root file
// system.
func (x *Collector) size(l *leftovers, g *Garbage, written func(id string) int64) int64 {
	pod := x.layout.Pod(g.Pod.UID)
	logs := pod.Logs(g.Pod.Namespace, g.Pod.Name)
	var size int64
	switch g.Kind {
	case GarbageContainer:
		if size = written(g.ID); !l.sharesLog(g) {
			size += logs.Size(g.Name, g.Attempt)
		}
	case GarbageSandbox:
		for _, c := range l.containers {
			if c.GetPodSandboxId() == g.ID {
				size += written(c.GetId())
			}
		}
		if dir, err := logs.Dir(); err == nil && !l.checkpoint {
			size += statedir.Size(dir)
		}
	case GarbageFiles:
		return pod.DirSize()
	case GarbageLogs, GarbageEvents, GarbageFullLog, GarbageClaim:
		return g.Size
	}
	return size
}
