package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/admission"
	"github.com/podctl/podctl/runtime/agent/eviction"
	"github.com/podctl/podctl/runtime/agent/housekeeping"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/filelock"
	"github.com/podctl/podctl/runtime/logfile"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/sleep"
	"github.com/podctl/podctl/runtime/state"
)

// Settings are the configuration of a daemon.
type Settings struct {
	Layout state.Layout
	// Sources provide manifests, in the order of their rank. Applied also keeps pods and workloads that were applied by
	// hand.
	Sources []sources.Source
	Applied bool
	// Connect connects to the runtime. It returns cri.ErrNoEndpoint while there is none.
	Connect   func() (*runtime.Engine, error)
	Objects   *objects.Store
	Workloads *controller.Store
	// Resources has the reserved resources, and whether they limit all pods together. The resources of a Node in a
	// cluster follow from them. Admit admits pods as a kubelet with Resources does. Otherwise, every pod is admitted.
	Resources admission.Settings
	Admit     bool
	// NodeLabels are the labels of the node.
	NodeLabels map[string]string
	// Cluster makes the machine a node of a cluster. It is nil for an agent without one. Node is the program that joins
	// the cluster. It is nil in a program that cannot.
	Cluster *ClusterSettings
	Node    *NodeProgram
	// Version is the version of podctl.
	Version string
	// AllowKubelet allows a kubelet on the same runtime, AllowOtherAgent another agent.
	AllowKubelet, AllowOtherAgent bool
	// Parallel is the maximum number of passes that change something at the same time.
	Parallel int
	// Listen is the address where the metrics are also served over plain HTTP. If nil, they are not.
	Listen *Address
	// ShutdownGrace is how long pods may take to stop before the machine shuts down. If zero, a shutdown does not wait
	// for them. StopAtEnd also stops them within this time when the daemon ends.
	ShutdownGrace time.Duration
	StopAtEnd     bool
	// Logs are the limits of logs, and Pulls that of concurrent pulls, with which Connect makes the engine.
	Logs  logfile.Limits
	Pulls int
	// MaxRecords and Images limit what housekeeping keeps; see housekeeping.Settings.
	MaxRecords int
	Images     housekeeping.Thresholds
	// Evict evicts pods that exceed their limits of disk space, and pods while a resource is below one of the
	// thresholds in Eviction.
	Evict    bool
	Eviction eviction.Config
	// Changes returns the names of the settings that have changed since this process read the configuration. A signal
	// on Hangups reloads as a request does.
	Changes func(ctx context.Context) ([]string, error)
	Hangups <-chan os.Signal
	Now     func() time.Time
	Log     *slog.Logger

	// endLimit is the constant of the same name, unless a test sets another one.
	endLimit time.Duration
}

// Address is a host and a port as the user wrote them. Without a host, only this machine reaches the port.
type Address struct{ Host, Port string }

// ErrRestart is the result of a daemon that ended because its configuration has changed. The process must start again.
var ErrRestart = errors.New("restart")

// errStopped is the result of a daemon that was stopped while it waited for a runtime.
var errStopped = errors.New("stopped")

// Run keeps pods until the context ends, or the configuration has changed. Only one daemon can run per state directory.
func Run(ctx context.Context, s Settings) (err error) {
	if err = s.Layout.Prepare(); err != nil {
		return err
	}
	lock, err := s.Layout.Locks().Agent(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	public, err := s.listener(ctx)
	if err != nil {
		return err
	}
	if err = errors.Join(s.Layout.Locks().Sweep(ctx), s.Layout.DigestKey().Sweep()); err != nil {
		s.Log.Warn("cannot remove files that a killed process left", "error", err.Error())
	}
	engine, err := s.connect(ctx)
	if errors.Is(err, errStopped) {
		return nil
	}
	if err != nil {
		return err
	}
	release, err := s.lockRuntime(ctx, engine.Client.Endpoint.Address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	engine.Observer.Conditions = nil // The agent does not ask itself. A cluster sets it.
	s.endLimit = cmp.Or(s.endLimit, endLimit)
	d := &daemon{Settings: s, engine: engine, restart: make(chan struct{}, 1)}
	d.devices = d.newDevices()
	engine.UseDevices(d.devices)
	if err = d.join(ctx); err != nil {
		return err
	}
	d.housekeeper = d.newHousekeeper()
	d.agent = d.newAgent(ctx)
	return d.serve(ctx, public)
}

// Check returns why Run would end at once with these settings: a runtime, an address or a file that cannot be used. It
// changes nothing, and a daemon may run. It does not notice that another program uses a port.
func (s *Settings) Check(ctx context.Context) error {
	public, err := s.listener(ctx)
	switch {
	case public != nil:
		err = public.Close()
	case errors.Is(err, unix.EADDRINUSE):
		err = nil // The running daemon may use it.
	}
	if err != nil {
		return err
	}
	if _, err = s.Connect(); err != nil && !errors.Is(err, cri.ErrNoEndpoint) {
		return err
	}
	if s.Cluster == nil {
		return nil
	}
	if err = s.checkPorts(); err != nil {
		return err
	}
	return s.Node.Check(s)
}

// listener opens the port that serves metrics. It returns nil if there is none.
func (s *Settings) listener(ctx context.Context) (net.Listener, error) {
	if s.Listen == nil {
		return nil, nil // none was requested
	}
	name := net.JoinHostPort(s.Listen.Host, s.Listen.Port)
	address := net.JoinHostPort(cmp.Or(s.Listen.Host, "127.0.0.1"), s.Listen.Port)
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--listen %s: %w", name, err)
	}
	number := l.Addr().(*net.TCPAddr).Port // it listens on TCP
	if err = s.checkUnpublished("--listen "+name, number); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// checkUnpublished returns an error if connections to a TCP port of this machine lead to a pod or a Service. setting is
// the setting with the port.
func (s *Settings) checkUnpublished(setting string, number int) error {
	port := podspec.Port{Protocol: v1.ProtocolTCP, Number: int32(number)} // 16 bits
	if by := s.Objects.Publisher(port); by != "" {
		return fmt.Errorf("%s: connections to this port lead to %s: choose another port", setting, by)
	}
	return nil
}

// connect connects to the runtime, and waits for one to appear.
func (s *Settings) connect(ctx context.Context) (*runtime.Engine, error) {
	for logged := false; ; logged = true {
		engine, err := s.Connect()
		if !errors.Is(err, cri.ErrNoEndpoint) {
			return engine, err
		}
		if !logged {
			s.Log.Warn("waiting for a container runtime", "error", err.Error())
		}
		if sleep.For(ctx, time.Second) != nil {
			return nil, errStopped
		}
	}
}

// lockRuntime locks the runtime for this agent. release unlocks it. An agent of another state directory does not know
// the pods of this one, so each would undo the other's work.
func (s *Settings) lockRuntime(ctx context.Context, endpoint string) (release func() error, err error) {
	lock, err := s.Layout.Locks().Runtime(ctx, state.RuntimeLockDir, endpoint)
	locked := (*filelock.LockedError)(nil)
	switch {
	case err == nil:
		return lock.Unlock, nil
	case errors.As(err, &locked) && !s.AllowOtherAgent:
		return nil, fmt.Errorf("another agent, %s, keeps pods on %s, and each would undo the work of the other: "+
			"stop it, or use another runtime (podctl node up); --allow-other-agent permits both",
			locked.Holder, endpoint)
	case locked != nil:
		s.Log.Warn("another agent keeps pods on the same runtime", "agent", locked.Holder, "runtime", endpoint)
	default:
		s.Log.Warn("cannot check whether another agent uses the runtime", "error", err.Error())
	}
	return func() error { return nil }, nil
}
