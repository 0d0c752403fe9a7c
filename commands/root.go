package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/node"
	"github.com/podctl/podctl/runtime/observe"
	"github.com/podctl/podctl/runtime/state"
)

// globals are the flags that every command has.
type globals struct {
	env             *Env
	runtimeEndpoint string
	imageEndpoint   string
	namespace       string
	// namespaceGiven tells that it stands on the command line.
	namespaceGiven bool
	stateDir       string
	logRoot        string
	cgroupRoot     string
	requestTimeout time.Duration
	lockTimeout    time.Duration
	timeout        time.Duration
	cancel         context.CancelFunc
	// words are the command and its arguments, without flags.
	words     []string
	color     string
	verbose   bool
	logFormat string
	config    string
	// settings say by what a flag was set that the command line did not set.
	settings map[string]setting
	engine   *runtime.Engine
	profile  profiling
	// lines lets one line be told at a time: pods are worked on side by side.
	lines sync.Mutex
	// noted are the notes that were given once.
	noted     map[string]bool
	notedLock sync.Mutex
	// unread are the journals that kept a thorough selection from pods; the command does
	// the rest, and ends with them.
	unread error
	client *cri.Client
	// known are the pods of manifests that were read, redactor knows their Secrets and those of
	// all journals.
	known    []*podspec.Desired
	redactor *redaction.Redactor
}

// The groups of commands in the help.
const (
	groupMain   = "main"
	groupLook   = "look"
	groupInside = "inside"
	groupUpkeep = "upkeep"
)

// The flags that are more than a setting.
const (
	endpointFlag = "runtime-endpoint"
	configFlag   = "config"
)

// New builds the command tree.
func New(env *Env) *cobra.Command { return newRoot(&globals{env: env}) }

func newRoot(g *globals) *cobra.Command {
	root := &cobra.Command{
		Use:   "podctl [command]",
		Short: "The kubelet's pod sync as a command",
		Long: "podctl reads a Kubernetes Pod manifest, compares it with what a container runtime really runs,\n" +
			"shows what it would do and why, and then does exactly that, one sync pass per invocation.",
		Example: "  podctl plan pod.yaml        # what would be done now, and why\n" +
			"  podctl apply --wait pod.yaml # do it, until the pod is ready\n" +
			"  podctl probe web            # ask its probes once, now",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          unknownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		PersistentPreRunE: func(cmd *cobra.Command, args []string) error { return g.begin(cmd, args) },
	}
	root.SuggestionsMinimumDistance = 2
	root.SetIn(g.env.In)
	root.SetOut(g.env.Out)
	root.SetErr(g.env.Err)
	root.SetHelpFunc(help)
	root.SetUsageFunc(func(cmd *cobra.Command) error { help(cmd, nil); return nil })
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{text: err.Error()} })
	root.AddGroup(
		&cobra.Group{ID: groupMain, Title: "Commands"},
		&cobra.Group{ID: groupLook, Title: "Inspection commands"},
		&cobra.Group{ID: groupInside, Title: "Commands for running pods"},
		&cobra.Group{ID: groupUpkeep, Title: "Management commands"},
	)
	g.addFlags(root.PersistentFlags())
	addCommands(root, g)
	root.SetHelpCommandGroupID(groupUpkeep)
	return root
}

func addCommands(root *cobra.Command, g *globals) {
	add := func(group string, cmds ...*cobra.Command) {
		for _, cmd := range cmds {
			cmd.GroupID = group
			root.AddCommand(cmd)
		}
	}
	add(groupMain, newPlan(g), newApply(g), newRun(g), newRestart(g), newProbe(g), newDelete(g))
	add(groupLook, newGet(g), newDescribe(g), newEvents(g), newTop(g), newLogs(g), newWait(g),
		newValidate(g), newRender(g), newSnapshot(g), newExport(g))
	add(groupInside, newExec(g), newAttach(g), newPortForward(g), newCopy(g), newDebug(g))
	add(groupUpkeep, newImage(g), newPrune(g), newDoctor(g), newNode(g), newCompletion(), newVersion(g))
}

func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q", args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, ", ") + "?"
	}
	return &usageError{text: text}
}

func (g *globals) addFlags(f *pflag.FlagSet) {
	f.StringVarP(&g.runtimeEndpoint, endpointFlag, "r", "", "Socket of the container runtime (env CONTAINER_RUNTIME_ENDPOINT)")
	f.StringVar(&g.imageEndpoint, "image-endpoint", "", "Socket of the image service, if it is another one")
	f.StringVarP(&g.namespace, "namespace", "n", "default", "Namespace of pods that are named; manifests say their own")
	f.StringVar(&g.stateDir, "state-dir", state.Default().Root, "Where podctl keeps what the runtime cannot")
	f.StringVar(&g.logRoot, "log-root", state.Default().LogRoot, "Where the logs of pods lie")
	f.StringVar(&g.cgroupRoot, "cgroup-root", "", "Cgroup below which those of pods are made (default: the machine's root)")
	g.requestTimeout = cri.DefaultRequestTimeout
	f.Var(&limit{value: &g.requestTimeout, always: true}, "request-timeout", "How long the runtime may take for an answer")
	f.Var(&limit{value: &g.lockTimeout}, "lock-timeout", "How long to wait for another podctl that works on the same pod (0: as long as --timeout)")
	f.Var(&limit{value: &g.timeout}, "timeout", "Give up after this long (0: never)")
	f.StringVar(&g.config, configFlag, "", "Configuration file (default: /etc/podctl/config.yaml, then ~/.config/podctl/config.yaml)")
	f.BoolVarP(&g.verbose, "verbose", "v", false, "Log each call to the runtime to stderr: method, duration, code")
	f.Var(&choice{value: &g.logFormat, allowed: []string{"text", "json"}, start: "text"}, "log-format", "Form of the log: text or json")
	f.Var(&choice{value: &g.color, allowed: []string{"auto", "always", "never"}, start: "auto"}, "color", "When to use colours: auto, always or never")
	g.profile.addFlags(f)
}

// begin takes the configuration in, and bounds a command by --timeout.
func (g *globals) begin(cmd *cobra.Command, args []string) error {
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		// What comes after it is a command of the user's, and may have secrets in it.
		args = args[:dash]
	}
	g.words = append(strings.Fields(cmd.CommandPath()), args...)
	g.namespaceGiven = cmd.Flags().Changed("namespace")
	if err := g.configure(cmd.Root().PersistentFlags()); err != nil {
		return err
	}
	if err := g.anchor(); err != nil {
		return err
	}
	ctx, cancel := withTimeout(cmd.Context(), g.timeout)
	g.cancel = cancel
	ctx, err := g.profile.begin(ctx, cmd.CommandPath(), g.env.Getenv)
	cmd.SetContext(ctx)
	return err
}

// anchor makes relative directories absolute: a runtime is told of them, and runs elsewhere.
func (g *globals) anchor() error {
	for _, dir := range []*string{&g.stateDir, &g.logRoot} {
		if *dir == "" {
			continue
		}
		absolute, err := filepath.Abs(*dir)
		if err != nil {
			return fmt.Errorf("%s is relative to a directory that is not there: %w", *dir, err)
		}
		*dir = absolute
	}
	return nil
}

// end ends what begin began, however the command went.
func (g *globals) end() error {
	if g.cancel != nil {
		g.cancel()
	}
	if g.client != nil {
		_ = g.client.Close() // The process ends, or goes on without it.
	}
	return g.profile.end()
}

// choice is a flag that takes one of a few words, and completes them.
type choice struct {
	value   *string
	allowed []string
	start   string
}

// String is the flag's value.
func (c *choice) String() string {
	if c.value == nil || *c.value == "" {
		return c.start
	}
	return *c.value
}

// Set takes one of the allowed words.
func (c *choice) Set(text string) error {
	if slices.Contains(c.allowed, text) {
		*c.value = text
		return nil
	}
	words := slices.DeleteFunc(slices.Clone(c.allowed), func(word string) bool { return word == "" })
	return fmt.Errorf("must be one of %s", strings.Join(words, ", "))
}

// Type names the flag's kind of value in the help.
func (c *choice) Type() string { return "string" }

// limit is a flag that bounds how long something takes.
type limit struct {
	value *time.Duration
	// always tells that there has to be a bound; else zero means none.
	always bool
}

// String is the flag's value, zero as the help takes it for no default.
func (l *limit) String() string {
	if l.value == nil || *l.value == 0 {
		return "0"
	}
	return l.value.String()
}

// Set takes a duration that can pass.
func (l *limit) Set(text string) error {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return err
	case d < 0:
		return errors.New("must not be negative")
	case d == 0 && l.always:
		return errors.New("must be longer than nothing")
	}
	*l.value = d
	return nil
}

// Type names the flag's kind of value in the help.
func (l *limit) Type() string { return "duration" }

// layout is where podctl keeps things, by the flags.
func (g *globals) layout() state.Layout {
	l := state.Layout{Root: g.stateDir, LogRoot: g.logRoot, Command: g.words}
	if g.logRoot == state.Default().LogRoot {
		l.ContainerLogRoot = state.Default().ContainerLogRoot
	}
	return l
}

// connect finds the runtime and prepares the connection, once.
func (g *globals) connect() (*runtime.Engine, error) {
	if g.engine != nil {
		return g.engine, nil
	}
	endpoint, err := cri.Discover(g.endpointSources())
	if err != nil {
		return nil, err
	}
	client, err := cri.Connect(endpoint, g.imageEndpoint, g.requestTimeout)
	if err != nil {
		return nil, err
	}
	client.Log = g.logger()
	g.client = client
	g.engine = runtime.NewEngine(client, runtime.Settings{
		Layout: g.layout(), Sources: observe.Sources{CgroupRoot: g.cgroupRoot}, Now: g.env.Now,
		LockTimeout: g.lockTimeout, Waiting: func(text string) { g.noteOnce("%s", text) },
	})
	return g.engine, nil
}

// warm connects to the runtime while the manifests are read. What is wrong with the
// runtime is told after what is wrong with them.
func (g *globals) warm(ctx context.Context) {
	if engine, err := g.connect(); err == nil {
		go engine.Host.Prefetch(ctx)
	}
}

// endpointSources are the places an endpoint can come from. One of a configuration
// file comes after the environment, as every setting does.
func (g *globals) endpointSources() cri.EndpointSources {
	set := g.settings[endpointFlag]
	given := []cri.Endpoint{
		{Address: g.runtimeEndpoint, Origin: cmp.Or(set.origin, "--"+endpointFlag)},
		{Address: g.env.Getenv("CONTAINER_RUNTIME_ENDPOINT"), Origin: "CONTAINER_RUNTIME_ENDPOINT"},
	}
	if set.fromFile {
		slices.Reverse(given)
	}
	return cri.EndpointSources{
		Given: given, NodeSocket: node.Socket(g.layout().NodeDir()), CrictlConfig: "/etc/crictl.yaml", WellKnown: cri.WellKnownSockets(),
	}
}

// logger is where calls to the runtime are noted; nil unless -v asks for it.
func (g *globals) logger() *slog.Logger {
	if !g.verbose {
		return nil
	}
	options := &slog.HandlerOptions{Level: slog.LevelDebug}
	if g.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(g.env.Err, options))
	}
	return slog.New(slog.NewTextHandler(g.env.Err, options))
}

// help prints a command's help in nerdctl's manner.
func help(cmd *cobra.Command, _ []string) {
	var b strings.Builder
	if cmd.Long != "" {
		b.WriteString(cmd.Long + "\n\n")
	} else if cmd.Short != "" {
		b.WriteString(cmd.Short + "\n\n")
	}
	fmt.Fprintf(&b, "Usage: %s\n", cmd.UseLine())
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(&b, "\nAliases: %s\n", strings.Join(cmd.Aliases, ", "))
	}
	if cmd.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	for _, group := range cmd.Groups() {
		writeGroup(&b, cmd, group.ID, group.Title)
	}
	if len(cmd.Groups()) == 0 {
		writeGroup(&b, cmd, "", "Commands")
	}
	writeFlags(&b, "Flags", cmd.LocalNonPersistentFlags())
	persistent := cmd.InheritedFlags()
	if !cmd.HasParent() {
		persistent = cmd.PersistentFlags()
	}
	writeFlags(&b, "Global flags", persistent)
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nRun '%s COMMAND --help' for more information on a command.\n", cmd.CommandPath())
	}
	io.WriteString(cmd.OutOrStdout(), b.String()) //nolint:errcheck // help that cannot be printed helps nobody
}

func writeGroup(b *strings.Builder, cmd *cobra.Command, id, title string) {
	var lines []string
	for _, sub := range cmd.Commands() {
		if sub.GroupID == id && (sub.IsAvailableCommand() || sub.Name() == "help") {
			lines = append(lines, fmt.Sprintf("  %-12s %s", sub.Name(), sub.Short))
		}
	}
	if len(lines) > 0 {
		fmt.Fprintf(b, "\n%s:\n%s\n", title, strings.Join(lines, "\n"))
	}
}

func writeFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if flags.HasAvailableFlags() {
		fmt.Fprintf(b, "\n%s:\n%s", title, flags.FlagUsages())
	}
}

// exitCodes is the part of a command's help that lists its codes.
func exitCodes(lines ...string) string {
	return "\n\nExit codes:\n  " + strings.Join(lines, "\n  ")
}

var errNothing = errors.New("no pod is named: give a manifest, a pod, or apply one first")
