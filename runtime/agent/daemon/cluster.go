package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/admission"
	"github.com/podctl/podctl/runtime/agent"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/devices"
)

// ClusterSettings make the machine a node of a cluster.
type ClusterSettings struct {
	// Kubeconfig is the path of the file with the API server and the node's credentials.
	Kubeconfig string
	// Bootstrap is the path of a kubeconfig with which the node requests its first client certificate. It may be empty.
	// RotateCertificates replaces the client certificate of Kubeconfig before it expires, also without Bootstrap.
	Bootstrap          string
	RotateCertificates bool
	// NodeName is the name of the Node. If empty, it is the host name in lower case. NodeIPs are its addresses, at most
	// one per family. If empty, it is the address of the default route.
	NodeName string
	NodeIPs  []netip.Addr
	// ClusterDNS are the DNS servers of the cluster, and ClusterDomain is the end of its names. Both may be empty.
	ClusterDNS    []netip.Addr
	ClusterDomain string
	// MirrorPods shows pods of other sources in the cluster.
	MirrorPods bool
	// Taints and ProviderID apply when the Node is created, as Settings.NodeLabels do.
	Taints     []v1.Taint
	ProviderID string
	// MemorySecrets keeps Secrets and tokens of the API server in memory only. Pods that need them wait for it.
	MemorySecrets bool
	// ShutdownGracePeriod is how long pods may take to stop before the machine shuts down. Pods of the API server then
	// fail, as with a kubelet. If zero, they run again after the boot.
	// ShutdownGracePeriodCriticalPods is the part of it for critical pods.
	ShutdownGracePeriod, ShutdownGracePeriodCriticalPods time.Duration
	// Server is where the node's server listens.
	Server ServerSettings
}

// ServerSettings configure the node's server.
type ServerSettings struct {
	// Address and Port are where it listens. An empty address means all of them.
	Address string
	Port    int
	// ReadOnlyPort serves pods, health and metrics without access control, on Address or 127.0.0.1. 0: none.
	ReadOnlyPort int
	// ClientCAFile has the certificate authorities of clients. It may be empty.
	ClientCAFile string
	// Anonymous accepts requests without credentials. AlwaysAllow allows every accepted request. If both are set and
	// there is no ClientCAFile, credentials are not checked.
	Anonymous, AlwaysAllow bool
	// TokenTTL, AllowTTL and DenyTTL are how long answers of the API server are used: about tokens, about permissions
	// that are granted, and about those that are denied.
	TokenTTL, AllowTTL, DenyTTL time.Duration
	// CertFile and KeyFile are the serving certificate. If empty, podctl signs one itself, or requests it from the API
	// server if RotateCertificates is set.
	CertFile, KeyFile  string
	RotateCertificates bool
	// TLSMinVersion is the lowest version of TLS, and TLSCipherSuites are the names of cipher suites for versions below
	// 1.3. If empty, they are version 1.2 and the suites of Go.
	TLSMinVersion   string
	TLSCipherSuites []string
	// SystemLogs serves the files in /var/log.
	SystemLogs bool
}

// NodeProgram has the functions of a program that can make the machine a node of a cluster.
type NodeProgram struct {
	// Join connects to the cluster in the settings of a member. It checks them and opens the port of the node's server,
	// but makes no request.
	Join func(ctx context.Context, m *Member) (Cluster, error)
	// Check checks the settings of Join and the files that they name. It changes nothing.
	Check func(s *Settings) error
	// Leave takes a machine out of its cluster. The error is a *NotRemovedError if it may not delete the Node.
	Leave func(ctx context.Context, s *Leaving) error
}

// Leaving are the settings of a machine that leaves its cluster.
type Leaving struct {
	// Kubeconfig is the path of a file with credentials: those of the node or of an administrator.
	Kubeconfig string
	// StateDir is the state directory of the node.
	StateDir string
	// Grace replaces the grace period of all pods, in seconds. If nil, each pod has its own.
	Grace *int64
	// Force also ends pods without a controller, and DeleteEmptyDir pods that lose an emptyDir volume.
	Force, DeleteEmptyDir bool
	// EndMembership makes the agent of the machine run without the cluster. It is called when no pod is left.
	EndMembership func(context.Context) error
	Version       string
	Now           func() time.Time
	Log           *slog.Logger
	// Note prints a step or a delay.
	Note func(format string, args ...any)
}

// NotRemovedError reports that a machine is drained, but that its Node could not be deleted.
type NotRemovedError struct{ Err error }

// Error returns the reason.
func (e *NotRemovedError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *NotRemovedError) Unwrap() error { return e.Err }

// Member is the machine that joins a cluster.
type Member struct {
	// Settings are those of the daemon.
	Settings
	Engine *runtime.Engine
	// Devices are the devices of the machine.
	Devices *devices.Manager
}

// Cluster makes an agent a node of a cluster.
type Cluster interface {
	// Source is the source of the pods of the API server.
	Source() sources.Source
	// HandleEvent is notified of what the agent does, as an agent.Listener.
	HandleEvent(ctx context.Context, e *agent.Event)
	// HandleFacts is notified when facts of the node have changed, as agent.Settings.FactsChanged.
	HandleFacts()
	// RecordEvent sends an event of the Node: its type, reason and message.
	RecordEvent(kind, reason, message string)
	// Node returns the parts of the Node in the API for admission; nil if it is unknown.
	Node() *admission.Node
	// Describe adds the cluster's part to the status of the agent. It makes no request.
	Describe(s *api.Status)
	// AwaitStatuses returns when the API server has the statuses of all pods, or soon if it does not respond.
	AwaitStatuses(ctx context.Context)
	// Pods returns the pods of the node in the API server. It makes a request.
	Pods(ctx context.Context) *api.ClusterPods
	// Run does the work of a node until the context ends: the Node object, the statuses of pods, and the node's server.
	// It then sends the last statuses, for at most 1 s. Until it returns, the agent answers. An unreachable API server
	// is not an error.
	Run(ctx context.Context, a *agent.Agent) error
}

// join joins the cluster of the settings. Without one, it does nothing.
func (d *daemon) join(ctx context.Context) (err error) {
	if d.Cluster == nil {
		return nil
	}
	if err = d.checkPorts(); err != nil {
		return err
	}
	d.joined, err = d.Node.Join(ctx, &Member{Settings: d.Settings, Engine: d.engine, Devices: d.devices})
	return err
}

// checkPorts returns an error if connections to a port of the node's server lead to a pod or a Service.
func (s *Settings) checkPorts() error {
	port := s.Cluster.Server.Port
	if err := s.checkUnpublished(fmt.Sprintf("--port %d", port), port); err != nil {
		return err
	}
	if port = s.Cluster.Server.ReadOnlyPort; port == 0 {
		return nil
	}
	return s.checkUnpublished(fmt.Sprintf("--read-only-port %d", port), port)
}

// addCluster makes the agent keep the pods of the cluster, and end after the work of the node has ended.
func (d *daemon) addCluster(s *agent.Settings) {
	s.Sources = append(s.Sources, d.joined.Source())
	s.Listeners = append(s.Listeners, d.joined.HandleEvent)
	s.FactsChanged, s.Node = d.joined.HandleFacts, d.joined.Node
	s.LastPasses, s.Ending = d.endLimit, func() { d.leave() }
}

// runCluster starts the work of the node. leave ends it, and returns after the last statuses.
func (d *daemon) runCluster(ctx context.Context) (leave func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := d.joined.Run(ctx, d.agent); err != nil {
			d.Log.Error("the node's server cannot be served", "error", err.Error())
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
