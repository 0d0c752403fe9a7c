package completion

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/podctl/podctl/commands/config"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// Completion offers words from podctl's records of pods. The flags contain the state directory.
type Completion struct{ flags *config.Flags }

// Of returns the completion for the global flags, which are filled later.
func Of(flags *config.Flags) Completion { return Completion{flags} }

const (
	noFiles   = cobra.ShellCompDirectiveNoFileComp
	onlyFiles = cobra.ShellCompDirectiveFilterFileExt
)

// manifestEndings are the extensions of manifests.
func manifestEndings() []string { return []string{"yaml", "yml", "json"} }

// Manifests offers manifest files and directories.
func Manifests(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return manifestEndings(), onlyFiles
}

// Pods offers the pods that podctl applied, for commands that take no manifest.
func (c Completion) Pods(_ *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return unused(c.podNames(typed), args), noFiles
}

// Pod is Pods for a command that takes one.
func (c Completion) Pod(
	cmd *cobra.Command, args []string, typed string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, noFiles
	}
	return c.Pods(cmd, args, typed)
}

// Targets offers pods and manifests. Words that can only be paths are left to the shell, which quotes them correctly.
func (c Completion) Targets(
	cmd *cobra.Command, args []string, typed string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	if isPath(typed) {
		return Manifests(cmd, args, typed)
	}
	names := append(c.podNames(typed), manifestNames(typed)...)
	directive := noFiles
	if len(names) == 1 && strings.HasSuffix(names[0], "/") {
		directive |= cobra.ShellCompDirectiveNoSpace
	}
	return unused(names, args), directive
}

// Kinds is Targets for commands that also take kinds. After a kind it offers the stored objects of that kind. It offers
// kinds only after their first letter, because users usually mean pods.
func (c Completion) Kinds(
	cmd *cobra.Command, args []string, typed string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	word, name, prefix := "", typed, ""
	if len(args) > 0 {
		word = args[0]
	} else if before, after, ok := strings.Cut(typed, "/"); ok && !isPath(typed) {
		word, name, prefix = before, after, before+"/"
	}
	t, err := selection.ParseTargets([]string{word}, c.flags.Namespace)
	if kind := t.Kind(); err == nil && kind != "" && kind != podspec.KindPod {
		return unused(c.objectNames(kind, prefix, name), args), noFiles
	}
	names, directive := c.Targets(cmd, args, typed)
	if typed != "" && !isPath(typed) && len(args) == 0 {
		names = append(names, starting(selection.KindWords(), typed)...)
	}
	return names, directive
}

// objectNames lists the stored objects of a kind in the namespace that begin with the typed text. The prefix is put
// before each name.
func (c Completion) objectNames(kind, prefix, typed string) []string {
	layout := c.flags.Layout()
	stored := layout.Objects()
	if podspec.KindNamed(kind).Workload {
		stored = layout.Workloads()
	}
	keys, err := stored.List()
	if err != nil {
		return nil
	}
	var names []string
	for _, key := range keys {
		if key.Kind == kind && key.Namespace == c.flags.Namespace {
			names = append(names, prefix+key.Name)
		}
	}
	return starting(names, prefix+typed)
}

// PodThenContainer is PodThenContainers for one container.
func (c Completion) PodThenContainer(
	cmd *cobra.Command, args []string, typed string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 1 {
		return nil, noFiles
	}
	return c.PodThenContainers(cmd, args, typed)
}

// PodThenContainers offers pods and manifests, and then the containers of the first argument.
func (c Completion) PodThenContainers(
	cmd *cobra.Command, args []string, typed string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return c.Targets(cmd, args, typed)
	}
	names, directive := c.Containers(cmd, args[:1], typed)
	return unused(names, args[1:]), directive
}

// PodThenPorts offers pods, and after one the ports of its containers by name, or else by number. A typed local port is
// kept in front.
func (c Completion) PodThenPorts(
	cmd *cobra.Command, args []string, typed string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return c.Pods(cmd, args, typed)
	}
	local := ""
	if colon := strings.Index(typed, ":"); colon >= 0 {
		local = typed[:colon+1]
	}
	var ports []string
	for _, d := range c.completionPods(cmd, args[:1]) {
		for _, ref := range podspec.Containers(d.Pod) {
			for _, p := range ref.Ports {
				ports = append(ports, local+cmp.Or(p.Name, strconv.Itoa(int(p.ContainerPort))))
			}
		}
	}
	return unused(starting(ports, typed), args[1:]), noFiles
}

// Copy offers pods with a colon for the path after it. If no pod matches, the shell offers its own files.
func (c Completion) Copy(_ *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 1 || strings.Contains(typed, ":") {
		return nil, noFiles
	}
	names := c.podNames(typed)
	for i := range names {
		names[i] += ":"
	}
	return names, cobra.ShellCompDirectiveNoSpace
}

// Containers offers the containers of the pods in the arguments. Without arguments it offers those of all pods in the
// namespace.
func (c Completion) Containers(
	cmd *cobra.Command, args []string, typed string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	if files, err := cmd.Flags().GetStringSlice("filename"); err == nil {
		args = append(slices.Clone(args), files...)
	}
	var names []string
	for _, d := range c.completionPods(cmd, args) {
		for _, ref := range podspec.Containers(d.Pod) {
			names = append(names, ref.Name)
		}
	}
	return starting(names, typed), noFiles
}

// Namespaces offers the namespaces of applied pods.
func (c Completion) Namespaces(
	_ *cobra.Command, _ []string, typed string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	names := []string{"default"}
	for _, d := range c.applied() {
		names = append(names, d.Pod.Namespace)
	}
	return starting(names, typed), noFiles
}

// Words offers fixed words. No space follows a word that ends with "=".
func Words(words ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		found := starting(words, typed)
		if len(found) == 1 && strings.HasSuffix(found[0], "=") {
			return found, noFiles | cobra.ShellCompDirectiveNoSpace
		}
		return found, noFiles
	}
}

// applied lists the applied pods. It silently ignores unreadable checkpoints.
func (c Completion) applied() []*podspec.Desired {
	applied, _, err := state.Applied(c.flags.Layout())
	if err != nil {
		return nil
	}
	return selection.DesiredOf(applied)
}

// podNames lists the pods whose name begins with the typed text. Names of other namespaces have the namespace in front.
func (c Completion) podNames(typed string) []string {
	var names []string
	for _, d := range c.applied() {
		if d.Pod.Namespace == c.flags.Namespace {
			names = append(names, d.Pod.Name)
		}
		if d.Pod.Namespace != c.flags.Namespace || strings.Contains(typed, "/") {
			names = append(names, model.RefOf(d.Pod).String())
		}
	}
	return starting(names, typed)
}

// completionPods finds the pods in the arguments and ignores missing ones. It reads neither standard input nor the
// network.
func (c Completion) completionPods(cmd *cobra.Command, args []string) []*podspec.Desired {
	applied := c.applied()
	if len(args) == 0 {
		return slices.DeleteFunc(applied, func(d *podspec.Desired) bool { return d.Pod.Namespace != c.flags.Namespace })
	}
	var pods []*podspec.Desired
	for _, arg := range args {
		switch {
		case strings.Contains(arg, "://"):
		case input.IsManifest(arg):
			if m, err := load.Load(cmd.Context(), input.Reader{Stdin: strings.NewReader("")}, arg); err == nil {
				pods = append(pods, m.Pods...)
			}
		default:
			if d, err := state.FindPod(applied, c.flags.Namespace, arg); err == nil {
				pods = append(pods, d)
			}
		}
	}
	return pods
}

// isPath reports whether a word can only be a path.
func isPath(typed string) bool {
	return strings.HasPrefix(typed, ".") || strings.HasPrefix(typed, "/") || strings.HasPrefix(typed, "~")
}

// manifestNames lists the manifests and directories that begin with the typed text.
func manifestNames(typed string) []string {
	dir, _ := filepath.Split(typed)
	entries, err := os.ReadDir(filepath.Join(".", dir))
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		ending := strings.TrimPrefix(filepath.Ext(e.Name()), ".")
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case e.IsDir():
			names = append(names, dir+e.Name()+"/")
		case slices.Contains(manifestEndings(), ending):
			names = append(names, dir+e.Name())
		}
	}
	return starting(names, typed)
}

// starting returns the names that begin with the typed text, without duplicates.
func starting(names []string, typed string) []string {
	var found []string
	for _, name := range names {
		if strings.HasPrefix(name, typed) && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found
}

// unused removes the names that are already on the command line.
func unused(names, args []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) })
}

// Requested reports whether a shell requests completions.
func Requested(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// Flags sets the completion of the flags of a command and its subcommands. Commands without arguments offer no files.
func (c Completion) Flags(cmd *cobra.Command) {
	complete := func(f *pflag.Flag) {
		if _, done := cmd.GetFlagCompletionFunc(f.Name); done {
			return
		}
		if how := c.flag(f); how != nil {
			// It fails for an unknown flag or one with completion. This flag is neither.
			_ = cmd.RegisterFlagCompletionFunc(f.Name, how)
		}
	}
	cmd.PersistentFlags().VisitAll(complete)
	cmd.LocalNonPersistentFlags().VisitAll(complete)
	if cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 && !cmd.HasSubCommands() {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, sub := range cmd.Commands() {
		c.Flags(sub)
	}
}

// flag returns the completion of a flag; nil offers all files.
func (c Completion) flag(f *pflag.Flag) cobra.CompletionFunc {
	if value, ok := f.Value.(interface{ Words() []string }); ok {
		return Words(value.Words()...)
	}
	switch f.Name {
	case "filename", "configmap":
		return Manifests
	case "container", "target":
		return c.Containers
	case "namespace":
		return c.Namespaces
	case "state-dir", "log-root":
		return cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	case "snapshot", "save", "plan", "load", "containerd", "runtime-endpoint", "image-endpoint":
		return nil
	}
	return cobra.NoFileCompletions
}

// Images offers the images of applied pods.
func (c Completion) Images(
	_ *cobra.Command, args []string, typed string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []string
	for _, d := range c.applied() {
		for _, ref := range podspec.Containers(d.Pod) {
			if strings.HasPrefix(ref.Image, typed) {
				names = append(names, ref.Image)
			}
		}
	}
	slices.Sort(names)
	return unused(slices.Compact(names), args), noFiles
}

// Pulls offers manifests and images.
func (c Completion) Pulls(
	cmd *cobra.Command, args []string, typed string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	if isPath(typed) {
		return Manifests(cmd, args, typed)
	}
	names, directive := c.Images(cmd, args, typed)
	return append(names, manifestNames(typed)...), directive
}
