package inspect

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/redaction"
	"github.com/podctl/podctl/runtime/events"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/why"
)

type whyOptions struct{ output string }

// NewWhy returns the command `podctl why`.
func NewWhy(sess *session.Session) *cobra.Command {
	o := &whyOptions{}
	cmd := &cobra.Command{
		Use:   "why [flags] POD [CONTAINER]",
		Short: "Explain why a pod and its containers are in their state",
		Long: "Explain why each container was started, restarted, stopped or refused, what it waits for, " +
			"what would change that,\nand what the next pass does. " +
			"The decisions of earlier passes are kept for a deleted pod, too, until `podctl prune`,\n" +
			"or for a day with an agent." +
			flags.ExitCodes("0 success", "1 error", "130 interrupted"),
		Example: "  podctl why web\n" +
			"  podctl why web app\n" +
			"  podctl why kube-system/coredns-5f -o json | jq .subjects",
		Args:              flags.NeedsUpTo(2, "a pod and at most one container"),
		ValidArgsFunction: completion.Of(sess.Flags).Pods,
		RunE:              flags.Run(sess, o, runWhy),
	}
	cmd.Flags().VarP(flags.Output(&o.output, "json", "yaml"), "output", "o", "Output format: text, json or yaml")
	return cmd
}

func runWhy(ctx context.Context, sess *session.Session, o *whyOptions, args []string) error {
	in := &why.Input{Now: sess.IO.Now()}
	if len(args) > 1 {
		in.Container = args[1]
	}
	d, err := selection.One(ctx, sess, selection.Show, args[0])
	unknown := error(nil)
	if gone := (*state.NotFoundError)(nil); errors.As(err, &gone) {
		err = findGone(sess, in, args[0], gone.Name, err)
	} else if err == nil {
		unknown, err = gather(ctx, sess, in, d)
	}
	if err != nil {
		return err
	}
	return errors.Join(showWhy(sess, o, why.Explain(in)), unknown)
}

func showWhy(sess *session.Session, o *whyOptions, e *why.Explanation) error {
	if terminal.IsDocument(o.output) {
		return terminal.WriteDocument(sess.IO.Out, o.output, e)
	}
	text := &view.Explanation{Out: sess.IO.Out, Colors: sess.IO.OutColors(), Now: sess.IO.Now()}
	return text.Write(e)
}

// findGone finds the newest history of a deleted pod by the user's argument or the full name that this gives. It
// returns notFound if there is none.
func findGone(sess *session.Session, in *why.Input, arg, name string, notFound error) error {
	all, unreadable := sess.Flags.Layout().Histories().All()
	for _, h := range all {
		if h.Pod.String() != name && !state.MatchesUID(h.Pod.UID, arg) {
			continue
		}
		if in.History == nil || lastOf(in.History).Before(lastOf(h)) {
			in.History, in.Pod = h, h.Pod
		}
	}
	if in.History == nil {
		return errors.Join(notFound, unreadable)
	}
	var err error
	in.History, err = events.History(sess.Flags.Layout(), in.Pod)
	return err
}

// lastOf returns the time of the newest record of a history.
func lastOf(h *state.History) (last time.Time) {
	if n := len(h.Events); n > 0 {
		last = h.Events[n-1].Last
	}
	if n := len(h.Decisions); n > 0 && h.Decisions[n-1].Last.After(last) {
		last = h.Decisions[n-1].Last
	}
	return last
}

// gather collects the records of a pod that exists. unknown is the reason why the explanation is incomplete.
func gather(ctx context.Context, sess *session.Session, in *why.Input, d *podspec.Desired) (unknown, err error) {
	if _, found := podspec.FindContainer(d.Pod, in.Container); in.Container != "" && !found {
		return nil, exit.Usagef("pod %s/%s has no container %q; it has %s",
			d.Pod.Namespace, d.Pod.Name, in.Container, selection.ContainerNames(d))
	}
	engine, err := sess.Engine()
	if err != nil {
		return nil, err
	}
	pods, unknown := engine.Lister.List(ctx, []*podspec.Desired{d})
	if len(pods) == 0 {
		return nil, cmp.Or(unknown, errors.New("the pod cannot be observed"))
	}
	in.Desired, in.Status, in.Pod = d, pods[0], model.RefOf(d.Pod)
	r := &describer{io: sess.IO, engine: engine, layout: sess.Flags.Layout()}
	in.History = r.history(in.Status)
	// The status of the pod shows why its checkpoint cannot be read.
	if checkpoint, unreadable := r.layout.Pod(in.Pod.UID).Checkpoint().Read(); unreadable == nil {
		in.Memory = withoutSecrets(checkpoint)
	}
	in.Agent = sess.AgentPods(ctx)[in.Pod.UID]
	// The agent waits between pulls, commands do not.
	newest := session.Newest(ctx, sess, []*podspec.Desired{d})[0]
	in.Plan, err = r.plan(ctx, newest, in.Status, plan.Options{PullBackoff: in.Agent != nil})
	if err != nil {
		in.PlanError = sess.ErrorText(err)
	}
	return errors.Join(unknown, err), nil
}

// withoutSecrets returns the record of a pod, with results of probes that contain no values of Secrets.
func withoutSecrets(checkpoint *state.Checkpoint) *model.Memory {
	redactor, known := checkpoint.Redactor(nil), podspec.KnowsSecrets(checkpoint.Applied)
	memory := checkpoint.Clone().Memory
	for _, records := range memory.Probes {
		for kind, record := range records {
			if record.Message = redactor.Text(record.Message); !known {
				record.Message = redaction.Withhold(record.Message)
			}
			records[kind] = record
		}
	}
	return &memory
}
