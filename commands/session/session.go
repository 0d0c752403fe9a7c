package session

import (
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

// Session is one call of podctl.
type Session struct {
	Flags *config.Flags
	IO    *terminal.IO
	// Logs are the limits of the logs of containers. They are set before the engine is asked for.
	Logs logfile.Limits
	// Waiting is called with what a pass waits for, for example another process that has the pod's lock; nil prints it. It is set
	// before the engine is used.
	Waiting func(text string)
	// Pulls is how many images are pulled at the same time; zero means any number. It is set before
	// the engine is asked for.
	Pulls int

	client *cri.Client
	engine *runtime.Engine
	// objects is made when it is first asked for.
	objects *objects.Store
	// workloads is made when it is first asked for.
	workloads *controller.Store

	// loaded are the pods of manifests that were read; redactable has the redactor of their Secrets, and of those of
	// all checkpoints and objects.
	mu         sync.Mutex
	loaded     []*podspec.Desired
	redactable redactable
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
	s.engine = runtime.NewEngine(client, runtime.Settings{
		Layout: s.Flags.Layout(), Sources: observe.Sources{CgroupRoot: s.Flags.CgroupRoot}, Now: s.IO.Now,
		LockTimeout: s.Flags.LockTimeout, Waiting: s.waiting, Objects: s.Objects(), Logs: s.Logs, Pulls: s.Pulls,
		Reserved: s.Flags.ReservedPorts(), Kernel: s.kernel(),
	})
	return s.engine, nil
}

// kernel gets the rules of the traffic of Services; nil if podctl must not write any.
func (s *Session) kernel() proxy.Kernel {
	if s.Flags.ProxyMode == config.ProxyNone {
		return nil
	}
	return netfilter.Kernel{}
}

// SyncServices has rules and names follow what was changed of Services.
func (s *Session) SyncServices(ctx context.Context) error {
	engine, err := s.Engine()
	if err != nil {
		return err
	}
	return engine.Proxy.Sync(ctx)
}

// Settle waits until what follows from a command for Services is done. It costs nothing where there are none. The command itself has
// done what it was to do, so that a failure is a note.
func (s *Session) Settle() {
	if s.engine == nil {
		return
	}
	if err := s.engine.Proxy.Wait(); err != nil {
		s.IO.NoteOnce("note: Services: %s", s.ErrorText(err))
	}
}

// waiting reports what the command waits for.
func (s *Session) waiting(text string) {
	if s.Waiting != nil {
		s.Waiting(text)
		return
	}
	s.IO.NoteOnce("%s", text)
}

// Objects are the stored ConfigMaps, Secrets and claims. No runtime is
// needed for them.
func (s *Session) Objects() *objects.Store {
	if s.objects == nil {
		s.objects = objects.New(&state.Locker{Layout: s.Flags.Layout(), Timeout: s.Flags.LockTimeout, Waiting: s.waiting}, s.IO.Now)
		s.objects.Owner = func(p podspec.Port) string { return machine.Owner(p, s.Flags.ReservedPorts()) }
	}
	return s.objects
}

// Workloads are the Deployments, Jobs and other objects that stand for pods. No runtime is needed for them.
func (s *Session) Workloads() *controller.Store {
	if s.workloads == nil {
		s.workloads = controller.NewStore(&state.Locker{Layout: s.Flags.Layout(), Timeout: s.Flags.LockTimeout, Waiting: s.waiting}, s.IO.Now)
	}
	return s.workloads
}

// Manifests reads manifests from where the command line names them: objects without a
// namespace are in that of the command.
func (s *Session) Manifests(recursive bool) input.Reader {
	return input.Reader{Stdin: s.IO.In, Namespace: s.Flags.Namespace, Recursive: recursive}
}

// Loader reads manifests, as Manifests does. The pods in them take what they lack from files of
// ConfigMaps and Secrets, which count as the manifests', and from what is stored.
func (s *Session) Loader(recursive bool, configMaps ...string) load.Loader {
	return load.Loader{Reader: s.Manifests(recursive), ConfigMaps: configMaps, Stored: s.Objects().Loaded}
}

// Client is the connection of the engine, for what concerns the runtime itself. With an error
// it is nil.
func (s *Session) Client() (*cri.Client, error) {
	_, err := s.Engine()
	return s.client, err
}

// Prefetch connects to the runtime while the manifests are read. What is wrong with the
// runtime is said after what is wrong with them: there is no engine then.
func (s *Session) Prefetch(ctx context.Context) *runtime.Engine {
	engine, err := s.Engine()
	if err != nil {
		return nil
	}
	go engine.Host.Prefetch(ctx)
	return engine
}

// At is a session of its own with another runtime. It has to be closed.
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

// logger is where calls to the runtime are noted; nil unless -v asks for it.
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

// WithTimeout bounds a command; its cause tells the end of the time from an interrupt.
func WithTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("gave up after %s (--timeout)", timeout))
}

// WatchEnded is the result of a command that goes on until its timeout or an interrupt.
func WatchEnded(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return exit.With(exit.Interrupted)
	}
	return nil
}
