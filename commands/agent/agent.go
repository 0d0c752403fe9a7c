package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/config"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/runtime/agent/daemon"
	"github.com/podctl/podctl/runtime/agent/eviction"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/cluster/membership"
)

// defaultSource is the directory that the package installs for the manifests of the machine.
const defaultSource = "/etc/podctl/pods"

type agentOptions struct {
	daemon.Settings

	urlInterval time.Duration
	// skipUnknown skips objects of unknown kinds in sources.
	skipUnknown    bool
	logSize        string
	evictionFlags  evictionOptions
	limitFlags     limitOptions
	admissionFlags config.Admission
	clusterFlags   clusterOptions
	listenFlag     string
	// from has the sources from the configuration file. They apply if the command line has none.
	from []string
	// show prints the configuration and checks it, instead of running an agent.
	show bool
}

// Program is the program that the command is part of.
type Program struct {
	Version string
	// Node makes the machine a node of a cluster. It is nil in a program that cannot.
	Node *daemon.NodeProgram
}

// New returns the command `podctl agent`, with the subcommand that needs the program of a node.
func New(sess *session.Session, program Program) *cobra.Command {
	o := &agentOptions{}
	o.Version, o.Node = program.Version, program.Node
	cmd := &cobra.Command{
		Use:   "agent [flags] [PATH|URL...]",
		Short: "Keep pods running as their manifests describe",
		Long: "Keep the pods of directories, files and URLs running as their manifests describe. " +
			"When a manifest changes, a container\nends or a restart delay expires, " +
			"the agent runs the same sync pass that plan shows and apply runs. " +
			"Without arguments,\nit reads the sources in the configuration, or else " + defaultSource + ". " +
			"Manifests may also contain Deployments, Jobs and\nother workloads, Services, ConfigMaps and Secrets.\n" +
			"\n" +
			"The agent also keeps pods and workloads that were applied by hand. " +
			"It deletes pods and workloads when their manifest\nis removed from the directory, file or URL.\n" +
			"\n" +
			"With --kubeconfig, this machine is a node of a cluster, and the agent also runs the pods of this node. " +
			"The flags\nof the Node, of its server, of certificates and of mirror pods need --kubeconfig.\n" +
			"\n" +
			"All other commands work while the agent runs. You can stop or kill it at any time: " +
			"pods keep running, and the next\nagent continues where the last one stopped. " +
			"With systemd, a shutdown of the machine waits until the pods have stopped." +
			flags.ExitCodes("0 stopped by a signal", "1 error, for example because another agent is running"),
		Example: "  podctl agent\n" +
			"  podctl agent --applied=false ./pods https://example.com/pods.yaml\n" +
			"  podctl agent status",
		Args:              func(_ *cobra.Command, args []string) error { return checkWords(args) },
		ValidArgsFunction: completion.Manifests,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd, sess, args) },
	}
	o.register(cmd.Flags())
	cmd.AddCommand(newLeave(sess, program, &o.clusterFlags))
	return cmd
}

// run runs the agent until a signal ends it, or prints its settings and checks them.
func (o *agentOptions) run(cmd *cobra.Command, sess *session.Session, args []string) error {
	now := settingsOf(cmd, args)
	left, err := membership.HasLeft(sess.Flags.Layout().Root)
	if now["left"] = strconv.FormatBool(left); err != nil {
		return err
	}
	if o.Cluster, err = o.clusterFlags.settings(sess.Flags.NodeLabels(o.admissionFlags.Labels)); err != nil {
		return err
	}
	ignored := left && o.Cluster != nil
	if ignored {
		o.Cluster = nil
	}
	if err = o.toCluster(); err != nil {
		return err
	}
	if o.show {
		return o.print(cmd.Context(), sess, args, now)
	}
	received := receiveSignals() // The node program would not get a signal that this process receives.
	if ignored {
		sess.IO.Note("This machine has left its cluster, so the agent does not use --kubeconfig. " +
			"Run `podctl agent join` to use it again.")
	}
	if err = o.complete(sess, args, now); err != nil {
		return err
	}
	o.Hangups = received.hangups
	if err = daemon.Run(cmd.Context(), o.Settings); errors.Is(err, daemon.ErrRestart) {
		return received.restart()
	}
	return err
}

// print prints the settings if they are valid, and then checks the port, the runtime and the files that a start needs.
// A change is only refused if the settings are printed before this check fails; see settings.compare.
func (o *agentOptions) print(ctx context.Context, sess *session.Session, args []string, now settings) error {
	if err := o.complete(sess, args, now); err != nil {
		return err
	}
	if err := terminal.WriteDocument(sess.IO.Out, "json", now); err != nil {
		return err
	}
	return o.Check(ctx)
}

// toCluster makes this process the program that can join a cluster, if one is set.
func (o *agentOptions) toCluster() error {
	switch {
	case o.Node != nil:
		return checkStarter(o.Version)
	case o.Cluster != nil:
		return becomeNode(o.Version)
	default:
		return nil
	}
}

// register defines the flags.
func (o *agentOptions) register(f *pflag.FlagSet) {
	f.BoolVar(&o.Applied, "applied", true, "Also keep the pods and workloads that were applied by hand")
	f.BoolVar(&o.AllowKubelet, "allow-kubelet", false,
		"Continue even if a kubelet on the same runtime may kill the pods")
	f.BoolVar(&o.AllowOtherAgent, "allow-other-agent", false,
		"Continue even if an agent with another state directory uses the same runtime")
	f.IntVar(&o.Parallel, "parallel", 0,
		"Maximum number of concurrent passes (default: twice the number of CPUs, at least 4)")
	f.IntVar(&o.Pulls, "max-parallel-pulls", 4, "Maximum number of concurrent image pulls (0: no limit)")
	f.DurationVar(&o.urlInterval, "url-interval", 20*time.Second, "Time between downloads of a URL")
	flags.SkipUnknown(f, &o.skipUnknown)
	o.registerHousekeeping(f)
	o.evictionFlags.addTo(f)
	o.limitFlags.addTo(f)
	o.admissionFlags.Register(f, true)
	o.clusterFlags.addTo(f)
	f.StringVar(&o.listenFlag, "listen", "",
		"Address to serve /healthz, /readyz and /metrics on over plain HTTP: ADDRESS:PORT, or :PORT for 127.0.0.1")
	f.BoolVar(&o.StopAtEnd, "stop-pods", false, "Stop all pods when the agent stops")
	f.DurationVar(&o.ShutdownGrace, "shutdown-grace", 30*time.Second,
		"Time for pods to stop at a shutdown of the machine and with --stop-pods (0: a shutdown does not wait)")
	f.StringArrayVar(&o.from, "sources", nil, "Directories, files and URLs")
	f.BoolVar(&o.show, showFlag, false, "Print the configuration")
	cobra.CheckErr(errors.Join(config.FileOnly(f, "sources"), f.MarkHidden(showFlag)))
}

// complete checks the flags and fills in the settings of the daemon.
func (o *agentOptions) complete(sess *session.Session, args []string, now settings) (err error) {
	if err = o.checkFlags(); err != nil {
		return err
	}
	o.Evict = o.evictionFlags.on
	if o.Listen, err = o.address(); err != nil {
		return err
	}
	o.Log, sess.Logs, sess.Pulls, sess.PodDefaults = newLog(sess), o.Logs, o.Pulls, o.limitFlags.PodDefaults
	// Passes of an agent often wait for each other, so this is logged only with --verbose.
	sess.Waiting = func(text string) { o.Log.Debug("waiting", "for", text) }
	if o.Sources, err = o.newSources(sess, args); err != nil {
		return err
	}
	if o.Parallel <= 0 {
		o.Parallel = max(2*goruntime.NumCPU(), 4)
	}
	o.Layout, o.Connect, o.Objects, o.Workloads = sess.Flags.Layout(), sess.Engine, sess.Objects(), sess.Workloads()
	o.Resources, o.Admit = o.admissionFlags.Settings, o.admissionFlags.Admit
	o.NodeLabels = sess.Flags.NodeLabels(o.admissionFlags.Labels)
	o.Changes, o.Now = now.changes, sess.IO.Now
	return nil
}

// setResources checks and completes the settings of the resources of a node in a cluster, which admission uses too.
func (o *agentOptions) setResources() error {
	if o.admissionFlags.MaxPods < 1 {
		return exit.Usagef("--max-pods %d: a node of a cluster needs a limit", o.admissionFlags.MaxPods)
	}
	o.admissionFlags.KeptFree = eviction.KeptFree(o.Eviction.Thresholds)
	return nil
}

// SourceNames returns the directories, files and URLs of an agent: its arguments, or else those of the configuration,
// or else the directory that the package installs.
func SourceNames(args, configured []string) []string {
	switch {
	case len(args) > 0:
		return args
	case len(configured) > 0:
		return configured
	default:
		return []string{defaultSource}
	}
}

// newSources returns the sources that the user named.
func (o *agentOptions) newSources(sess *session.Session, args []string) ([]sources.Source, error) {
	var all []sources.Source
	for _, arg := range SourceNames(args, o.from) {
		s := sources.Settings{Loader: sess.Loader(false), EndRemoved: o.Cluster != nil}
		s.Loader.Workloads, s.Loader.Store, s.Loader.SkipUnknown = true, true, o.skipUnknown
		one, err := o.newSource(arg, s)
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

// checkWords refuses words that may be mistyped commands. A path with a slash may be missing, because the agent reads
// it as soon as it exists.
func checkWords(args []string) error {
	for _, arg := range args {
		if input.IsURL(arg) || strings.ContainsRune(arg, filepath.Separator) {
			continue
		}
		if _, err := os.Lstat(arg); errors.Is(err, fs.ErrNotExist) {
			return exit.Usagef("%s is neither a command of `podctl agent` nor an existing file or directory; "+
				"for a directory that does not exist yet, write ./%[1]s", terminal.Printable(arg))
		}
	}
	return nil
}

func (o *agentOptions) newSource(arg string, s sources.Settings) (sources.Source, error) {
	if input.IsURL(arg) {
		s.Interval = o.urlInterval
		return sources.NewURL(arg, s)
	}
	return sources.NewFiles(arg, s)
}

// address returns the address to serve metrics on, or nil if the flag is not set.
func (o *agentOptions) address() (*daemon.Address, error) {
	if o.listenFlag == "" {
		return nil, nil // the flag is not set
	}
	host, port, err := net.SplitHostPort(o.listenFlag)
	if err != nil {
		return nil, exit.Usagef("--listen %s: must be ADDRESS:PORT or :PORT: %v", o.listenFlag, err)
	}
	return &daemon.Address{Host: host, Port: port}, nil
}
