package agent

import (
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/agent/eviction"
	"github.com/podctl/podctl/runtime/agent/housekeeping"
)

// evictionOptions say when pods are evicted, with the kubelet's names and values.
type evictionOptions struct {
	on   bool
	hard string
}

func (o *evictionOptions) addTo(f *pflag.FlagSet) {
	f.BoolVar(&o.on, "eviction", true, "Evict pods while the machine runs out of memory, disk or process ids")
	f.StringVar(&o.hard, "eviction-hard", eviction.Default, "What has to be left; a signal that is not named has no threshold")
}

// thresholds reads what has to be left; nothing if no pod is evicted.
func (o *evictionOptions) thresholds() ([]eviction.Threshold, error) {
	all, err := eviction.Parse(o.hard)
	if err != nil {
		return nil, fmt.Errorf("--eviction-hard: %w", err)
	}
	if !o.on {
		return nil, nil
	}
	return all, nil
}

// evictor evicts pods of the agent when thresholds are met; nil for nobody, without any.
func evictor(sess *session.Session, engine *runtime.Engine, thresholds []eviction.Threshold, keep *housekeeping.Housekeeper, log *slog.Logger) *eviction.Manager {
	if len(thresholds) == 0 {
		return nil
	}
	layout := sess.Flags.Layout()
	machine := &eviction.Machine{NodeDirs: layout.DiskDirs(), ImageFs: engine.Images.FileSystem}
	meter := &eviction.Meter{Client: engine.Client, Layout: layout, Node: engine.Host.Node}
	return eviction.New(
		eviction.World{Look: machine.Look, Usage: meter.Measure, RemoveGarbage: keep.RemoveGarbage, RemoveImages: keep.RemoveImages},
		eviction.Settings{Thresholds: thresholds, Now: sess.IO.Now, Log: log},
	)
}
