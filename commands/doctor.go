package commands

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/runtime/diagnose"
	"github.com/podctl/podctl/runtime/doctor"
	"github.com/podctl/podctl/runtime/model"
)

type doctorOptions struct {
	output string
	bundle string
}

// doctorDocument is the output of `doctor -o json`.
type doctorDocument struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	TakenAt    time.Time      `json:"takenAt"`
	Podctl     string         `json:"podctl"`
	CanRunPods bool           `json:"canRunPods"`
	Checks     []doctor.Check `json:"checks"`
	Facts      *doctor.Facts  `json:"facts"`
}

func newDoctor(sess *session.Session) *cobra.Command {
	o := &doctorOptions{}
	cmd := &cobra.Command{
		Use:   "doctor [flags]",
		Short: "Check whether this machine can run pods",
		Long: "Check the container runtime, the machine and podctl's state directory. " +
			"Print advice for each problem (✗) and\nwarning (!). " +
			"Nothing is changed.\n" +
			"\n" +
			"--bundle writes one archive for a bug report: " +
			"the checks, the version, snapshots and plans of all pods that podctl\napplied, and its checkpoints. " +
			"Values of Secrets are left out everywhere. " +
			"Everything else in the manifests is included." +
			flags.ExitCodes("0 pods can run", "1 pods cannot run, or an error"),
		Example: "  podctl doctor\n  podctl doctor --bundle report.tar.gz",
		Args:    flags.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd.Context(), sess, o) },
	}
	f := cmd.Flags()
	f.VarP(flags.Output(&o.output, "json", "yaml"), "output", "o", "Output format: text, json or yaml")
	f.StringVar(&o.bundle, "bundle", "", "Write an archive for a bug report to this file (.tar.gz)")
	return cmd
}

func runDoctor(ctx context.Context, sess *session.Session, o *doctorOptions) error {
	engine, err := sess.Engine()
	client, _ := sess.Client() // Engine returns the same error.
	if client != nil {
		client.Starting = nil // Report the current state instead of waiting for a start.
	}
	facts := diagnose.Diagnose(ctx, diagnose.Diagnosis{
		Client: client,
		Err:    err,
		Layout: sess.Flags.Layout(),
		Now:    sess.IO.Now(),
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	facts.APIServer = apiServer(ctx, sess)
	facts.Redact(sess.Redactor().Text)
	checks := doctor.Examine(facts)
	doc := doctorDocument{
		APIVersion: model.APIVersion, Kind: "Doctor", TakenAt: facts.Time.UTC().Round(0), Podctl: version,
		CanRunPods: doctor.CanRun(checks), Checks: checks, Facts: facts,
	}
	if terminal.IsDocument(o.output) {
		err = terminal.WriteDocument(sess.IO.Out, o.output, doc)
	} else {
		_, err = fmt.Fprint(sess.IO.Out, doctorText(sess.IO.OutColors(), &doc))
	}
	if err != nil {
		return err
	}
	if o.bundle != "" {
		if err := writeBundle(ctx, sess, o.bundle, engine, &doc); err != nil {
			return err
		}
		sess.IO.Note("%s written, without values of Secrets; check it before you send it", o.bundle)
	}
	if !doc.CanRunPods {
		return exit.With(exit.Error)
	}
	return nil
}

// apiServer returns the API server of the machine's agent; nil if no agent answers, or it has none.
func apiServer(ctx context.Context, sess *session.Session) *doctor.APIServer {
	status, _ := sess.AgentStatus(ctx)
	if status == nil || status.Cluster == nil {
		return nil
	}
	server := status.Cluster.APIServer
	return &doctor.APIServer{Address: server.Address, Problem: server.Error, Refusal: server.Refusal}
}

// doctorText returns one line per check. A check that has not passed has a second line with advice.
func doctorText(p terminal.Colors, doc *doctorDocument) string {
	var b strings.Builder
	for _, c := range doc.Checks {
		fmt.Fprintf(&b, "%s %-13s %s\n", resultSymbol(p, c.Result), c.Name, terminal.PrintableLine(c.Found))
		if c.Advice != "" {
			fmt.Fprintf(&b, "  %-13s → %s\n", "", terminal.PrintableLine(c.Advice))
		}
	}
	b.WriteString("\n" + verdict(doc) + "\n")
	return b.String()
}

func resultSymbol(p terminal.Colors, r doctor.Result) string {
	switch r {
	case doctor.OK:
		return p.Green("✓")
	case doctor.Warning:
		return p.Yellow("!")
	case doctor.Failed:
	}
	return p.Red("✗")
}

func verdict(doc *doctorDocument) string {
	problems, warnings := doctor.Count(doc.Checks, doctor.Failed), doctor.Count(doc.Checks, doctor.Warning)
	text := "Pods can run on this machine"
	if !doc.CanRunPods {
		text = "Pods cannot run on this machine: " + view.Count(problems, "problem")
	}
	if warnings > 0 {
		text += ", " + view.Count(warnings, "warning")
	}
	return text + "."
}
