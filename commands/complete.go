package commands

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/model"
)

// Completion answers from the journals alone: a shell waits for it, so no runtime
// is asked, and what goes wrong offers nothing instead of writing into the prompt.
//
// A command names what its arguments are: ValidArgsFunction is completeManifests,
// completePods, completePod, completeTargets, completePodThenContainer or one beside
// them. Flags complete by their type (choice) or by their name, see flagCompletion; a
// command whose flag has words of its own registers completeWords.

const (
	noFiles   = cobra.ShellCompDirectiveNoFileComp
	onlyFiles = cobra.ShellCompDirectiveFilterFileExt
)

// manifestEndings are the file names that are manifests.
func manifestEndings() []string { return []string{"yaml", "yml", "json"} }

// completeManifests offers the files that can be manifests, and directories.
func completeManifests(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return manifestEndings(), onlyFiles
}

// completePods offers the pods that podctl applied, for commands that take no
// manifest.
func (g *globals) completePods(_ *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return unused(g.podNames(typed), args), noFiles
}

// completePod is completePods for a command that takes one.
func (g *globals) completePod(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, noFiles
	}
	return g.completePods(cmd, args, typed)
}

// completeTargets offers pods and manifests, for commands that take both. What can
// only be a path is left to the shell, which knows how to quote it.
func (g *globals) completeTargets(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if isPath(typed) {
		return completeManifests(cmd, args, typed)
	}
	names := append(g.podNames(typed), manifestNames(typed)...)
	directive := noFiles
	if len(names) == 1 && strings.HasSuffix(names[0], "/") {
		directive |= cobra.ShellCompDirectiveNoSpace
	}
	return unused(names, args), directive
}

// completePodThenContainer offers pods and manifests, and after one of them the
// containers it has.
func (g *globals) completePodThenContainer(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return g.completeTargets(cmd, args, typed)
	case 1:
		return g.completeContainers(cmd, args, typed)
	}
	return nil, noFiles
}

// completePodThenContainers is completePodThenContainer for several of them.
func (g *globals) completePodThenContainers(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return g.completeTargets(cmd, args, typed)
	}
	names, directive := g.completeContainers(cmd, args[:1], typed)
	return unused(names, args[1:]), directive
}

// completeCopy offers pods, with the colon that a path in them comes after, and
// where none begins so the shell's own files.
func (g *globals) completeCopy(_ *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 1 || strings.Contains(typed, ":") {
		return nil, noFiles
	}
	names := g.podNames(typed)
	for i := range names {
		names[i] += ":"
	}
	return names, cobra.ShellCompDirectiveNoSpace
}

// completeContainers offers the containers of what the command line names: of
// every pod in the namespace when it names nothing.
func (g *globals) completeContainers(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if files, err := cmd.Flags().GetStringSlice("filename"); err == nil {
		args = append(slices.Clone(args), files...)
	}
	var names []string
	for _, d := range g.completionPods(cmd, args) {
		for _, c := range podspec.Containers(d.Pod) {
			names = append(names, c.Name)
		}
	}
	return starting(names, typed), noFiles
}

// completeNamespaces offers the namespaces that have pods of podctl's.
func (g *globals) completeNamespaces(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	names := []string{"default"}
	for _, d := range g.appliedQuietly() {
		names = append(names, d.Pod.Namespace)
	}
	return starting(names, typed), noFiles
}

// completeWords offers a few words. One that waits for more gets no blank.
func completeWords(words ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		found := starting(words, typed)
		if len(found) == 1 && strings.HasSuffix(found[0], "=") {
			return found, noFiles | cobra.ShellCompDirectiveNoSpace
		}
		return found, noFiles
	}
}

// appliedQuietly lists what podctl applied; journals that cannot be read are left
// out without a word.
func (g *globals) appliedQuietly() []*podspec.Desired {
	applied, _, err := runtime.Applied(g.layout())
	if err != nil {
		return nil
	}
	pods := make([]*podspec.Desired, 0, len(applied))
	for _, p := range applied {
		pods = append(pods, p.Desired)
	}
	return pods
}

// podNames lists the pods whose name begins with what was typed: short ones in the
// namespace, with the namespace in front those of others.
func (g *globals) podNames(typed string) []string {
	var names []string
	for _, d := range g.appliedQuietly() {
		if d.Pod.Namespace == g.namespace {
			names = append(names, d.Pod.Name)
		}
		if d.Pod.Namespace != g.namespace || strings.Contains(typed, "/") {
			names = append(names, model.RefOf(d.Pod).String())
		}
	}
	return starting(names, typed)
}

// completionPods finds what the command line names, and leaves out what is not
// there. Standard input and the network are not read.
func (g *globals) completionPods(cmd *cobra.Command, args []string) []*podspec.Desired {
	applied := g.appliedQuietly()
	if len(args) == 0 {
		return slices.DeleteFunc(applied, func(d *podspec.Desired) bool { return d.Pod.Namespace != g.namespace })
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
			if d, err := runtime.FindPod(applied, g.namespace, arg); err == nil {
				pods = append(pods, d)
			}
		}
	}
	return pods
}

// isPath tells that a word can be nothing but a path.
func isPath(typed string) bool {
	return strings.HasPrefix(typed, ".") || strings.HasPrefix(typed, "/") || strings.HasPrefix(typed, "~")
}

// manifestNames lists the manifests and directories that begin with what was typed.
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

// starting leaves the names that begin with what was typed, each once.
func starting(names []string, typed string) []string {
	var found []string
	for _, name := range names {
		if strings.HasPrefix(name, typed) && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found
}

// unused leaves out what stands on the command line already.
func unused(names, args []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) })
}

// completing tells that a shell asks for completions: nobody else needs them.
func completing(args []string) bool {
	return len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
}

// completeFlags gives the flags of a command and of those below it their
// completion, and no files to commands that take no arguments.
func (g *globals) completeFlags(cmd *cobra.Command) {
	complete := func(f *pflag.Flag) {
		if _, done := cmd.GetFlagCompletionFunc(f.Name); done {
			return
		}
		if how := g.flagCompletion(f); how != nil {
			// It fails for a flag that does not exist or is done, and this one is neither.
			_ = cmd.RegisterFlagCompletionFunc(f.Name, how)
		}
	}
	cmd.PersistentFlags().VisitAll(complete)
	cmd.LocalNonPersistentFlags().VisitAll(complete)
	if cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 && !cmd.HasSubCommands() {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, sub := range cmd.Commands() {
		g.completeFlags(sub)
	}
}

// flagCompletion is how a flag completes; nil for any file.
func (g *globals) flagCompletion(f *pflag.Flag) cobra.CompletionFunc {
	switch value := f.Value.(type) {
	case *choice:
		return completeWords(value.words()...)
	case *pathOutput:
		return completeWords(append(value.words(), jsonPathPrefix)...)
	}
	switch f.Name {
	case "filename":
		return completeManifests
	case "container", "target":
		return g.completeContainers
	case "namespace":
		return g.completeNamespaces
	case "state-dir", "log-root":
		return cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	case "snapshot", "save", "plan", "load", "containerd", "runtime-endpoint", "image-endpoint":
		return nil
	}
	return cobra.NoFileCompletions
}

// words are what the flag takes, without the empty one that stands for none.
func (c *choice) words() []string {
	return slices.DeleteFunc(slices.Clone(c.allowed), func(word string) bool { return word == "" })
}

// completeImages offers the images that pods which podctl applied name.
func (g *globals) completeImages(_ *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	pods, _, err := runtime.Applied(g.layout())
	if err != nil {
		return nil, noFiles
	}
	var names []string
	for _, p := range pods {
		for _, ref := range podspec.Containers(p.Desired.Pod) {
			if strings.HasPrefix(ref.Image, typed) {
				names = append(names, ref.Image)
			}
		}
	}
	slices.Sort(names)
	return unused(slices.Compact(names), args), noFiles
}

// completePulls offers manifests and images.
func (g *globals) completePulls(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if isPath(typed) {
		return completeManifests(cmd, args, typed)
	}
	names, directive := g.completeImages(cmd, args, typed)
	return append(names, manifestNames(typed)...), directive
}
