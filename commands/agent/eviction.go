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

// thresholds reads what has to be left.
func (o *evictionOptions) thresholds() ([]eviction.Threshold, error) {
	all, err := eviction.Parse(o.hard)
	if err != nil {
		return nil, fmt.Errorf("--eviction-hard: %w", err)
	}
	return all, nil
}

// manager evicts pods of the agent; nil for nobody.
func (o *evictionOptions) manager(sess *session.Session, engine *runtime.Engine, keep *housekeeping.Housekeeper, log *slog.Logger) *eviction.Manager {
	all, err := o.thresholds()
	if !o.on || err != nil || len(all) == 0 {
		return nil
	}
	layout := sess.Flags.Layout()
	machine := &eviction.Machine{NodeDirs: layout.DiskDirs(), ImageFs: engine.Images.FileSystem}
	meter := &eviction.Meter{Client: engine.Client, Layout: layout, Node: engine.Host.Node}
	return eviction.New(
		eviction.World{Look: machine.Look, Usage: meter.Measure, RemoveGarbage: keep.RemoveGarbage, RemoveImages: keep.RemoveImages},
		eviction.Settings{Thresholds: all, Now: sess.IO.Now, Log: log},
	)
}
