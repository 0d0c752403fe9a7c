package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/state"
)

// NewRollout is `podctl rollout`.
func NewRollout(sess *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollout COMMAND",
		Short: "Look at the versions of a workload, go back to one, or restart its pods",
		Args:  flags.Subcommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRolloutStatus(sess), newRolloutHistory(sess), newRolloutUndo(sess), newRolloutRestart(sess))
	return cmd
}

type rolloutStatusOptions struct{ watch bool }

func newRolloutStatus(sess *session.Session) *cobra.Command {
	o := &rolloutStatusOptions{}
	cmd := &cobra.Command{
		Use:   "status KIND/NAME",
		Short: "Say how far a rollout is",
		Long: "Say how many pods of a workload have its newest version and are available, and what the others wait for. Nothing is\n" +
			"changed: to go on, apply again, or use apply --wait. With --watch the command waits, as kubectl does, for what the agent or\n" +
			"another command does, and runs the probes of the pods." +
			flags.ExitCodes("0 all pods are as they shall be", "1 error", "3 not yet", "130 interrupted"),
		Example:           "  podctl rollout status deployment/web\n  podctl rollout status deployment/web --watch --timeout 1m",
		Args:              oneWorkload,
		ValidArgsFunction: completion.Of(sess.Flags).Kinds,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runRolloutStatus(cmd.Context(), sess, o, strings.Join(args, "/"))
		},
	}
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Wait until all pods are as they shall be, or a Job has ended")
	return cmd
}

func newRolloutHistory(sess *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:   "history KIND/NAME",
		Short: "List the versions of a workload's template",
		Long: "List the versions of a workload's template that are kept (revisionHistoryLimit), the newest last. A version that\n" +
			"rollout restart has made says when." + flags.ExitCodes("0 success", "1 error", "130 interrupted"),
		Example:           "  podctl rollout history deployment/web",
		Args:              oneWorkload,
		ValidArgsFunction: completion.Of(sess.Flags).Kinds,
		RunE:              func(_ *cobra.Command, args []string) error { return runRolloutHistory(sess, strings.Join(args, "/")) },
	}
}

func newRolloutUndo(sess *session.Session) *cobra.Command {
	o, revision := &applyOptions{}, int64(0)
	cmd := &cobra.Command{
		Use:   "undo KIND/NAME",
		Short: "Go back to an earlier version of a workload's template",
		Long: "Go back to an earlier version of a workload's template, the last one unless --to-revision names another, and make one\n" +
			"pass. What its manifest says counts again when that is applied. Of a workload in a source of the agent, the file says\n" +
			"which version there is." +
			flags.ExitCodes("0 success", "1 error", "3 --wait: not there in time", "130 interrupted"),
		Example:           "  podctl rollout undo deployment/web\n  podctl rollout undo deployment/web --to-revision 2 --wait",
		Args:              oneWorkload,
		ValidArgsFunction: completion.Of(sess.Flags).Kinds,
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeTemplate(cmd.Context(), sess, o, strings.Join(args, "/"), func(r *controller.Record) error { return goBack(r, revision) })
		},
	}
	cmd.Flags().Int64Var(&revision, "to-revision", 0, "Version to go back to (0: the one before)")
	registerRollout(cmd, o)
	return cmd
}

func registerRollout(cmd *cobra.Command, o *applyOptions) {
	f := cmd.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "Only show the plan")
	f.IntVar(&o.parallel, "parallel", 4, "Number of pods to apply at the same time")
	addWaitFlag(cmd, &o.wait)
}

// oneWorkload allows KIND/NAME, or KIND NAME as kubectl also takes it.
func oneWorkload(cmd *cobra.Command, args []string) error {
	if len(args) == 2 && podspec.KindOfWord(args[0]).Name != "" {
		return nil
	}
	return cobra.ExactArgs(1)(cmd, args)
}

// recordNamed is the record of the workload that an argument names.
func recordNamed(sess *session.Session, arg string) (*controller.Record, error) {
	key, ok := selection.WorkloadNamed(arg, sess.Flags.Namespace)
	if !ok {
		return nil, exit.Usagef("rollout needs a workload, for example deployment/web")
	}
	r, err := sess.Workloads().Get(key)
	if err == nil {
		sess.Loaded([]*podspec.Desired{r.Workload.Template})
	}
	return r, err
}

func runRolloutStatus(ctx context.Context, sess *session.Session, o *rolloutStatusOptions, arg string) error {
	r, err := recordNamed(sess, arg)
	if err != nil {
		return err
	}
	engine, err := sess.Engine()
	if err != nil {
		return err
	}
	for said := ""; ; {
		if o.watch {
			probeAll(ctx, sess, engine, r.Key())
		}
		x, err := lookAt(ctx, sess, engine, r.Key())
		if err != nil && said != "" && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			// What was seen last is printed.
			return exit.With(exit.NotYet)
		}
		if err != nil {
			return err
		}
		doc := x.document()
		lines := append(view.WorkloadWaits(&doc), view.WorkloadOutcome(&doc))
		if text := strings.Join(lines, "\n"); text != said {
			for _, line := range lines {
				sess.IO.Print("%s", line)
			}
			said = text
		}
		switch {
		case x.isThere():
			return nil
		case !o.watch || !terminal.Sleep(ctx, lookEach):
			return exit.Join(ctx, exit.With(exit.NotYet), x.UnknownErr())
		}
	}
}

// isThere reports whether the pods are as they shall be, or a Job has ended.
func (x *expanded) isThere() bool {
	return x.Job == nil && x.Status.Complete() || x.Job != nil && isFinished(x.Job)
}

func runRolloutHistory(sess *session.Session, arg string) error {
	r, err := recordNamed(sess, arg)
	if err != nil {
		return err
	}
	rows := make([][]string, 0, len(r.Revisions))
	for i := range r.Revisions {
		one := &r.Revisions[i]
		rows = append(rows, []string{strconv.FormatInt(one.Number, 10), duration.HumanDuration(sess.IO.Now().Sub(one.At)), imagesOf(&one.Template), cmp.Or(one.Template.Annotations[podspec.AnnotationRestartedAt], terminal.NoValue)})
	}
	return terminal.Table(sess.IO.Out, []string{"REVISION", "AGE", "IMAGES", "RESTARTED AT"}, rows)
}

// imagesOf are the images of a template.
func imagesOf(template *v1.PodTemplateSpec) string {
	images := make([]string, 0, len(template.Spec.Containers))
	for i := range template.Spec.Containers {
		images = append(images, template.Spec.Containers[i].Image)
	}
	return strings.Join(images, ",")
}

// changeTemplate changes the template of a stored workload, and makes a pass.
func changeTemplate(ctx context.Context, sess *session.Session, o *applyOptions, arg string, change func(*controller.Record) error) error {
	r, err := recordNamed(sess, arg)
	if err != nil {
		return err
	}
	if r.Workload.Job != nil {
		return exit.Usagef("%s is a Job: its template does not change", r.Key())
	}
	if err := refuseRuled(ctx, sess, []state.ObjectKey{r.Key()}); err != nil {
		return err
	}
	if err := change(r); err != nil {
		return err
	}
	found := selection.Found{Workloads: []*podspec.Workload{r.Workload}}
	if o.dryRun {
		return planFound(ctx, sess, &o.planOptions, found)
	}
	return o.applyWorkloads(ctx, sess, &found)
}

// goBack gives a workload an earlier version of its template; 0 for the one before.
func goBack(r *controller.Record, revision int64) error {
	last := len(r.Revisions) - 1
	for i := last - 1; i >= 0; i-- {
		if one := &r.Revisions[i]; revision == 0 || one.Number == revision {
			template, _ := r.Workload.PodTemplate()
			*template = *one.Template.DeepCopy()
			r.Workload.Template = one.Pod
			return nil
		}
	}
	if revision == 0 {
		return fmt.Errorf("%s has no version before this one", r.Key())
	}
	return fmt.Errorf("%s has no earlier version %d (`podctl rollout history` lists those that are kept)", r.Key(), revision)
}
