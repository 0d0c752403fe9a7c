package runtime

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/events"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/gc"
	"github.com/podctl/podctl/runtime/images"
	"github.com/podctl/podctl/runtime/logfile"
	"github.com/podctl/podctl/runtime/machine"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/observe"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/probe"
	"github.com/podctl/podctl/runtime/proxy"
	"github.com/podctl/podctl/runtime/session"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/syncpod"
	"github.com/podctl/podctl/runtime/wait"
)

// Engine combines one container runtime with podctl's state directory and the packages that work on them. It only
// delegates.
type Engine struct {
	Client *cri.Client
	// Host has the facts of the machine and the runtime, Digests the key of digests.
	Host    *observe.Host
	Digests *observe.Digests
	// Observer observes one pod, Lister many.
	Observer *observe.Observer
	Lister   *observe.Lister
	// Exits reports ended processes before the runtime's records show them.
	Exits *observe.Exits
	// Pods makes passes over pods, Waiter waits for them, Prober runs their probes.
	Pods   *syncpod.Syncer
	Waiter *wait.Waiter
	Prober *probe.Prober
	// Sessions accesses running pods.
	Sessions *session.Sessions
	Images   *images.Store
	// Garbage finds podctl's leftovers.
	Garbage *gc.Collector
	// Objects are the stored ConfigMaps, Secrets, claims and Services.
	Objects *objects.Store
	// Proxy forwards the traffic of Services to pods.
	Proxy *proxy.Proxy

	layout state.Layout
	now    func() time.Time
	steps  *executor.Executor
}

// Settings are the settings of an engine.
type Settings struct {
	Layout state.Layout
	// Sources are where facts of the machine come from.
	observe.Sources
	// Now is the clock.
	Now func() time.Time
	// Cgroups creates the pods' own cgroups; nil means those of the machine.
	Cgroups cgroup.Groups
	// LockTimeout is how long to wait for another process with the lock of the same pod; zero means as long as the
	// context lasts.
	LockTimeout time.Duration
	// Waiting is called when such a wait takes long, and for other waits that may have no end; it may be nil.
	Waiting func(text string)
	// Objects are the stored objects; nil means those of the layout.
	Objects *objects.Store
	// Logs are the limits of the logs of containers.
	Logs logfile.Limits
	// Pulls is the maximum number of concurrent image pulls; zero means no limit.
	Pulls int
	// Reserved are ports of the node that no pod or Service can use.
	Reserved []machine.Reserved
	// Devices gives devices of plugins to containers; nil for none.
	Devices model.DeviceManager
	// Kernel gets the traffic rules of Services; nil for a node on which the names of Services lead directly to pods.
	Kernel proxy.Kernel
}

// NewEngine returns an Engine for a connection and settings.
func NewEngine(client *cri.Client, s Settings) *Engine {
	if s.Cgroups == nil {
		s.Cgroups = cgroup.Machine{}
	}
	if s.Waiting == nil {
		s.Waiting = func(string) {}
	}
	locker := &state.Locker{Layout: s.Layout, Timeout: s.LockTimeout, Waiting: s.Waiting}
	if s.Objects == nil {
		s.Objects = objects.New(locker, s.Now)
		s.Objects.Owner = func(p podspec.Port) string { return machine.Owner(p, s.Reserved) }
	}
	w := observe.World{
		Client:   client,
		Layout:   s.Layout,
		Cgroups:  s.Cgroups,
		Now:      s.Now,
		Objects:  s.Objects,
		Cluster:  objects.Copies{Dir: state.ClusterObjects(s.Layout)},
		Logs:     s.Logs,
		Pulls:    s.Pulls,
		Exits:    observe.NewExits(client),
		Reserved: s.Reserved,
		Devices:  s.Devices,
	}
	e := &Engine{
		Client:  client,
		layout:  s.Layout,
		now:     s.Now,
		Exits:   w.Exits,
		Objects: s.Objects,
		Host:    observe.NewHost(client, s.Layout, s.Sources),
		Digests: observe.NewDigests(s.Layout),
	}
	e.Observer = observe.New(w, e.Host, e.Digests)
	e.Lister = observe.NewLister(e.Observer)
	e.Images = images.NewStore(client, s.Layout)
	e.Garbage = gc.New(w, e.Host, e.Images)
	e.Proxy = proxy.New(proxy.World{Locker: locker, Services: s.Objects, Lister: e.Lister, Kernel: s.Kernel})
	e.Prober = probe.NewProber(client, s.Layout, e.Observer, locker)
	steps := executor.New(w, e.Host, e.Garbage)
	e.steps, steps.Held = steps, e.Prober.Held()
	e.Pods = syncpod.New(locker, e.Digests, e.Observer, steps)
	e.Waiter = wait.New(w, e.Observer, e.Pods, e.Prober, s.Waiting)
	e.Pods.Changed, e.Prober.Changed = e.Proxy.Changed, e.Proxy.Changed
	e.Pods.Guard = e.Proxy.Guard
	e.Sessions = session.New(client, e.Observer)
	return e
}

// ObserveEvents notifies a listener of each event of a pod that this process records. It is called before the first
// pass.
func (e *Engine) ObserveEvents(to events.Listener) { e.steps.Recorded, e.Prober.Recorded = to, to }

// UseCluster replaces the objects for pods of the API server, which are the copies that the agent of a node keeps. It
// is called before the first pass.
func (e *Engine) UseCluster(p objects.Provider) { e.Observer.UseCluster(p) }

// UseDevices replaces the manager of devices. It is called before the first pass.
func (e *Engine) UseDevices(m model.DeviceManager) {
	e.Observer.UseDevices(m)
	e.steps.Devices = m
}

// Plan decides what a pass would do to a pod. It changes nothing.
func (e *Engine) Plan(ctx context.Context, desired *podspec.Desired, opts plan.Options) (*plan.Plan, error) {
	return e.Pods.Plan(ctx, desired, opts)
}

// Expander returns an Expander for the pods of workloads on a node with additional labels.
func (e *Engine) Expander(labels map[string]string) *controller.Expander {
	return &controller.Expander{
		Layout: e.layout, Objects: e.Objects, Lister: e.Lister, Now: e.now,
		Unfit: func(pod *v1.Pod) string { return e.Host.Unfit(pod, labels) },
	}
}

// List returns pods with their status. See observe.Lister.
func (e *Engine) List(ctx context.Context, pods []*podspec.Desired) ([]*v1.Pod, error) {
	return e.Lister.List(ctx, pods)
}
