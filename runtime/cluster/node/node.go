package node

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/agent"
	"github.com/podctl/podctl/runtime/agent/daemon"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/cluster"
	"github.com/podctl/podctl/runtime/cluster/apierror"
	"github.com/podctl/podctl/runtime/cluster/apievents"
	"github.com/podctl/podctl/runtime/cluster/guard"
	"github.com/podctl/podctl/runtime/cluster/nodemetrics"
	"github.com/podctl/podctl/runtime/cluster/nodestatus"
	"github.com/podctl/podctl/runtime/cluster/pods"
	"github.com/podctl/podctl/runtime/cluster/references"
	"github.com/podctl/podctl/runtime/cluster/statuses"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/kubeletapi"
	"github.com/podctl/podctl/runtime/kubeletapi/access"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
)

// node is an agent's membership in a cluster.
type node struct {
	*daemon.ClusterSettings

	member  *daemon.Member
	records records

	client     *cluster.Client
	guard      *guard.Guard
	source     *pods.Source
	statuses   *statuses.Manager
	events     *apievents.Sender
	references *references.References
	mirrors    *mirrorPods
	metrics    *nodemetrics.Metrics
	started    started
	// ports are those of the node's server.
	ports        ports
	certificates nodeCertificates
	// agent and manager are the agent and the manager of the Node object, once they run.
	agent   atomic.Pointer[agent.Agent]
	manager nodeManager
	// shutdown reports whether the last known facts had a shutdown.
	shutdown atomic.Bool
	// registered is closed once the Node has been registered in the lifetime of the state directory.
	registered  chan struct{}
	startSource func()
}

// Program returns the functions of the program that makes a machine a node.
func Program() *daemon.NodeProgram {
	return &daemon.NodeProgram{Join: Join, Check: Check, Leave: Leave}
}

// Join connects a machine to a cluster. It checks the settings and the kubeconfig, stores the identity of the node, and
// opens the port of its server, but makes no request.
func Join(ctx context.Context, given *daemon.Member) (daemon.Cluster, error) {
	m := *given
	s, connection, err := connectionOf(&m.Settings)
	if err != nil {
		return nil, err
	}
	m.Cluster = s
	client, err := cluster.Connect(connection)
	if err != nil {
		return nil, err
	}
	n, err := newNode(ctx, &m, client)
	if err != nil {
		return nil, err
	}
	if connection.Joined {
		n.startSource()
	}
	return n, n.listen(ctx)
}

// newNode connects the parts of a node.
func newNode(ctx context.Context, m *daemon.Member, client *cluster.Client) (*node, error) {
	n := &node{
		ClusterSettings: m.Cluster, member: m, records: records{m.Layout, m.Log}, client: client,
		registered: make(chan struct{}),
	}
	n.startSource = sync.OnceFunc(func() { close(n.registered) })
	n.metrics = newMetrics(n)
	n.metrics.CountRequests()
	n.guard = guard.New(guard.Settings{
		Client: client.Core, Health: client.Health.State, Node: n.NodeName, StateDir: m.Layout.Root, Log: m.Log,
	})
	n.source = pods.New(pods.Settings{
		Name: podspec.OwnerAPI, Client: client.Core, Node: n.NodeName,
		Load: load.FromAPI, Known: n.records.has, Registered: n.registered, Confirm: n.guard.Check,
		Changed: n.changed, Listed: n.listed, Log: m.Log,
	})
	n.mirrors = newMirrorPods(n)
	n.statuses = statuses.New(statuses.Settings{
		Pods:   &shownPods{node: n, mirrors: n.mirrors, lister: m.Engine.Lister, health: m.Devices.AddHealth},
		Copies: n.source, Sender: statuses.NewClient(client.Core), Confirm: confirmStatuses(n.guard),
		Sent: n.metrics.StatusSent, Log: m.Log,
	})
	copies := objects.Copies{Dir: state.ClusterObjects(m.Layout), MemorySecrets: n.MemorySecrets}
	if err := hideSecrets(ctx, m, copies); err != nil {
		return nil, err
	}
	n.references = n.newReferences(ctx, copies)
	events, err := apievents.NewClient(client.Config)
	if err != nil {
		return nil, err
	}
	n.events = apievents.New(apievents.Settings{
		Client: events, Check: n.checkEvents, Confirm: n.guard.Confirm, Node: n.NodeName,
		Random: rand.Float64, Log: m.Log,
	})
	client.Health.OnReturn(n.events.Wake)
	client.Health.OnReturn(n.mirrors.manager.Retry)
	n.connectEngine()
	return n, n.writeIdentity()
}

// connectEngine lets passes use what the node knows, and report their events.
func (n *node) connectEngine() {
	engine := n.member.Engine
	engine.UseCluster(n.references)
	engine.ObserveEvents(n.handlePodEvents)
	engine.Observer.Conditions = func(_ context.Context, uid types.UID) []v1.PodCondition {
		return conditionsOf(n.source.Get(uid))
	}
	engine.Observer.Reported = n.mirrors.reported
}

// checkEvents returns nil if events can be sent now, and the reason otherwise.
func (n *node) checkEvents() error {
	return cmp.Or(n.client.Health.Check(), n.guard.Other())
}

// confirmStatuses returns a function whose error means that the API server is not that of this node's cluster. If
// another one was found, it makes no request, because there may be many pods. The list of the pods logs the error, and
// finds out when that ends.
func confirmStatuses(g *guard.Guard) func(context.Context) error {
	return func(ctx context.Context) error {
		err := g.Other()
		if err == nil {
			err = g.Confirm(ctx)
		}
		if err != nil {
			return &apierror.LoggedError{Err: err}
		}
		return nil
	}
}

// handlePodEvents sends events of pods that the API server has.
func (n *node) handlePodEvents(ref model.PodRef, events []state.PodEvent) {
	if pod := n.mirrors.eventPod(ref); pod != nil {
		n.events.Pod(pod, events)
	}
}

// Source returns the source of the pods of the API server.
func (n *node) Source() sources.Source { return n.source }

// HandleEvent marks the pod of an event: its status may have changed. The objects of a pod that has ended are not
// watched any longer.
func (n *node) HandleEvent(_ context.Context, e *agent.Event) {
	n.mirrors.handleEvent(e)
	if uid := n.mirrors.apiUID(e.Pod); isPreparation(e) {
		n.statuses.MarkLater(uid)
	} else {
		n.statuses.Mark(uid)
	}
	switch {
	case e.Kind == agent.Ended:
		n.references.Forget(e.Pod.UID)
	case e.Kind == agent.Passed && e.Changed:
		n.references.NotePass(e.Pod.UID)
	case e.Kind == agent.Stepped:
		countVolume(n, e)
	}
}

// isPreparation reports whether an event is one of the steps before the first start of a container, which soon follows.
func isPreparation(e *agent.Event) bool {
	if e.Kind != agent.Stepped || e.Step.Step == nil || e.Step.Kind == executor.StepFailed {
		return false
	}
	switch s := e.Step.Step; s.Kind { //nolint:exhaustive // the others change what runs
	case plan.CreateCgroup, plan.PrepareVolume, plan.PullImage, plan.CheckContainer, plan.RunSandbox:
		return true
	case plan.StartContainer:
		return e.Step.Kind == executor.StepStarted && s.Attempt == 0
	default:
		return false
	}
}

// errStarting is the error of a request before the agent runs.
var errStarting = errors.New("the agent is starting")

// listed handles a list of the pods of the API server.
func (n *node) listed() {
	n.statuses.Wake()
	n.mirrors.manager.Retry()
}

// changed handles a changed copy of a pod. A pod that becomes rejected gets an event.
func (n *node) changed(uid types.UID) {
	n.statuses.Changed(uid)
	if n.mirrors.changed(uid) {
		n.statuses.Mark(uid)
	}
	if r := n.source.NewlyRejected(uid); r != nil {
		n.statuses.Mark(uid)
		now, reason := n.member.Now(), r.Status().Status.Reason
		event := state.PodEvent{
			Type: state.Warning, Reason: reason, Message: r.Message, Count: 1, First: now, Last: now,
		}
		n.events.Pod(r.Pod, []state.PodEvent{event})
	}
}

// Run does the work of the node until the context ends.
func (n *node) Run(ctx context.Context, a *agent.Agent) error {
	n.agent.Store(a)
	a.Metrics().ShowMirrors(func() int { return len(n.source.Mirrors()) })
	n.started.connect(n.member.Now())
	server := kubeletapi.New(servedPods{a, n.source.Finished}, n.member.Engine.Client, kubeletapi.Settings{
		NodeName: n.NodeName, Access: n.ports.access, Certificates: n.certificates.serve, Protocol: n.ports.protocol,
		Configuration: n.configuration, Measures: newMeter(n, a), Metrics: pages{n.metrics, a.Metrics()},
		SystemLogs: n.Server.SystemLogs, Now: n.member.Now, Log: n.member.Log,
	})
	runtime := &nodestatus.Runtime{Client: n.member.Engine.Client, Images: n.member.Engine.Client.Images}
	manager, err := n.newManager(a, runtime)
	if err != nil {
		return err
	}
	n.manager.Store(manager)
	runtime.Changed = manager.Wake
	var parts sync.WaitGroup
	defer parts.Wait()
	parts.Go(func() { runtime.Run(ctx) })
	parts.Go(func() { manager.Run(ctx) })
	parts.Go(func() { n.statuses.Run(ctx) })
	parts.Go(func() { n.events.Run(ctx) })
	parts.Go(func() { n.references.Run(ctx) })
	parts.Go(func() { n.mirrors.manager.Run(ctx) })
	parts.Go(func() { n.runCollections(ctx, a) })
	parts.Go(func() { n.certificates.run(ctx) })
	if !n.member.AllowKubelet {
		parts.Go(func() { newOrphans(n, a).run(ctx) })
	}
	parts.Go(func() { servePodResources(ctx, n, a) })
	return n.ports.serve(ctx, server)
}

// listen reads the serving certificate and opens the ports of the node's server.
func (n *node) listen(ctx context.Context) (err error) {
	if err = n.openCertificates(); err != nil { //nolint:contextcheck // it starts nothing
		return err
	}
	reviews := countedReviews{access.NewReviews(n.client.Client), n.metrics, n.member.Now}
	n.ports, err = openPorts(ctx, n.ClusterSettings, reviews, n.member.Log)
	return err
}
