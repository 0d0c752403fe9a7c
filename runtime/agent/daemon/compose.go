package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"

	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/agent"
	"github.com/podctl/podctl/runtime/agent/controllers"
	"github.com/podctl/podctl/runtime/agent/eviction"
	"github.com/podctl/podctl/runtime/agent/housekeeping"
	"github.com/podctl/podctl/runtime/agent/logind"
	"github.com/podctl/podctl/runtime/agent/shutdown"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/devices"
	"github.com/podctl/podctl/runtime/machine"
	"github.com/podctl/podctl/runtime/node"
)

// daemon is an agent with its surrounding services.
type daemon struct {
	Settings

	agent  *agent.Agent
	engine *runtime.Engine
	// housekeeper removes leftovers of pods.
	housekeeper *housekeeping.Housekeeper
	// devices gives the devices of plugins to containers.
	devices *devices.Manager
	// restart receives a value when the configuration has changed.
	restart chan struct{}
	// joined is the cluster that the machine is a node of. leave ends the work of the node. They are nil without one.
	joined Cluster
	leave  func()
}

// newAgent creates the agent. The source of workloads stores the workloads and objects of the other sources.
func (d *daemon) newAgent(ctx context.Context) *agent.Agent {
	workloads := controllers.New(controllers.Settings{
		Workloads: controllers.Stored{Store: d.Workloads, Expander: d.engine.Expander(d.NodeLabels)},
		Objects:   controllers.StoredObjects{Store: d.Objects, Services: d.updateServices(ctx)},
		ByHand:    d.Applied, Now: d.Now, Log: d.Log,
	})
	setGCPercent(startPercent)
	s := agent.Settings{
		Applied:      d.Applied,
		Parallel:     d.Parallel,
		AllowKubelet: d.AllowKubelet,
		Now:          d.Now,
		Log:          d.Log,
		Workloads:    workloads,
		Listeners:    []agent.Listener{d.services(ctx, workloads.Changed), d.keepDevices},
		Started:      func() { notify(sd.SdNotifyReady) },
		Ready: func() {
			d.Log.Info("ready")
			d.devices.Settle()
			setGCPercent(gcPercent)
		},
	}
	if d.Admit {
		s.Admission = &d.Resources
	}
	if d.StopAtEnd {
		s.StopPods = d.ShutdownGrace
	}
	uids := sync.OnceValue(func() sources.UIDs { return d.staticUIDs(ctx) })
	for _, one := range d.Sources {
		s.Sources = append(s.Sources, workloads.Wrap(sources.WithUIDs(one, uids)))
	}
	s.Sources = append(s.Sources, workloads)
	if d.joined != nil {
		d.addCluster(&s)
	}
	a := agent.New(agent.World{
		Passes:  d.engine.Pods,
		Records: agent.Checkpoints{Layout: d.Layout, Ignores: workloads.Ignores},
		Prober:  d.engine.Prober,
		Client:  d.engine.Client,
		Lister:  d.engine.Lister,
		Exits:   d.engine.Exits.Watch,
		Renew:   d.engine.Host.Renew,
	}, s)
	stopping(ctx, s.StopPods)
	return a
}

// startPercent and gcPercent are the heap growth before a garbage collection: until all pods are known, and afterwards.
// Other commands let the heap grow more (package early), because they end soon.
const startPercent, gcPercent = 50, 30

// setGCPercent sets the garbage collector, unless the environment does.
func setGCPercent(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

func (d *daemon) newHousekeeper() *housekeeping.Housekeeper {
	world := housekeeping.World{Garbage: d.engine.Garbage, Images: d.engine.Images, Disk: diskOf}
	return housekeeping.New(world, housekeeping.Settings{
		MaxRecords: d.MaxRecords, Images: d.Images, Now: d.Now, Log: d.Log,
		OwnRuntime: d.engine.Client.ImageEndpoint.Socket() == node.Socket(d.Layout.NodeDir()),
	})
}

// diskOf returns the capacity and the available bytes of a directory's file system.
func diskOf(path string) (capacity, available int64, err error) {
	if path == "" {
		return 0, 0, errors.New("the runtime does not report its image directory")
	}
	fs, err := machine.FileSystemOf(path)
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", path, err)
	}
	return fs.Size, fs.Free, nil
}

// startEviction starts to evict pods while a resource runs out, and those that exceed their limits of disk space.
func (d *daemon) startEviction(ctx context.Context) {
	noPressure := !d.Evict || len(d.Eviction.Thresholds) == 0
	if noPressure {
		d.agent.Evictions().Pressure(nil)
	}
	if !d.Evict {
		return
	}
	disks := func() *eviction.Machine {
		m := &eviction.Machine{NodeDirs: d.Layout.DiskDirs(), ImageFs: d.engine.Images.FileSystem}
		if d.limitsPods() {
			m.AllPods = allPods(&d.Resources, d.engine.Host)
		}
		return m
	}
	meter := eviction.NewMeter(d.engine.Client, d.Layout, d.engine.Host.Node, disks())
	go eviction.NewLimiter(meter.LimitedUsage, d.Now, d.Log).Run(ctx, d.agent.Evictions())
	if noPressure {
		return
	}
	world := eviction.World{
		Measure:       disks().Measure,
		Usage:         meter.Usage,
		DiskUsage:     meter.DiskUsage,
		RemoveGarbage: d.housekeeper.RemoveGarbage,
		RemoveImages:  d.housekeeper.RemoveImages,
	}
	settings := eviction.Settings{Config: d.Eviction, Now: d.Now, Log: d.Log}
	if d.Resources.Enforce {
		settings.Thresholds = eviction.WithAllocatable(settings.Thresholds)
	}
	go eviction.New(world, settings).Run(ctx, d.agent.Evictions())
}

// guard makes a shutdown of the machine wait for the pods.
func (d *daemon) guard() *logind.Guard {
	settings := d.shutdown()
	return &logind.Guard{
		Within: settings.Within, Connect: logind.Connect, Resume: d.agent.ResumePods, Log: d.Log, Pause: time.Second,
		Stop: func(ctx context.Context) error {
			err := d.agent.StopPods(ctx, settings)
			if d.joined != nil {
				d.joined.AwaitStatuses(ctx)
			}
			return err
		},
	}
}

// shutdown returns the settings for a shutdown of the machine.
func (d *daemon) shutdown() shutdown.Settings {
	if c := d.Cluster; c != nil && c.ShutdownGracePeriod > 0 {
		return shutdown.Settings{Within: c.ShutdownGracePeriod, Fail: true, Critical: c.ShutdownGracePeriodCriticalPods}
	}
	return shutdown.Settings{Within: d.ShutdownGrace}
}
