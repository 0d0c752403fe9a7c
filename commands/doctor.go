package commands

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fatih/color"
	"github.com/spf13/cobra"

	"github.com/podctl/podctl/runtime/diagnose"
	"github.com/podctl/podctl/runtime/doctor"
	"github.com/podctl/podctl/runtime/model"
)

type doctorOptions struct {
	output string
	bundle string
}

// doctorDocument is `doctor -o json`.
type doctorDocument struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	TakenAt    time.Time      `json:"takenAt"`
	Podctl     string         `json:"podctl"`
	CanRunPods bool           `json:"canRunPods"`
	Checks     []doctor.Check `json:"checks"`
	Facts      *doctor.Facts  `json:"facts"`
}

func newDoctor(g *globals) *cobra.Command {
	o := &doctorOptions{}
	cmd := &cobra.Command{
		Use:   "doctor [flags]",
		Short: "Tell whether this machine can run pods, and what to do if not",
		Long: "Look at the runtime, the machine and podctl's state directory, and say what stands in the way of pods (✗) or\n" +
			"will not be as it should (!), and what to do about it. Nothing is changed.\n\n" +
			"--bundle writes what a bug report needs into one archive: this, the version, snapshots and plans of all pods that\n" +
			"podctl applied, and its journals. Values of Secrets are left out, wherever they occur; what manifests have\n" +
			"outside of Secrets is in it." +
			exitCodes("0 pods can run", "1 they cannot, or an error"),
		Example: "  podctl doctor\n  podctl doctor --bundle report.tar.gz",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd.Context(), g, o) },
	}
	f := cmd.Flags()
	f.VarP(outputFlag(&o.output, "json", "yaml"), "output", "o", "Output format: text, json or yaml")
	f.StringVar(&o.bundle, "bundle", "", "Write an archive (.tar.gz) for a bug report to this file")
	return cmd
}

func runDoctor(ctx context.Context, g *globals, o *doctorOptions) error {
	engine, err := g.connect()
	facts := diagnose.Diagnose(ctx, diagnose.Diagnosis{Client: g.client, Err: err, Layout: g.layout(), Now: g.env.Now()})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	facts.Redact(g.redacted().Text)
	checks := doctor.Examine(facts)
	doc := doctorDocument{
		APIVersion: model.APIVersion, Kind: "Doctor", TakenAt: facts.Time.UTC().Round(0), Podctl: version,
		CanRunPods: doctor.CanRun(checks), Checks: checks, Facts: facts,
	}
	if err := g.showDoctor(o, &doc); err != nil {
		return err
	}
	if o.bundle != "" {
		if err := g.writeBundle(ctx, o.bundle, engine, &doc); err != nil {
			return err
		}
		g.note("%s is written, without values of Secrets; look into it before you send it", o.bundle)
	}
	if !doc.CanRunPods {
		return withCode(exitError)
	}
	return nil
}

func (g *globals) showDoctor(o *doctorOptions, doc *doctorDocument) error {
	if isDocument(o.output) {
		return writeDocument(g.env.Out, o.output, doc)
	}
	_, err := fmt.Fprint(g.env.Out, doctorText(g.paint(g.env.OutTTY), doc))
	return err
}

// doctorText is one line for each check, and one with what to do for those that
// are not passed.
func doctorText(p painter, doc *doctorDocument) string {
	var b strings.Builder
	for _, c := range doc.Checks {
		fmt.Fprintf(&b, "%s %-13s %s\n", resultSymbol(p, c.Result), c.Name, printableLine(c.Found))
		if c.Advice != "" {
			fmt.Fprintf(&b, "  %-13s → %s\n", "", printableLine(c.Advice))
		}
	}
	b.WriteString("\n" + verdict(doc) + "\n")
	return b.String()
}

func resultSymbol(p painter, r doctor.Result) string {
	switch r {
	case doctor.OK:
		return p.with("✓", color.FgGreen)
	case doctor.Warning:
		return p.with("!", color.FgYellow)
	case doctor.Failed:
	}
	return p.with("✗", color.FgRed)
}

func verdict(doc *doctorDocument) string {
	problems, warnings := doctor.Count(doc.Checks, doctor.Failed), doctor.Count(doc.Checks, doctor.Warning)
	text := "Pods can run on this machine"
	if !doc.CanRunPods {
		text = "Pods cannot run on this machine: " + counted(problems, "problem")
	}
	if warnings > 0 {
		text += ", " + counted(warnings, "warning")
	}
	return text + "."
}
