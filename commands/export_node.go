package commands

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/podctl/podctl/commands/agent"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/runtime/kubeletconf"
)

// argumentsMax limits the command line of a process, in bytes. It is the limit of Linux.
const argumentsMax = 2 << 20

// exportNode prints the configuration of a kubelet for the node of this machine's agent, and what a user must know
// before the kubelet takes the place of the agent. The settings are those of the agent that runs, or else of the
// configuration. cmd is the command `podctl agent`, which has the flags.
func exportNode(ctx context.Context, sess *session.Session, cmd *cobra.Command, output string) error {
	sources, byHand, err := agentSettings(ctx, sess, cmd)
	if err != nil {
		return err
	}
	settings := kubeletconf.Agent{Values: map[string]string{}, Sources: sources}
	read := func(f *pflag.Flag) { settings.Values[f.Name] = f.Value.String() }
	cmd.Root().PersistentFlags().VisitAll(read)
	cmd.Flags().VisitAll(read)
	if engine, failure := sess.Engine(); failure == nil {
		settings.SystemdCgroup = new(engine.Host.Node().SystemdCgroup)
		settings.Values["runtime-endpoint"] = engine.Client.Endpoint.Address
	}
	e := kubeletconf.Export(settings)
	if err = terminal.WriteDocument(sess.IO.Out, cmp.Or(output, "yaml"), e.Configuration); err != nil {
		return err
	}
	sess.IO.Note("Run the kubelet with this configuration and:\n  kubelet --config=FILE %s", strings.Join(e.Flags, " "))
	files := kubeletconf.NewFiles()
	if err = readKubelet(ctx, files, "", nil); err != nil {
		files = kubeletconf.NewFiles() // There are none, or a part is not readable.
	}
	for _, note := range slices.Concat(e.Notes, lostNotes(files), nodeNotes(sess, byHand)) {
		sess.IO.Note("note: %s", note)
	}
	return nil
}

// lostNotes names the settings that the configuration of the kubelet does not have, because podctl lacks them: those in
// the kubelet's own files, if there are any.
func lostNotes(files *kubeletconf.Files) []string {
	if files.Empty() {
		return []string{"settings that podctl does not have are not in this configuration: " +
			"`podctl doctor --node FILE` lists those of an earlier configuration of the kubelet (!)"}
	}
	report := files.Examine()
	var lost []string
	for i := range report.Findings {
		if f := &report.Findings[i]; f.Result == kubeletconf.NoEffect || f.Result == kubeletconf.Refused {
			lost = append(lost, f.Name)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return []string{"these settings in the files of this machine's kubelet are not in this configuration, because " +
		"podctl does not have them: " + strings.Join(lost, ", ") + " (`podctl doctor --node` shows their values)"}
}

// nodeNotes returns what a user must know before a kubelet takes the place of the agent.
func nodeNotes(sess *session.Session, byHand []string) []string {
	notes := []string{
		fmt.Sprintf("these files stay: %s with volumes, certificates and records, and the logs in %s",
			sess.Flags.StateDir, sess.Flags.LogRoot),
		"`podctl export POD` lists what prevents the takeover of a pod from a file; " +
			"add metadata.uid from there to the file, or the kubelet creates the pod again",
		"a kubelet runs pods only: workloads, Services, ConfigMaps and Secrets of files have no effect",
	}
	if len(byHand) > 0 {
		notes = append(notes, "a kubelet kills these pods, which are not from a file: "+strings.Join(byHand, ", "))
	}
	return append(notes, mountNotes(sess.Flags.StateDir)...)
}

// agentSettings sets the flags of the agent that runs, and returns its sources and the pods that no source has.
func agentSettings(
	ctx context.Context, sess *session.Session, cmd *cobra.Command,
) (sources, byHand []string, err error) {
	status, _ := sess.AgentStatus(ctx)
	if status == nil {
		sess.IO.Note("note: no agent runs; these are the settings of the configuration")
	} else {
		arguments, failure := argumentsOf(status.PID)
		if err = cmp.Or(failure, cmd.ParseFlags(arguments)); err != nil {
			return nil, nil, fmt.Errorf("reading the command line of the agent: %w", err)
		}
		for i := range status.Pods {
			if p := &status.Pods[i]; p.Source == "" {
				byHand = append(byHand, p.Namespace+"/"+p.Name)
			}
		}
	}
	if err = shareSettings(sess, cmd.Flags()); err != nil {
		return nil, nil, err
	}
	configured, err := cmd.Flags().GetStringArray("sources")
	if err != nil {
		return nil, nil, err
	}
	return agent.SourceNames(cmd.Flags().Args(), configured), byHand, nil
}

// shareSettings sets the flags of the agent that a configuration has outside of the agent's section.
func shareSettings(sess *session.Session, set *pflag.FlagSet) (err error) {
	for name, setting := range sess.Flags.Settings {
		if flag := set.Lookup(name); flag != nil && !flag.Changed && setting.Value != "" {
			err = errors.Join(err, flag.Value.Set(setting.Value))
		}
	}
	return err
}

// argumentsOf returns the arguments of an agent, without its program and the word agent.
func argumentsOf(pid int) ([]string, error) {
	words, err := commandLine(pid)
	if err != nil {
		return nil, err
	}
	words = words[1:]
	if i := slices.Index(words, "agent"); i >= 0 {
		words = slices.Delete(words, i, i+1)
	}
	return words, nil
}

// commandLine returns the words of the command line of a process, at least one.
func commandLine(pid int) ([]string, error) {
	f, err := os.Open(filepath.Join("/proc", fmt.Sprint(pid), "cmdline"))
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := input.ReadAtMost(f, argumentsMax)
	return strings.Split(string(bytes.TrimSuffix(text, []byte{0})), "\x00"), err
}
