package commands

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/probe"
)

type probeOptions struct {
	selection
	container string
	kind      string
	noRecord  bool
	wait      bool
	watch     bool
	output    string
}

func newProbe(g *globals) *cobra.Command {
	o := &probeOptions{}
	cmd := &cobra.Command{
		Use:   "probe [flags] [MANIFEST|POD...]",
		Short: "Ask every probe once, now",
		Long: "Ask every probe of the pods once, now, from the node, and say what came back.\n" +
			"The answers are remembered: plan and apply act on them as the kubelet does, once a threshold is reached." +
			exitCodes("0 all passed", "1 error", "3 one could not be decided", "4 a probe failed", "5 refused manifest", "130 interrupted"),
		Example:           "  podctl probe web\n  podctl probe --wait --timeout 1m web\n  podctl probe --type readiness -c app web",
		ValidArgsFunction: g.completeTargets,
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.withUnread(cmd.Context(), runProbe(cmd.Context(), g, o, args))
		},
	}
	f := cmd.Flags()
	f.StringSliceVarP(&o.files, "filename", "f", nil, "Manifest: file, directory, URL or - (repeatable)")
	f.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "Pods of all namespaces, when none is named")
	f.StringVarP(&o.container, "container", "c", "", "Only this container's probes")
	f.Var(&choice{value: &o.kind, allowed: []string{"liveness", "readiness", "startup"}}, "type", "Only probes of this type")
	f.BoolVar(&o.wait, "wait", false, "Ask again in their periods until a threshold has decided every probe")
	f.BoolVarP(&o.watch, "watch", "w", false, "Go on asking in their periods, and show the table anew")
	f.BoolVar(&o.noRecord, "no-record", false, "Do not remember the answers")
	f.VarP(outputFlag(&o.output, "json", "yaml"), "output", "o", "Output format: text, json or yaml")
	return cmd
}

func runProbe(ctx context.Context, g *globals, o *probeOptions, args []string) error {
	o.quiet, o.thorough = true, true
	pods, err := g.desired(ctx, o.selection, args)
	if err != nil {
		return err
	}
	if len(pods) == 0 {
		return errNothing
	}
	engine, err := g.connect()
	if err != nil {
		return err
	}
	for _, d := range pods {
		if err := knownContainer(d, o.container); err != nil {
			return err
		}
	}
	p := &prober{g: g, o: o, engine: engine, pods: pods, memory: probe.Memory{}}
	switch {
	case o.watch:
		return p.watch(ctx)
	case o.wait:
		return p.decide(ctx)
	}
	return p.once(ctx)
}

func knownContainer(d *podspec.Desired, name string) error {
	if name == "" {
		return nil
	}
	if _, ok := podspec.FindContainer(d.Pod, name); !ok {
		return fmt.Errorf("pod %s has no container %q", model.RefOf(d.Pod), name)
	}
	return nil
}

func (g *globals) showProbes(o *probeOptions, reports []probe.Report) error {
	if isDocument(o.output) {
		return writeDocument(g.env.Out, o.output, probeDocument(reports))
	}
	if len(reports) == 0 {
		g.note("No probes: the manifest has none.")
		return nil
	}
	rows := make([][]string, 0, len(reports))
	for i := range reports {
		r := &reports[i]
		rows = append(rows, []string{
			r.Container, string(r.Type), verdictText(r), countText(r), latencyText(r), r.Result.Handler, messageText(r),
		})
	}
	return table(g.env.Out, []string{"CONTAINER", "PROBE", "VERDICT", "COUNT", "LATENCY", "HANDLER", "MESSAGE"}, rows)
}

func verdictText(r *probe.Report) string {
	switch {
	case r.Asked:
		return string(r.Result.Verdict)
	case r.ContainerID != "" && r.Record.Last != "":
		return string(r.Record.Last)
	}
	return "not asked"
}

// countText is how many equal verdicts in a row there are, of those it takes.
func countText(r *probe.Report) string {
	if !r.Asked || r.Result.Verdict == probe.Unknown {
		return "-"
	}
	text := fmt.Sprintf("%d/%d", min(runOf(r), r.Threshold), r.Threshold)
	if !r.Counted {
		text += " (not counted: too soon)"
	}
	return text
}

// runOf is how many counted verdicts in a row are as this one. What a probe counts as
// before it was ever asked is no verdict, and once it is decided for good nothing is counted.
func runOf(r *probe.Report) int32 {
	switch {
	case r.Record.OnHold && r.Record.Result == r.Verdict():
		return r.Threshold
	case r.Record.Last != r.Verdict():
		return 0
	}
	return r.Record.Run
}

func latencyText(r *probe.Report) string {
	if !r.Asked {
		return "-"
	}
	return r.Result.Latency.Round(100 * time.Microsecond).String()
}

func messageText(r *probe.Report) string {
	if !r.Asked {
		return r.Skipped
	}
	return r.Result.Message
}

// probeCode is 4 when a probe failed, 3 when one could not be decided, else 0. A
// startup probe that has passed, and those that wait for it, are decided.
func probeCode(reports []probe.Report) int {
	code := exitOK
	for i := range reports {
		switch r := &reports[i]; {
		case r.Verdict() == model.ProbeFailure:
			return exitProbeFailed
		case r.Verdict() == model.ProbeUnknown:
			code = exitNotYet
		}
	}
	return code
}

// probeEntry is one probe in `probe -o json`.
type probeEntry struct {
	Pod                 model.PodRef    `json:"pod"`
	Container           string          `json:"container"`
	ContainerID         string          `json:"containerID,omitempty"`
	Type                model.ProbeType `json:"type"`
	Handler             string          `json:"handler,omitempty"`
	Verdict             string          `json:"verdict"`
	Message             string          `json:"message,omitempty"`
	LatencyMicroseconds int64           `json:"latencyMicroseconds,omitempty"`
	Counted             bool            `json:"counted"`
	// Result is the folded verdict, after Run equal ones of Threshold.
	Result    model.ProbeResult `json:"result"`
	Run       int32             `json:"run"`
	Threshold int32             `json:"threshold"`
}

func probeDocument(reports []probe.Report) any {
	entries := []probeEntry{}
	for i := range reports {
		r := &reports[i]
		e := probeEntry{
			Pod: r.Pod, Container: r.Container, ContainerID: r.ContainerID, Type: r.Type, Handler: r.Result.Handler,
			Verdict: "Undecided", Message: messageText(r), LatencyMicroseconds: r.Result.Latency.Microseconds(),
			Counted: r.Counted, Result: r.Record.Result, Run: r.Record.Run, Threshold: r.Threshold,
		}
		if r.Asked {
			e.Verdict = string(r.Result.Verdict)
		}
		entries = append(entries, e)
	}
	return listDocument("ProbeList", entries)
}
