package commands

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/podctl/podctl/commands/config"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/runtime/kubeletconf"
	"github.com/podctl/podctl/runtime/machine"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/safefs"
)

// kubeletFiles returns the existing units that start a kubelet, and the existing files and directories where kubeadm,
// distributions, k3s, rke2 and microk8s store its settings. root is the root directory. A later file takes precedence.
func kubeletFiles(root string) (units, paths []string) {
	for _, unit := range []string{"kubelet", "k3s", "k3s-agent", "rke2-server", "rke2-agent"} {
		units = append(units, unitFiles(root, unit+".service")...)
	}
	for _, path := range []string{
		"/var/lib/kubelet/config.yaml", "/var/lib/kubelet/kubeadm-flags.env",
		"/etc/default/kubelet", "/etc/sysconfig/kubelet",
		"/etc/rancher/k3s/config.yaml", "/etc/rancher/k3s/config.yaml.d",
		"/var/lib/rancher/k3s/agent/etc/kubelet.conf.d",
		"/etc/rancher/rke2/config.yaml", "/etc/rancher/rke2/config.yaml.d",
		"/var/lib/rancher/rke2/agent/etc/kubelet.conf.d",
		"/var/snap/microk8s/current/args/kubelet",
	} {
		path = filepath.Join(root, path)
		if _, err := os.Stat(path); !safefs.NotExist(err) {
			paths = append(paths, path)
		}
	}
	return units, paths
}

// unitFiles returns the file of a unit and its drop-ins. As in systemd, a directory hides files of the same name in
// earlier ones, a link to /dev/null removes them, and the drop-ins are in the order of their names.
func unitFiles(root, unit string) (paths []string) {
	named := map[string]string{}
	for _, dir := range []string{"/usr/lib", "/usr/local/lib", "/run", "/etc"} {
		path := filepath.Join(root, dir, "systemd/system", unit)
		dropIns, _ := filepath.Glob(path + ".d/*.conf") // The pattern is valid.
		for _, file := range append(dropIns, path) {
			if _, err := os.Lstat(file); !safefs.NotExist(err) {
				named[filepath.Base(file)] = file
			}
		}
	}
	file := named[unit]
	delete(named, unit)
	for _, name := range slices.Sorted(maps.Keys(named)) {
		paths = append(paths, named[name])
	}
	if file != "" {
		paths = slices.Insert(paths, 0, file)
	}
	return slices.DeleteFunc(paths, func(path string) bool {
		target, err := filepath.EvalSymlinks(path)
		return err == nil && target == os.DevNull
	})
}

// Limits of the files of a kubelet.
const (
	kubeletFilesMax = 100
	// namedDepth limits chains of files that name further files.
	namedDepth = 3
)

// nodeDocument is the output of `doctor --node -o json`.
type nodeDocument struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Usable reports whether podctl can take the place of the kubelet.
	Usable bool `json:"usable"`
	kubeletconf.Report

	// Configuration is a configuration of podctl with the same effect.
	Configuration map[string]any `json:"configuration"`
}

// runDoctorNode examines the files of a kubelet. cmd is the command `podctl agent`, which has the flags.
func runDoctorNode(
	ctx context.Context, sess *session.Session, cmd *cobra.Command, o *doctorOptions, paths []string,
) error {
	files := kubeletconf.NewFiles()
	if err := readKubelet(ctx, files, o.kubeletArgs, paths); err != nil {
		return err
	}
	report := files.Examine()
	doc := nodeDocument{APIVersion: model.APIVersion, Kind: "KubeletSettings"}
	doc.Configuration = configurationOf(&report, cmd)
	doc.Report, doc.Usable = report, report.Usable()
	var err error
	if terminal.IsDocument(o.output) {
		err = terminal.WriteDocument(sess.IO.Out, o.output, doc)
	} else {
		err = printNode(sess, &doc)
	}
	if err == nil && !doc.Usable {
		err = exit.With(exit.Error)
	}
	return err
}

// readKubelet reads the settings of the kubelet. Without paths and arguments, these are those of the process of the
// kubelet, or else the usual files that exist.
func readKubelet(ctx context.Context, files *kubeletconf.Files, arguments string, paths []string) error {
	r := kubeletReader{files: files, seen: map[string]bool{}}
	if arguments != "" {
		words, err := kubeletconf.Words(arguments)
		if err != nil {
			return exit.Usagef("--kubelet-args: %v", err)
		}
		files.AddArguments("--kubelet-args", words)
	}
	if len(paths) == 0 && arguments == "" && !addProcess(files) {
		units, usual := kubeletFiles("/")
		if len(units)+len(usual) == 0 {
			return errors.New("no kubelet runs, and this machine has no files of a kubelet, k3s or rke2 in the usual " +
				"directories: name them, or pass the flags of the kubelet with --kubelet-args")
		}
		if err := r.addAll(ctx, units); err != nil {
			return err
		}
		paths = slices.DeleteFunc(usual, files.Unused)
	}
	if err := r.addAll(ctx, paths); err != nil {
		return err
	}
	if err := files.Check(); err != nil {
		return err
	}
	if files.Empty() {
		lines := append([]string{"the files have no settings of a kubelet"}, files.Notes...)
		return errors.New(strings.Join(lines, "\n"))
	}
	return nil
}

// addProcess adds the command line of the kubelet that runs. It reports whether there is one.
func addProcess(files *kubeletconf.Files) bool {
	pid, parent, found := machine.OwnKubelet("/proc")
	if !found {
		return false
	}
	words, err := commandLine(pid)
	if err != nil || len(words) < 2 { // It has ended.
		return false
	}
	files.AddArguments(fmt.Sprintf("the kubelet's process %d", pid), words[1:])
	if parent != "" {
		files.Notes = append(files.Notes, "the kubelet is a child of "+parent+": if that also starts the container "+
			"runtime or a network for pods, start them before podctl")
	}
	return true
}

// kubeletReader reads each file once.
type kubeletReader struct {
	files *kubeletconf.Files
	seen  map[string]bool
}

// addAll adds files and directories, and then those that they name.
func (r *kubeletReader) addAll(ctx context.Context, paths []string) error {
	for _, path := range paths {
		if err := r.add(ctx, path, ".conf", ".yaml", ".yml"); err != nil {
			return err
		}
	}
	for range namedDepth {
		for _, path := range r.files.Named() {
			switch err := r.add(ctx, path, ".conf"); {
			case safefs.NotExist(err) && strings.HasSuffix(path, ".d") && r.seen[strings.TrimSuffix(path, ".d")]:
				// A configuration of k3s needs no drop-ins.
			case safefs.NotExist(err):
				r.files.Notes = append(r.files.Notes, path+" does not exist")
			case err != nil:
				return err
			}
		}
	}
	return nil
}

// add adds a file, or the files of a directory with drop-ins that have one of the extensions.
func (r *kubeletReader) add(ctx context.Context, path string, extensions ...string) error {
	if r.seen[path] {
		return nil
	}
	if r.seen[path] = true; len(r.seen) > kubeletFilesMax {
		return fmt.Errorf("the kubelet has more than %d files", kubeletFilesMax)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return r.addDir(ctx, path, extensions)
	}
	text, err := input.ReadNamed(ctx, path, kubeletconf.MaxBytes)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return r.files.Add(path, text)
}

// addDir adds the drop-ins of a directory, in the order of their names. A kubelet also reads the directories below it,
// k3s does not (k3s: dotDFiles).
func (r *kubeletReader) addDir(ctx context.Context, dir string, extensions []string) error {
	base := filepath.Base(dir)
	ofK3s := strings.HasSuffix(base, ".yaml.d")
	switch {
	case ofK3s:
		extensions = []string{".yaml", ".yml"}
	case base == "kubelet.conf.d", strings.HasSuffix(base, ".service.d"):
		extensions = []string{".conf"}
	}
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if err == nil && ofK3s && path != dir {
				return fs.SkipDir
			}
			return err
		}
		if !slices.Contains(extensions, filepath.Ext(path)) {
			r.files.Notes = append(r.files.Notes, fmt.Sprintf("%s was not examined: only files *%s there have settings",
				path, strings.Join(extensions, ", *")))
			return nil
		}
		return r.add(ctx, path)
	})
}

// configurationOf returns a configuration file of podctl with the settings of a report. It refuses values that podctl
// does not accept.
func configurationOf(report *kubeletconf.Report, cmd *cobra.Command) map[string]any {
	global, own := cmd.Root().PersistentFlags(), map[string]any{}
	all, accepted := map[string]any{}, map[string]string{}
	dropUnused(report)
	shared := config.SettingsOf(global, cmd.Flags())
	for _, s := range report.Settings {
		if s.Value == "" {
			continue
		}
		section, flag := own, cmd.Flags().Lookup(s.Name)
		if found := shared.Lookup(s.Name); found != nil {
			section, flag = all, found
		}
		if err := accept(flag, s); err != nil {
			report.Change(s.Name, kubeletconf.Refused, err.Error()+".")
		} else {
			accepted[s.Name] = s.Value
		}
		if before, _ := section[s.Name].([]string); s.Name == "sources" {
			section[s.Name] = append(before, s.String())
		} else {
			section[s.Name] = typed(flag, s.String())
		}
	}
	checkTogether(report, accepted)
	if own["kubeconfig"] == nil {
		report.Notes = append(report.Notes, "no flag --kubeconfig was found: add kubeconfig to the agent's section of "+
			"the configuration, or the agent does not join the cluster")
	}
	if len(own) > 0 {
		all["agent"] = own
	}
	return all
}

// typed returns a value as a configuration has it.
func typed(flag *pflag.Flag, text string) any {
	if number, err := strconv.Atoi(text); err == nil && flag != nil && strings.HasPrefix(flag.Value.Type(), "int") {
		return number
	}
	if flag != nil && flag.Value.Type() == "bool" {
		return text == "true"
	}
	return text
}

// printNode prints the findings by their files, the configuration and the verdict.
func printNode(sess *session.Session, doc *nodeDocument) error {
	var b strings.Builder
	lines, origins := map[string]string{}, []string{}
	for i := range doc.Findings {
		f := &doc.Findings[i]
		if f.Result == kubeletconf.Same {
			continue
		}
		if lines[f.Origin] == "" {
			origins = append(origins, f.Origin)
		}
		lines[f.Origin] += "  " + findingText(sess.IO.OutColors(), f) + "\n"
	}
	for _, origin := range origins {
		b.WriteString(terminal.PrintableLine(origin) + ":\n" + lines[origin])
	}
	for _, note := range doc.Notes {
		b.WriteString(terminal.PrintableLine(note) + "\n")
	}
	if n := doc.Count(kubeletconf.Same); n > 0 {
		fmt.Fprintf(&b, "%s %s the value that podctl uses anyway.\n", view.Count(n, "other setting"), has(n))
	}
	b.WriteString("\nConfiguration of podctl (/etc/podctl/config.yaml):\n\n")
	if _, err := fmt.Fprint(sess.IO.Out, b.String()); err != nil {
		return err
	}
	if err := terminal.WriteDocument(sess.IO.Out, "yaml", doc.Configuration); err != nil {
		return err
	}
	_, err := fmt.Fprintln(sess.IO.Out, "\n"+nodeVerdict(doc))
	return err
}

func has(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

func findingText(colors terminal.Colors, f *kubeletconf.Finding) string {
	name := f.Name
	if f.Value != "" {
		name += ": " + f.Value
	}
	text := ""
	switch f.Result {
	case kubeletconf.Honoured:
		return colors.Green("✓") + " " + terminal.PrintableLine(fmt.Sprintf("%s → --%s", name, f.Setting))
	case kubeletconf.NoEffect:
		return colors.Yellow("!") + " " + terminal.PrintableLine(fmt.Sprintf("%s has no effect. %s", name, f.Note))
	case kubeletconf.Refused:
		text = "is not possible with podctl."
	case kubeletconf.Invalid:
		text = "is not valid."
	case kubeletconf.Same:
	}
	return colors.Red("✗") + " " + terminal.PrintableLine(fmt.Sprintf("%s %s %s", name, text, f.Note))
}

func nodeVerdict(doc *nodeDocument) string {
	text := "This kubelet can be replaced by podctl"
	if !doc.Usable {
		n := doc.Count(kubeletconf.Refused) + doc.Count(kubeletconf.Invalid)
		text = "This kubelet cannot be replaced by podctl: " + view.Count(n, "problem")
	}
	if n := doc.Count(kubeletconf.NoEffect); n > 0 {
		text += fmt.Sprintf("; %s would have no effect", view.Count(n, "setting"))
	}
	return text + "."
}
