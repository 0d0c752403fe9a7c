package commands

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/program"
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
	// node examines the settings of a kubelet. kubeletArgs are flags of its command line.
	node        bool
	kubeletArgs string
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

func newDoctor(sess *session.Session, agent *cobra.Command) *cobra.Command {
	o := &doctorOptions{}
	cmd := &cobra.Command{
		Use:   "doctor [flags] [--node [FILE|DIRECTORY...]]",
		Short: "Check whether this machine can run pods",
		Long: "Check the container runtime, the machine and podctl's state directory. " +
			"Print advice for each problem (✗) and\nwarning (!). " +
			"Nothing is changed.\n" +
			"\n" +
			"--bundle writes one archive for a bug report: " +
			"the checks, the version, snapshots and plans of all pods that podctl\napplied, and its checkpoints. " +
			"Values of Secrets are left out everywhere. " +
			"Everything else in the manifests is included.\n" +
			"\n" +
			"--node examines the settings of the kubelet of this machine instead, before podctl takes over its node. " +
			"It reads the\nflags of the kubelet's process, or else the files of kubeadm, systemd, k3s and rke2, " +
			"or the given files and directories:\nconfigurations of a kubelet, units, " +
			"files of variables and configurations of k3s.\n" +
			"For each setting it prints the flag of podctl with the same effect (✓), what podctl\n" +
			"does in its place (!), or that podctl cannot be used with it (✗). " +
			"Then it prints a configuration of podctl." +
			flags.ExitCodes("0 pods can run; with --node, podctl can take over", "1 they cannot, or an error"),
		Example: "  podctl doctor\n  podctl doctor --bundle report.tar.gz\n" +
			"  podctl doctor --node\n" +
			"  podctl doctor --node --kubelet-args '--max-pods=200 --cluster-dns=10.96.0.10' kubelet.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.node && o.bundle != "":
				return exit.Usagef("--node and --bundle exclude each other")
			case o.node:
				return runDoctorNode(cmd.Context(), sess, agent, o, args)
			case o.kubeletArgs != "":
				return exit.Usagef("--kubelet-args needs --node")
			case len(args) > 0:
				return exit.Usagef("%s takes arguments only with --node", cmd.CommandPath())
			}
			return runDoctor(cmd.Context(), sess, o)
		},
	}
	f := cmd.Flags()
	f.VarP(flags.Output(&o.output, "json", "yaml"), "output", "o", "Output format: text, json or yaml")
	f.StringVar(&o.bundle, "bundle", "", "Write an archive for a bug report to this file (.tar.gz)")
	f.BoolVar(&o.node, "node", false, "Examine the settings of the kubelet of this machine, or of the given files")
	f.StringVar(&o.kubeletArgs, "kubelet-args", "", "Flags of the kubelet, in one argument")
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
		APIVersion: model.APIVersion, Kind: "Doctor", TakenAt: facts.Time.UTC().Round(0), Podctl: program.Version(),
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
