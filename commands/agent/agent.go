package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	goruntime "runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/config"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/agent"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/agent/controllers"
	"github.com/podctl/podctl/runtime/agent/eviction"
	"github.com/podctl/podctl/runtime/agent/logind"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

// defaultSource is where the package has the manifests of the machine.
const defaultSource = "/etc/podctl/pods"

type agentOptions struct {
	applied     bool
	kubelet     bool
	otherAgent  bool
	parallel    int
	pulls       int
	urlInterval time.Duration
	// skipUnknown skips objects of kinds that podctl does not know in sources.
	skipUnknown bool
	keep        housekeepingOptions
	eviction    evictionOptions
	// limits are those of eviction, once they were checked.
	limits    []eviction.Threshold
	admission config.Admission
	listen    string
	// from are the sources of the configuration, if the command line names none.
	from []string
	// stopPods stops the pods with the agent, in the time that they have before a shutdown too.
	stopPods      bool
	shutdownGrace time.Duration
	// show prints the configuration instead of running an agent.
	show bool
	// heard are the signals of the process.
	heard signals
}

// New is `podctl agent`.
func New(sess *session.Session) *cobra.Command {
	o := &agentOptions{}
	cmd := &cobra.Command{
		Use:   "agent [flags] [PATH|URL...]",
		Short: "Keep pods as their manifests say until stopped",
		Long: "Keep the pods of directories, files and URLs as their manifests say: when a manifest changes, a container ends or a\n" +
			"restart delay is over, run a sync pass, the same that plan shows and apply runs. Without arguments, the directory is\n" +
			defaultSource + ". It may also have Deployments, Jobs and other workloads, with their Services, ConfigMaps and\n" +
			"Secrets. What was applied by hand is kept too. What no manifest has any more is deleted.\n" +
			"\n" +
			"The other commands work beside the agent. It may be stopped or killed at any time: pods run on, and the next agent\n" +
			"goes on where the last one ended. On a machine with systemd a shutdown waits until the pods have stopped." +
			flags.ExitCodes("0 stopped by a signal", "1 error, for example another agent runs"),
		Example:           "  podctl agent\n  podctl agent --applied=false ./pods https://example.com/pods.yaml\n  podctl agent status",
		Args:              func(_ *cobra.Command, args []string) error { return checkWords(args) },
		ValidArgsFunction: completion.Manifests,
		RunE: func(cmd *cobra.Command, args []string) error {
			now := settingsOf(cmd, args)
			if o.show {
				return terminal.WriteDocument(sess.IO.Out, "json", now)
			}
			o.heard = hearSignals()
			err := run(cmd.Context(), sess, o, args, now)
			if errors.Is(err, errRestart) {
				return o.heard.restart()
			}
			return err
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.applied, "applied", true, "Also keep the pods and workloads that were applied by hand")
	f.BoolVar(&o.kubelet, "allow-kubelet", false, "Continue although a kubelet on the same runtime may kill the pods")
	f.BoolVar(&o.otherAgent, "allow-other-agent", false, "Continue although an agent with another state directory uses the same runtime")
	f.IntVar(&o.parallel, "parallel", 0, "Number of passes at the same time (default: twice the processors, at least 4)")
	f.IntVar(&o.pulls, "max-parallel-pulls", 4, "Number of images that are pulled at the same time (0: any number)")
	f.DurationVar(&o.urlInterval, "url-interval", 20*time.Second, "Time between two downloads of a URL")
	flags.SkipUnknown(f, &o.skipUnknown)
	o.keep.addTo(f)
	o.eviction.addTo(f)
	o.admission.Register(f, true)
	f.StringVar(&o.listen, "listen", "", "Also serve /healthz, /readyz and /metrics by plain HTTP on ADDRESS:PORT; :PORT is 127.0.0.1")
	f.BoolVar(&o.stopPods, "stop-pods", false, "Stop all pods when the agent ends")
	f.DurationVar(&o.shutdownGrace, "shutdown-grace", 30*time.Second,
		"Time that pods have to stop before the machine shuts down, and with --stop-pods (0: a shutdown does not wait)")
	f.StringArrayVar(&o.from, "sources", nil, "Directories, files and URLs")
	f.BoolVar(&o.show, showFlag, false, "Print the configuration")
	cobra.CheckErr(errors.Join(config.FileOnly(f, "sources"), f.MarkHidden(showFlag)))
	cmd.AddCommand(newStatus(sess), newReload(sess))
	return cmd
}

func run(ctx context.Context, sess *session.Session, o *agentOptions, args []string, now settings) (err error) {
	if sess.Logs, err = o.keep.check(); err != nil {
		return err
	}
	if o.limits, err = o.eviction.thresholds(); err != nil {
		return err
	}
	sess.Pulls = o.pulls
	layout := sess.Flags.Layout()
	if o.stopPods && o.shutdownGrace <= 0 {
		return exit.Usagef("--stop-pods needs a --shutdown-grace")
	}
	if err = layout.Prepare(); err != nil {
		return err
	}
	lock, err := layout.Locks().Agent(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	public, err := o.listener(ctx, sess.Objects())
	if err != nil {
		return err
	}
	log := newLog(sess)
	// Passes of an agent wait for each other all the time.
	sess.Waiting = func(text string) { log.Debug("waiting", "for", text) }
	if err = errors.Join(layout.Locks().Sweep(ctx), layout.DigestKey().Sweep()); err != nil {
		log.Warn("files that a killed process left stay", "error", err.Error())
	}
	engine, err := connect(ctx, sess, log)
	if errors.Is(err, errStopped) {
		return nil
	}
	if err != nil {
		return err
	}
	release, err := o.alone(ctx, layout.Locks(), engine.Client.Endpoint.Address, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	from, err := o.sources(sess, args)
	if err != nil {
		return err
	}
	a := o.agent(ctx, sess, engine, from, log)
	r := &reloading{Agent: a, engine: engine, now: now, log: log, restart: make(chan struct{}, 1), hangups: o.heard.hangups}
	return serve(ctx, r, layout, public, o.guard(a, log))
}

// agent makes the agent of some sources.
func (o *agentOptions) agent(ctx context.Context, sess *session.Session, engine *runtime.Engine, from []sources.Source, log *slog.Logger) *agent.Agent {
	workloads := o.workloads(ctx, sess, engine, log)
	s := o.settings(sess, log, workloads, from)
	s.Changed = proxied(ctx, engine, log, workloads.Changed)
	housekeeper := o.keep.housekeeper(sess, engine, log)
	a := agent.New(agent.World{
		Passes: engine.Pods, Records: agent.Checkpoints{Layout: sess.Flags.Layout(), Leaves: workloads.Leaves}, Prober: engine.Prober, Client: engine.Client, Lister: engine.Lister,
		Exits: engine.Exits.Watch, Renew: engine.Host.Renew, Housekeeper: housekeeper, Eviction: evictor(sess, engine, o.limits, housekeeper, log),
	}, s)
	stopping(ctx, s.StopPods)
	return a
}

// settings are those of the agent. What sources have beside pods is kept by that of workloads.
func (o *agentOptions) settings(sess *session.Session, log *slog.Logger, workloads *controllers.Source, from []sources.Source) agent.Settings {
	collectAt(startPercent)
	s := agent.Settings{
		Applied: o.applied, Parallel: o.passes(), Admission: o.admission.Enforced(), AllowKubelet: o.kubelet, Now: sess.IO.Now, Log: log,
		Look: workloads.Look, Workloads: workloads.States,
		Started: func() { notify(daemon.SdNotifyReady) },
		Ready: func() {
			log.Info("ready")
			collectAt(gcPercent)
		},
	}
	if o.stopPods {
		s.StopPods = o.shutdownGrace
	}
	for _, one := range from {
		s.Sources = append(s.Sources, workloads.Beside(one))
	}
	s.Sources = append(s.Sources, workloads)
	return s
}

// startPercent and gcPercent are by how much the heap may grow before it is collected: until all pods are known, and afterwards.
// Other commands let it grow more (package early), because they end soon.
const startPercent, gcPercent = 100, 30

// collectAt sets the garbage collector, unless the environment does.
func collectAt(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// workloads are the source of the pods of workloads.
func (o *agentOptions) workloads(ctx context.Context, sess *session.Session, engine *runtime.Engine, log *slog.Logger) *controllers.Source {
	return controllers.New(controllers.Settings{
		Workloads: controllers.Stored{Store: sess.Workloads(), Expander: sess.Expander(engine, o.admission.Labels)},
		Objects:   controllers.StoredObjects{Objects: sess.Objects(), Layout: sess.Flags.Layout(), Services: followed(ctx, engine)},
		ByHand:    o.applied, Now: sess.IO.Now, Log: log,
	})
}

// serve runs the agent with its sockets, and lets it read its configuration again on SIGHUP.
func serve(ctx context.Context, r *reloading, layout state.Layout, public *port, guard *logind.Guard) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	var servers sync.WaitGroup
	defer func() {
		stop()
		// They take their sockets away.
		servers.Wait()
	}()
	beside := func(what string, do func() error) {
		servers.Go(func() {
			if err := do(); err != nil {
				r.log.Error(what, "error", err.Error())
			}
		})
	}
	beside("the socket of the agent cannot be served", func() error { return api.Serve(serving, layout.AgentSocket(), r) })
	beside("the socket of the Pods API cannot be served", func() error { return servePods(serving, r.Agent, layout.PodsSocket()) })
	if public != nil {
		r.log.Info("serving metrics", "address", public.Addr().String())
		beside("the metrics cannot be served", func() error { return api.ServePublic(serving, public, public.name, r) })
	}
	go r.hear(serving)
	go watchdog(serving, r.Agent)
	go keepServices(serving, r.engine, r.log)
	if guard.Within > 0 {
		go guard.Run(serving)
	}
	return r.run(ctx)
}

// guard lets a shutdown of the machine wait for the pods.
func (o *agentOptions) guard(a *agent.Agent, log *slog.Logger) *logind.Guard {
	return &logind.Guard{
		Within: o.shutdownGrace, Connect: logind.Connect, Resume: a.ResumePods, Log: log, Pause: time.Second,
		Stop: func(ctx context.Context) error { return a.StopPods(ctx, o.shutdownGrace) },
	}
}

// servePods serves the kubelet's local Pods API.
func servePods(ctx context.Context, a *agent.Agent, socket string) error {
	l, err := api.Listen(ctx, socket)
	if err != nil {
		return err
	}
	return a.ServePods(ctx, l)
}

// errStopped says that the agent was stopped while it waited for a runtime.
var errStopped = errors.New("stopped")

// connect finds the runtime, and waits for one to appear.
func connect(ctx context.Context, sess *session.Session, log *slog.Logger) (*runtime.Engine, error) {
	for told := false; ; told = true {
		engine, err := sess.Engine()
		if !errors.Is(err, cri.ErrNoEndpoint) {
			return engine, err
		}
		if !told {
			log.Warn("waiting for a container runtime", "error", err.Error())
		}
		if cri.Sleep(ctx, time.Second) != nil {
			return nil, errStopped
		}
	}
}

// sources are the places that the user named.
func (o *agentOptions) sources(sess *session.Session, args []string) ([]sources.Source, error) {
	switch {
	case len(args) > 0:
	case len(o.from) > 0:
		args = o.from
	default:
		args = []string{defaultSource}
	}
	var all []sources.Source
	for _, arg := range args {
		s := sources.Settings{Loader: sess.Loader(false)}
		s.Loader.Workloads, s.Loader.Store, s.Loader.SkipUnknown = true, true, o.skipUnknown
		one, err := o.source(arg, s)
		if err != nil {
			return nil, err
		}
		for _, other := range all {
			if other.Name() == one.Name() {
				return nil, fmt.Errorf("the source %s is given twice", one.Name())
			}
		}
		all = append(all, one)
	}
	return all, nil
}

// checkWords refuses words that may be mistyped commands. A path with a slash may be missing: it counts once it is there.
func checkWords(args []string) error {
	for _, arg := range args {
		if input.IsURL(arg) || strings.ContainsRune(arg, filepath.Separator) {
			continue
		}
		if _, err := os.Lstat(arg); errors.Is(err, fs.ErrNotExist) {
			return exit.Usagef("%s is no command of `podctl agent`, and no file or directory of that name is here; "+
				"for a directory that will be made later, write ./%[1]s", terminal.Printable(arg))
		}
	}
	return nil
}

// source is one place that the user named.
func (o *agentOptions) source(arg string, s sources.Settings) (sources.Source, error) {
	if input.IsURL(arg) {
		s.Interval = o.urlInterval
		return sources.NewURL(arg, s)
	}
	return sources.NewFiles(arg, s)
}

// port serves metrics. Its name is what the user called it, if that is no address.
type port struct {
	net.Listener
	name string
}

// listener opens the port that serves metrics; nil if there is none. Without a host only this machine reaches it.
func (o *agentOptions) listener(ctx context.Context, stored *objects.Store) (*port, error) {
	if o.listen == "" {
		return nil, nil //nolint:nilnil // none was asked for
	}
	host, text, err := net.SplitHostPort(o.listen)
	if err != nil {
		return nil, exit.Usagef("--listen %s: it has to be ADDRESS:PORT or :PORT: %v", o.listen, err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(cmp.Or(host, "127.0.0.1"), text))
	if err != nil {
		return nil, fmt.Errorf("--listen %s: %w", o.listen, err)
	}
	number := l.Addr().(*net.TCPAddr).Port                                                               //nolint:forcetypeassert // it listens on TCP
	if by := stored.Publisher(podspec.Port{Protocol: v1.ProtocolTCP, Number: int32(number)}); by != "" { //nolint:gosec // 16 bits
		return nil, errors.Join(fmt.Errorf("--listen %s: connections to this port lead to %s: choose another port", o.listen, by), l.Close())
	}
	return &port{Listener: l, name: host}, nil
}

// passes is how many passes may change something at the same time.
func (o *agentOptions) passes() int {
	if o.parallel > 0 {
		return o.parallel
	}
	return max(2*goruntime.NumCPU(), 4)
}
