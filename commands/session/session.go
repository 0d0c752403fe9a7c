package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/podctl/podctl/commands/config"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/logfile"
	"github.com/podctl/podctl/runtime/machine"
	"github.com/podctl/podctl/runtime/netfilter"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/observe"
	"github.com/podctl/podctl/runtime/proxy"
	"github.com/podctl/podctl/runtime/state"
)

// Session is the state of one podctl command.
type Session struct {
	Flags *config.Flags
	IO    *terminal.IO
	// Logs are the limits for container logs. They must be set before the first call of Engine.
	Logs logfile.Limits
	// Waiting is called when a pass waits, for example for a pod's lock of another process; nil prints the text. It
	// must be set before the engine is used.
	Waiting func(text string)
	// Pulls is the number of concurrent image pulls; zero means no limit. It must be set before the first call of
	// Engine.
	Pulls int
	// PodDefaults are the defaults for new pods; zero means those of the configuration. They must be set before the
	// first call of Engine.
	PodDefaults config.PodDefaults

	client *cri.Client
	engine *runtime.Engine
	// objects is created at first use.
	objects *objects.Store
	// workloads is created at first use.
	workloads *controller.Store

	// mu protects loaded, the pods of manifests that were read, and redactable, which has the redactor for their
	// Secrets and for those of all checkpoints and objects.
	mu         sync.Mutex
	loaded     []*podspec.Desired
	redactable redactable
	// known is what the agent knows about pods in the API server.
	known apiPods
}

// New returns the session of an environment. Its flags are filled later, before a command runs.
func New(env *terminal.Env) *Session {
	return &Session{Flags: &config.Flags{}, IO: terminal.NewIO(env)}
}

// Engine finds the runtime and prepares the connection, once.
func (s *Session) Engine() (*runtime.Engine, error) {
	if s.engine != nil {
		return s.engine, nil
	}
	endpoint, err := cri.Discover(s.Flags.EndpointSources(s.IO.Getenv))
	if err != nil {
		return nil, err
	}
	client, err := cri.Connect(endpoint, s.Flags.ImageEndpoint, s.Flags.RequestTimeout)
	if err != nil {
		return nil, err
	}
	client.Log = s.logger()
	client.Starting = func(text string) { s.IO.NoteOnce("%s", text) }
	s.client = client
	defaults := cmp.Or(s.PodDefaults, s.Flags.PodDefaults())
	s.engine = runtime.NewEngine(client, runtime.Settings{
		Layout: s.Flags.Layout(), Now: s.IO.Now,
		Sources: observe.Sources{
			CgroupRoot: s.Flags.CgroupRoot, PodPIDs: defaults.PIDs, SeccompDefault: defaults.Seccomp,
			Images: defaults.Images,
		},
		LockTimeout: s.Flags.LockTimeout, Waiting: s.waiting, Objects: s.Objects(), Logs: s.Logs, Pulls: s.Pulls,
		Reserved: s.Flags.ReservedPorts(), Kernel: kernelOf(s.Flags),
		Devices: s.Agent(),
	})
	s.engine.Observer.Conditions = s.conditions
	return s.engine, nil
}

// kernelOf returns the writer of the rules for Service traffic; nil if podctl must not write any.
func kernelOf(f *config.Flags) proxy.Kernel {
	if f.ProxyMode == config.ProxyNone {
		return nil
	}
	return netfilter.Kernel{}
}

// SyncServices updates rules and names after a change of Services.
func (s *Session) SyncServices(ctx context.Context) error {
	engine, err := s.Engine()
	if err != nil {
		return err
	}
	return engine.Proxy.Sync(ctx)
}

// WaitForServices waits until the updates for Services after a command are done. It costs nothing if there are no
// Services. A failure is only a note, because the command itself has succeeded.
func (s *Session) WaitForServices() {
	if s.engine == nil {
		return
	}
	if err := s.engine.Proxy.Wait(); err != nil {
		s.IO.NoteOnce("note: Services: %s", s.ErrorText(err))
	}
}

// waiting reports why the command waits.
func (s *Session) waiting(text string) {
	if s.Waiting != nil {
		s.Waiting(text)
		return
	}
	s.IO.NoteOnce("%s", text)
}

// Objects returns the store of ConfigMaps, Secrets, claims and Services. It needs no runtime.
func (s *Session) Objects() *objects.Store {
	if s.objects == nil {
		s.objects = objects.New(s.locker(), s.IO.Now)
		s.objects.Owner = func(p podspec.Port) string { return machine.Owner(p, s.Flags.ReservedPorts()) }
	}
	return s.objects
}

// Workloads returns the store of Deployments, Jobs and other objects that have pods. It needs no runtime.
func (s *Session) Workloads() *controller.Store {
	if s.workloads == nil {
		s.workloads = controller.NewStore(s.locker(), s.IO.Now)
	}
	return s.workloads
}

// locker returns the locker for stored objects and workloads, with the timeout of the command line.
func (s *Session) locker() *state.Locker {
	return &state.Locker{Layout: s.Flags.Layout(), Timeout: s.Flags.LockTimeout, Waiting: s.waiting}
}

// Manifests returns the reader for the manifests of the command line. Objects without a namespace get that of the
// command.
func (s *Session) Manifests(recursive bool) input.Reader {
	return input.Reader{Stdin: s.IO.In, Namespace: s.Flags.Namespace, Recursive: recursive}
}

// Loader returns a loader that reads manifests with Manifests. Pods get missing objects from the files of ConfigMaps
// and Secrets, which count as part of the manifests, and from the stored objects.
func (s *Session) Loader(recursive bool, configMaps ...string) load.Loader {
	return load.Loader{Reader: s.Manifests(recursive), ConfigMaps: configMaps, Stored: s.Objects().Loaded}
}

// Client returns the connection of the engine, for queries about the runtime itself. It is nil with an error.
func (s *Session) Client() (*cri.Client, error) {
	_, err := s.Engine()
	return s.client, err
}

// Prefetch connects to the runtime while the manifests are read. It returns nil if that fails, so that errors of the
// manifests are reported before those of the runtime.
func (s *Session) Prefetch(ctx context.Context) *runtime.Engine {
	engine, err := s.Engine()
	if err != nil {
		return nil
	}
	go engine.Host.Prefetch(ctx)
	return engine
}

// At returns a session with another runtime. The caller must close it.
func (s *Session) At(endpoint, origin string) *Session {
	flags := *s.Flags
	flags.RuntimeEndpoint = endpoint
	flags.Settings = map[string]config.Setting{config.EndpointFlag: {Origin: origin}}
	return &Session{Flags: &flags, IO: s.IO}
}

// Close ends the connection.
func (s *Session) Close() error {
	if s.client == nil {
		return nil
	}
	return s.client.Close()
}

// logger returns the logger for runtime calls; nil without -v.
func (s *Session) logger() *slog.Logger {
	if !s.Flags.Verbose {
		return nil
	}
	options := &slog.HandlerOptions{Level: slog.LevelDebug}
	if s.Flags.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(s.IO.Err, options))
	}
	return slog.New(slog.NewTextHandler(s.IO.Err, options))
}

// WithTimeout sets the timeout of a command. The cause of the context distinguishes the timeout from an interrupt.
func WithTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("gave up after %s (--timeout)", timeout))
}

// WatchEnded returns the result of a command that runs until its timeout or an interrupt.
func WatchEnded(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return exit.With(exit.Interrupted)
	}
	return nil
}
