package agent

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/state"
)

func newStatus(sess *session.Session) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "status [flags]",
		Short: "Show what the agent does",
		Long: "Show the sources of the agent with their problems, and each pod and workload that it keeps: where it came from, what it\n" +
			"waits for and until when, and why its last pass failed." +
			flags.ExitCodes("0 success", "1 error, for example no agent runs"),
		Example: "  podctl agent status\n  podctl agent status -o json | jq '.pods[] | select(.error)'",
		Args:    flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := client(sess).Status(cmd.Context())
			if err != nil {
				return err
			}
			if terminal.IsDocument(output) {
				return terminal.WriteDocument(sess.IO.Out, output, s)
			}
			return show(sess.IO, s)
		},
	}
	cmd.Flags().VarP(flags.Output(&output, "json", "yaml"), "output", "o", "Output format: text, json or yaml")
	return cmd
}

func newReload(sess *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:   "reload",
		Short: "Let the agent read its configuration and sources again",
		Long: "Let the agent read its configuration again, as the signal SIGHUP does. If that has changed the agent starts again,\n" +
			"which no pod notices; else it reads every source now. A wrong configuration changes nothing. The command waits up to\n" +
			"three seconds for the sources, and names those that are still being read then." +
			flags.ExitCodes("0 success", "1 error, for example no agent runs or the configuration is wrong"),
		Example: "  podctl agent reload",
		Args:    flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			done, err := client(sess).Reload(cmd.Context())
			if err != nil {
				return err
			}
			for _, name := range done.Reading {
				sess.IO.Note("The source %s is still being read; podctl agent status shows the result.", name)
			}
			return nil
		},
	}
}

// client asks the agent of the state directory.
func client(sess *session.Session) api.Client {
	return api.Client{Socket: sess.Flags.Layout().AgentSocket()}
}

// show prints a status for people.
func show(io *terminal.IO, s *api.Status) error {
	io.Print("agent is running: pid %d, since %s, %s", s.PID, s.StartedAt.Local().Format(time.DateTime), runtimeText(&s.Runtime))
	if len(s.Pressure) > 0 {
		io.Print("the node has %s: pods may be evicted, and new ones rejected", strings.Join(s.Pressure, ", "))
	}
	for _, one := range s.Sources {
		io.Print("source %s: %s", one.Name, sourceText(&one))
		showProblems(io, one.Problems)
	}
	showProblems(io, s.Problems)
	if len(s.Pods) == 0 {
		io.Note("No pods.")
		return showWorkloads(io, s.Workloads)
	}
	rows := make([][]string, 0, len(s.Pods))
	for i := range s.Pods {
		p := &s.Pods[i]
		rows = append(rows, []string{p.Namespace, p.Name, cmp.Or(p.File, "-"), doing(p), next(p, io.Now()), waiting(p)})
	}
	err := terminal.Table(io.Out, []string{"NAMESPACE", "NAME", "FILE", "DOING", "NEXT", "WAITS FOR"}, rows)
	return errors.Join(err, showWorkloads(io, s.Workloads))
}

// showWorkloads prints the workloads below the pods.
func showWorkloads(io *terminal.IO, workloads []api.Workload) error {
	if len(workloads) == 0 {
		return nil
	}
	rows := make([][]string, 0, len(workloads))
	for i := range workloads {
		w := &workloads[i]
		from := w.File
		if w.Source == "" {
			from = "-"
		}
		texts := w.Waiting
		if w.Error != "" {
			texts = append([]string{w.Error}, texts...)
		}
		name := state.ObjectKey{Kind: w.Kind}.Word() + "/" + w.Name
		rows = append(rows, []string{w.Namespace, name, from, strconv.Itoa(w.Pods), cmp.Or(oneLine(texts), "-")})
	}
	io.Print("")
	return terminal.Table(io.Out, []string{"NAMESPACE", "WORKLOAD", "FILE", "PODS", "WAITS FOR"}, rows)
}

func oneLine(texts []string) string {
	return strings.Join(strings.Fields(strings.Join(texts, "; ")), " ")
}

func showProblems(io *terminal.IO, problems []api.Problem) {
	for _, p := range problems {
		io.Print("  %s: %s", p.File, p.Text)
	}
}

func runtimeText(r *api.Runtime) string {
	if r.Answers {
		return r.Endpoint + " answers"
	}
	return fmt.Sprintf("%s does not answer: %s", r.Endpoint, cmp.Or(r.Error, "it was not asked yet"))
}

func sourceText(s *api.Source) string {
	if !s.Read {
		return "not read yet"
	}
	parts := []string{counted(s.Pods, "pod")}
	for _, more := range []struct {
		n    int
		what string
	}{{s.Workloads, "workload"}, {s.Objects, "stored object"}} {
		if more.n > 0 {
			parts = append(parts, counted(more.n, more.what))
		}
	}
	return strings.Join(parts, ", ")
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// doing is what the agent does with a pod now.
func doing(p *api.Pod) string {
	switch {
	case p.Doing == "terminate":
		return "deleting"
	case p.Doing == "stop":
		return "stopping"
	case p.Doing == "evict":
		return "evicting"
	case p.Doing != "":
		return "pass"
	case p.Deleting:
		return "to be deleted"
	}
	return "-"
}

// next is how long until the pod is looked at if nothing happens.
func next(p *api.Pod, now time.Time) string {
	if p.NextPass.IsZero() {
		return "-"
	}
	return max(p.NextPass.Sub(now), 0).Round(time.Second).String()
}

// waiting is what a pod waits for, or why its last pass failed.
func waiting(p *api.Pod) string {
	texts := p.Waiting
	if p.WaitsFor != "" {
		texts = append(texts, "the end of the pod with uid "+p.WaitsFor)
	}
	if p.Error != "" {
		texts = append([]string{p.Error}, texts...)
	}
	return cmp.Or(oneLine(texts), "-")
}
