package node

import (
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/agent"
	"github.com/podctl/podctl/runtime/agent/daemon"
	"github.com/podctl/podctl/runtime/cluster/nodestatus"
	"github.com/podctl/podctl/runtime/machine"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/snapshot"
)

// nodeManager is the manager of the Node object, once it runs.
type nodeManager struct {
	atomic.Pointer[nodestatus.Manager]
}

// newest returns the newest copy of the Node; nil before its registration.
func (m *nodeManager) newest() *v1.Node {
	if manager := m.Load(); manager != nil {
		return manager.Get()
	}
	return nil
}

// addresses returns the addresses of the Node in the API. There are none before the registration.
func (m *nodeManager) addresses() []v1.NodeAddress {
	if now := m.newest(); now != nil {
		return now.Status.Addresses
	}
	return nil
}

// labels returns the labels of the Node in the API. known is false before the registration.
func (m *nodeManager) labels() (labels map[string]string, known bool) {
	if now := m.newest(); now != nil {
		return now.Labels, true
	}
	return nil, false
}

// newManager returns the manager of the Node object.
func (n *node) newManager(a *agent.Agent, runtime *nodestatus.Runtime) (*nodestatus.Manager, error) {
	heartbeat, err := nodestatus.NewHeartbeat(n.client.Separate(nodestatus.HeartbeatTimeout))
	if err != nil {
		return nil, err
	}
	identity := machine.IdentityOf("/")
	return nodestatus.NewManager(nodestatus.Settings{
		Node: nodestatus.Node{
			Name: n.NodeName, HostName: hostName(), ProviderID: n.ProviderID,
			Labels: n.member.NodeLabels, Taints: n.Taints,
		},
		Cluster: n.guard, Client: n.client.Client, Heartbeat: heartbeat,
		Random: rand.Float64, Log: n.member.Log,
		Facts:  func() nodestatus.Facts { return n.facts(a, runtime, identity) },
		Record: func(e nodestatus.Event) { record(n, e) },
		Registered: func() {
			n.started.register(n.member.Now())
			n.startSource()
			n.mirrors.manager.Wake()
		},
	}), nil
}

// facts returns the facts of the node at this moment.
func (n *node) facts(a *agent.Agent, runtime *nodestatus.Runtime, identity machine.Identity) nodestatus.Facts {
	now, state, known := n.member.Now(), runtime.State(), a.NodeFacts()
	capacity, allocatable := n.resources()
	devices, healthy := n.member.Devices.Capacity()
	maps.Copy(capacity, devices)
	maps.Copy(allocatable, healthy)
	return nodestatus.Facts{
		Addresses: nodestatus.Addresses(texts(n.NodeIPs), hostName()), Port: int32(n.Server.Port),
		Machine: identity, Version: nodestatus.Version(n.member.Version), Capacity: capacity, Allocatable: allocatable,
		Runtime: state.Facts, Pressures: known.Pressures,
		Causes: state.Causes(now, known.RelistedAt, known.ShuttingDown), Early: state.Early(now, known.RelistedAt),
	}
}

// resources returns the resources of the Node: all, and those for pods.
func (n *node) resources() (capacity, allocatable v1.ResourceList) {
	hardware := n.member.Engine.Host.Node()
	return n.member.Resources.NodeResources(snapshot.MachineOf(&hardware).Capacity)
}

// writeIdentity stores the values of the Node that pods of the API server see.
func (n *node) writeIdentity() error {
	_, allocatable := n.resources()
	return n.member.Engine.Host.Identify(&model.NodeIdentity{
		Name: n.NodeName, IPs: texts(n.NodeIPs), Allocatable: allocatable,
		ClusterDNS: texts(n.ClusterDNS), ClusterDomain: n.ClusterDomain,
	})
}

// RecordEvent sends an event of the Node.
func (n *node) RecordEvent(kind, reason, message string) { n.events.Node(kind, reason, message) }

// record sends an event of the Node.
func record(c daemon.Cluster, e nodestatus.Event) { c.RecordEvent(e.Type, e.Reason, e.Message) }

// HandleFacts reports facts of the node that have changed.
func (n *node) HandleFacts() {
	a, manager := n.agent.Load(), n.manager.Load()
	if a == nil || manager == nil {
		return // The manager reads the facts when it starts.
	}
	switch now := a.NodeFacts().ShuttingDown; {
	case n.shutdown.Swap(now) == now:
	case now:
		record(n, nodestatus.ShutdownBegun())
	default:
		record(n, nodestatus.ShutdownCanceled())
	}
	manager.Wake()
}

// texts returns addresses as texts.
func texts(ips []netip.Addr) []string {
	all := make([]string, 0, len(ips))
	for _, ip := range ips {
		all = append(all, ip.String())
	}
	return all
}

// hostName returns the name of the machine in lower case. It is empty if it cannot be read.
func hostName() string {
	name, _ := os.Hostname()
	return strings.ToLower(strings.TrimSpace(name))
}
