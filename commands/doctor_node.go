package commands

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/safefs"
)

// kubeletFiles returns the files and directories where kubeadm, distributions and k3s store the settings of a kubelet.
// A later file takes precedence, as in systemd and in the kubelet.
func kubeletFiles() []string {
	return []string{
		"/usr/lib/systemd/system/kubelet.service", "/etc/systemd/system/kubelet.service",
		"/usr/lib/systemd/system/kubelet.service.d", "/etc/systemd/system/kubelet.service.d",
		"/var/lib/kubelet/config.yaml", "/var/lib/kubelet/kubeadm-flags.env",
		"/etc/default/kubelet", "/etc/sysconfig/kubelet",
		"/etc/rancher/k3s/config.yaml", "/etc/rancher/k3s/config.yaml.d",
		"/var/lib/rancher/k3s/agent/etc/kubelet.conf.d",
	}
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

// runDoctorNode examines the files of a kubelet. agent has the flags of podctl's agent.
func runDoctorNode(
	ctx context.Context, sess *session.Session, agent *cobra.Command, o *doctorOptions, paths []string,
) error {
	files := kubeletconf.NewFiles()
	if err := readKubelet(ctx, files, o.kubeletArgs, paths); err != nil {
		return err
	}
	report := files.Examine()
	doc := nodeDocument{APIVersion: model.APIVersion, Kind: "KubeletSettings"}
	doc.Configuration = configurationOf(&report, agent)
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

// readKubelet reads the files of the kubelet. Without paths and arguments, these are the usual ones that exist.
func readKubelet(ctx context.Context, files *kubeletconf.Files, arguments string, paths []string) error {
	r := kubeletReader{files: files, seen: map[string]bool{}}
	if arguments != "" {
		words, err := kubeletconf.Words(arguments)
		if err != nil {
			return exit.Usagef("--kubelet-args: %v", err)
		}
		files.AddArguments("--kubelet-args", words)
	}
	if len(paths) == 0 && arguments == "" {
		paths = slices.DeleteFunc(kubeletFiles(), func(path string) bool {
			_, err := os.Stat(path)
			return safefs.NotExist(err)
		})
		if len(paths) == 0 {
			return fmt.Errorf("this machine has no files of a kubelet (%s): name them",
				strings.Join(kubeletFiles(), ", "))
		}
	}
	for _, path := range paths {
		if err := r.add(ctx, path); err != nil {
			return err
		}
	}
	for range namedDepth {
		for _, path := range files.Named() {
			switch err := r.add(ctx, path); {
			case safefs.NotExist(err):
				files.Notes = append(files.Notes, path+" does not exist")
			case err != nil:
				return err
			}
		}
	}
	return files.Check()
}

// kubeletReader reads each file once.
type kubeletReader struct {
	files *kubeletconf.Files
	seen  map[string]bool
}

// add adds a file, or the files of a directory with drop-ins.
func (r *kubeletReader) add(ctx context.Context, path string) error {
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
		return r.addDir(ctx, path)
	}
	text, err := input.ReadNamed(ctx, path, kubeletconf.MaxBytes)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return r.files.Add(path, text)
}

// addDir adds the drop-ins of a directory and of those below it, in the order of their names.
func (r *kubeletReader) addDir(ctx context.Context, dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if !slices.Contains([]string{".conf", ".yaml", ".yml"}, filepath.Ext(path)) {
			return nil
		}
		return r.add(ctx, path)
	})
}

// configurationOf returns a configuration file of podctl with the settings of a report. A value that podctl does not
// accept makes its findings invalid.
func configurationOf(report *kubeletconf.Report, agent *cobra.Command) map[string]any {
	global, own := agent.Root().PersistentFlags(), map[string]any{}
	all := map[string]any{}
	shared := config.SettingsOf(global, agent.Flags())
	for _, s := range report.Settings {
		section, flag := own, agent.Flags().Lookup(s.Name)
		if found := shared.Lookup(s.Name); found != nil {
			section, flag = all, found
		}
		if err := accept(flag, s); err != nil {
			report.Refuse(s.Name, "podctl does not accept the value: "+err.Error()+".")
		}
		if before, _ := section[s.Name].([]string); s.Name == "sources" {
			section[s.Name] = append(before, s.String())
		} else {
			section[s.Name] = typed(flag, s.String())
		}
	}
	if len(own) > 0 {
		all["agent"] = own
	}
	return all
}

// accept checks a value with the flag of podctl.
func accept(flag *pflag.Flag, s kubeletconf.Setting) error {
	if flag == nil {
		return errors.New("there is no --" + s.Name)
	}
	return flag.Value.Set(s.Value)
}

// typed returns a value as a configuration has it.
func typed(flag *pflag.Flag, text string) any {
	if number, err := strconv.Atoi(text); err == nil && flag != nil && flag.Value.Type() == "int" {
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
