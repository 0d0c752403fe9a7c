package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/table"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/probe"
)

type probeOptions struct {
	selection.Selection
	container string
	kind      string
	noRecord  bool
	wait      bool
	watch     bool
	output    string
}

// NewProbe returns the command `podctl probe`.
func NewProbe(sess *session.Session) *cobra.Command {
	o := &probeOptions{}
	cmd := &cobra.Command{
		Use:   "probe [flags] [MANIFEST|POD...]",
		Short: "Run the probes of pods and show the results",
		Long: "Run every probe of the pods once, from this node, and show the results. podctl records the results. " +
			"Once a threshold is\nreached, plan and apply act on them as a kubelet does. " +
			"If an agent keeps the pod, the column AGENT shows the agent's\nlast result of the probe, and its age." +
			flags.ExitCodes(
				"0 all passed",
				"1 error",
				"3 a probe was not decided",
				"4 a probe failed",
				"5 manifest refused",
				"130 interrupted",
			),
		Example: "  podctl probe web\n" +
			"  podctl probe --wait --timeout 1m web\n" +
			"  podctl probe --type readiness -c app web",
		ValidArgsFunction: completion.Of(sess.Flags).Targets,
		RunE:              flags.Run(sess, o, runProbe),
	}
	f := cmd.Flags()
	flags.Files(cmd, &o.Files, &o.Recursive)
	o.RegisterSelectors(f, "All namespaces (if no pod is named)")
	f.StringVarP(&o.container, "container", "c", "", "Run only probes of this container")
	f.Var(&flags.Choice{Value: &o.kind, Allowed: []string{"liveness", "readiness", "startup"}}, "type",
		"Run only probes of this type: liveness, readiness or startup")
	f.BoolVar(&o.wait, "wait", false, "Repeat each probe at its period until it reaches a threshold")
	f.BoolVarP(&o.watch, "watch", "w", false, "Repeat each probe at its period and update the table")
	f.BoolVar(&o.noRecord, "no-record", false, "Do not record the results")
	f.VarP(flags.Output(&o.output, "json", "yaml"), "output", "o", "Output format: text, json or yaml")
	return cmd
}

func runProbe(ctx context.Context, sess *session.Session, o *probeOptions, args []string) error {
	o.For = selection.Reach
	found, err := o.Find(ctx, sess, args)
	if err != nil {
		return err
	}
	return exit.WithUnreadable(ctx, o.probe(ctx, sess, found.Pods), found.Unreadable)
}

func (o *probeOptions) probe(ctx context.Context, sess *session.Session, pods []*podspec.Desired) error {
	if len(pods) == 0 {
		return errors.New("no pods: give a manifest or a pod, or apply one first")
	}
	engine, err := sess.Engine()
	if err != nil {
		return err
	}
	p := &prober{sess: sess, o: o, engine: engine, pods: pods, memories: map[types.UID]probe.Memory{}}
	for _, d := range pods {
		if _, ok := podspec.FindContainer(d.Pod, o.container); !ok && o.container != "" {
			return fmt.Errorf("pod %s has no container %q", model.RefOf(d.Pod), o.container)
		}
		p.memories[d.Pod.UID] = probe.Memory{}
	}
	switch {
	case o.watch:
		return p.watch(ctx)
	case o.wait:
		return p.decide(ctx)
	}
	return p.once(ctx)
}

// showProbes prints reports, together with the agent's verdicts on the same probes. With reports of several pods, each
// line names its pod.
func showProbes(out *terminal.IO, o *probeOptions, reports []probe.Report, known agentVerdicts) error {
	if terminal.IsDocument(o.output) {
		return terminal.WriteDocument(out.Out, o.output, probeDocument(reports, known))
	}
	if len(reports) == 0 {
		out.Note("No probes: the manifest has none.")
		return nil
	}
	header := []string{"CONTAINER", "PROBE", "VERDICT", "COUNT", "LATENCY", "HANDLER"}
	if len(known) > 0 {
		header = append(header, "AGENT")
	}
	header = append(header, "MESSAGE")
	several := slices.ContainsFunc(reports, func(r probe.Report) bool { return r.Pod != reports[0].Pod })
	if several {
		header = append([]string{"POD"}, header...)
	}
	rows := make([][]string, 0, len(reports))
	for i := range reports {
		r := &reports[i]
		row := []string{r.Container, string(r.Type), verdictText(r), countText(r), latencyText(r), r.Result.Handler}
		if len(known) > 0 {
			row = append(row, known.text(r, out.Now()))
		}
		row = append(row, messageText(r))
		if several {
			row = append([]string{r.Pod.String()}, row...)
		}
		rows = append(rows, row)
	}
	return table.Write(out.Out, header, rows)
}

func verdictText(r *probe.Report) string {
	switch {
	case r.Ran:
		return string(r.Result.Verdict)
	case r.ContainerID != "" && r.Record.Last != "":
		return string(r.Record.Last)
	}
	return "not run"
}

// countText returns the number of equal verdicts in a row, and the threshold.
func countText(r *probe.Report) string {
	if !r.Ran || r.Result.Verdict == probe.Unknown {
		return "-"
	}
	text := fmt.Sprintf("%d/%d", min(runOf(r), r.Threshold), r.Threshold)
	if !r.Counted {
		text += " (not counted: too soon)"
	}
	return text
}

// runOf returns the number of counted verdicts in a row that equal this one. The initial result of a probe is not a
// verdict, and once a probe is on hold, verdicts are not counted.
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
	if !r.Ran {
		return "-"
	}
	return r.Result.Latency.Round(100 * time.Microsecond).String()
}

func messageText(r *probe.Report) string {
	if !r.Ran {
		return r.Skipped
	}
	return r.Result.Message
}

// probeCode returns 4 if a probe failed, 3 if a probe is not decided, and otherwise 0. A startup probe that has passed
// and probes that wait for it are decided.
func probeCode(reports []probe.Report, verdict func(*probe.Report) model.ProbeResult) int {
	code := exit.OK
	for i := range reports {
		switch verdict(&reports[i]) {
		case model.ProbeFailure:
			return exit.ProbeFailed
		case model.ProbeUnknown:
			code = exit.NotYet
		case model.ProbeSuccess:
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
	// Result is the folded verdict, after Run equal verdicts. Threshold is the number that it takes to change it.
	Result    model.ProbeResult `json:"result"`
	Run       int32             `json:"run"`
	Threshold int32             `json:"threshold"`
	// Agent is the verdict of the agent that keeps the pod. It is nil if there is none.
	Agent *agentVerdict `json:"agent,omitempty"`
}

func probeDocument(reports []probe.Report, known agentVerdicts) any {
	entries := []probeEntry{}
	for i := range reports {
		r := &reports[i]
		e := probeEntry{
			Pod: r.Pod, Container: r.Container, ContainerID: r.ContainerID, Type: r.Type, Handler: r.Result.Handler,
			Verdict: "Undecided", Message: messageText(r), LatencyMicroseconds: r.Result.Latency.Microseconds(),
			Counted: r.Counted, Result: r.Record.Result, Run: r.Record.Run, Threshold: r.Threshold, Agent: known.of(r),
		}
		if r.Ran {
			e.Verdict = string(r.Result.Verdict)
		}
		entries = append(entries, e)
	}
	return view.List("ProbeList", entries)
}

// agentVerdicts has the verdicts of an agent by probe.
type agentVerdicts map[agentProbe]api.Probe

// agentProbe identifies a probe of one run of a container.
type agentProbe struct {
	pod         types.UID
	containerID string
	probe       model.ProbeType
}

// agentVerdict is the verdict of an agent on one probe, in `probe -o json`.
type agentVerdict struct {
	Result model.ProbeResult `json:"result"`
	// Since is the time when Result last changed, LastProbeTime the time of the last probe.
	Since         time.Time `json:"since,omitzero"`
	LastProbeTime time.Time `json:"lastProbeTime,omitzero"`
	Message       string    `json:"message,omitempty"`
}

func verdictsOf(pods map[types.UID]*api.Pod) agentVerdicts {
	known := agentVerdicts{}
	for uid, p := range pods {
		for _, v := range p.Probes {
			known[agentProbe{uid, v.ContainerID, v.Type}] = v
		}
	}
	return known
}

// of returns the agent's verdict on the probe of a report, or nil if the agent does not run the probe.
func (a agentVerdicts) of(r *probe.Report) *agentVerdict {
	v, ok := a[agentProbe{r.Pod.UID, r.ContainerID, r.Type}]
	if !ok {
		return nil
	}
	return &agentVerdict{Result: v.Result, Since: v.Since, LastProbeTime: v.LastProbeTime, Message: v.Message}
}

// text returns the agent's verdict and its age.
func (a agentVerdicts) text(r *probe.Report, now time.Time) string {
	v := a.of(r)
	switch {
	case v == nil:
		return "-"
	case v.LastProbeTime.IsZero():
		return "has not run yet"
	case v.Since.IsZero():
		return string(v.Result)
	}
	return fmt.Sprintf("%s for %s", v.Result, duration.HumanDuration(max(now.Sub(v.Since), 0)))
}
