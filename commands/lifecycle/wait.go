package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/wait"
	"github.com/podctl/podctl/runtime/workload"
)

// NewWait returns the command `podctl wait`.
func NewWait(sess *session.Session) *cobra.Command {
	s := &selection.Selection{}
	goal := string(wait.Ready)
	cmd := &cobra.Command{
		Use:   "wait [flags] MANIFEST|POD...",
		Short: "Wait until pods are started, ready, completed or deleted",
		Long: "Wait until pods reach a state. " +
			"This runs their probes and changes nothing else. " +
			"To start pods and wait for them, use\napply --wait. " +
			"For a workload, podctl waits for its pods. " +
			"Only the conditions Available and\nProgressing of a Deployment, " +
			"and Complete, Failed and Suspended of a Job, are those of the workload itself." +
			flags.ExitCodes(
				"0 reached",
				"1 error",
				"3 not reached in time, or can no longer be reached",
				"5 manifest refused",
				"6 --for=completed: the pod has failed",
				"130 interrupted",
			),
		Example: "  podctl wait web\n" +
			"  podctl wait --for=completed --timeout 10m report\n" +
			"  podctl wait --for=condition=Initialized web\n" +
			"  podctl wait -l app=web\n" +
			"  podctl wait --for=condition=Available deployment/web",
		ValidArgsFunction: completion.Of(sess.Flags).Targets,
		RunE: func(cmd *cobra.Command, args []string) error {
			if goal == "delete" {
				goal = string(wait.Deleted) // kubectl's name for it
			}
			switch {
			case !slices.Contains(goals(), goal) && (!strings.HasPrefix(goal, "condition=") || goal == "condition="):
				return exit.Usagef("--for must be one of %s or condition=NAME[=VALUE]", strings.Join(goals(), ", "))
			case s.IsEmpty(args):
				return exit.Usagef("wait needs a manifest or a pod, --all, or a selector")
			}
			return runWait(cmd.Context(), sess, *s, wait.Goal(goal), args)
		},
	}
	f := cmd.Flags()
	flags.Files(cmd, &s.Files, &s.Recursive)
	f.BoolVar(&s.All, "all", false, "Wait for all pods that podctl applied in the namespace")
	s.RegisterSelectors(f, "All namespaces (with --all or a selector)")
	f.StringVar(&goal, "for", goal, "State to wait for: started, ready, completed, deleted or condition=NAME[=VALUE]")
	_ = cmd.RegisterFlagCompletionFunc("for", completion.Words(append(goals(), "condition=")...))
	return cmd
}

// goals are the goals without a parameter.
func goals() []string {
	return []string{string(wait.Started), string(wait.Ready), string(wait.Completed), string(wait.Deleted)}
}

// awaited returns the pods to wait for. With the goal deleted, a pod that does not exist counts as deleted.
func awaited(
	ctx context.Context, sess *session.Session, s selection.Selection, goal wait.Goal, args []string,
) ([]*podspec.Desired, error) {
	if goal != wait.Deleted || s.All || s.Selects() {
		pods, err := s.Pods(ctx, sess, args...)
		if err == nil && len(pods) == 0 && goal != wait.Deleted {
			err = fmt.Errorf("no pods %s to wait for", s.Where(sess.Flags.Namespace))
		}
		return pods, err
	}
	var pods []*podspec.Desired
	if len(s.Files) > 0 {
		loaded, err := s.Pods(ctx, sess)
		if err != nil {
			return nil, err
		}
		pods = loaded
	}
	for _, arg := range args {
		found, err := selection.Selection{}.Pods(ctx, sess, arg)
		if gone := (*state.NotFoundError)(nil); errors.As(err, &gone) {
			sess.IO.Print("pod %s is deleted", gone.Name)
			continue
		}
		if err != nil {
			return nil, err
		}
		pods = append(pods, found...)
	}
	return pods, nil
}

func runWait(ctx context.Context, sess *session.Session, s selection.Selection, goal wait.Goal, args []string) error {
	c := conditionOf(goal)
	keys, args := c.workloads(args, sess.Flags.Namespace)
	if len(keys) == 0 {
		return awaitPods(ctx, sess, s, goal, args)
	}
	var others error
	if !s.IsEmpty(args) {
		others = awaitPods(ctx, sess, s, goal, args)
	}
	engine, err := sess.Engine()
	if err != nil {
		return exit.Join(ctx, err, others)
	}
	outcomes := selection.ForEach(keys, len(keys), func(key state.ObjectKey) error {
		return awaitWorkload(ctx, sess, engine, c, key)
	})
	return exit.Join(ctx, append(outcomes, others)...)
}

func awaitPods(ctx context.Context, sess *session.Session, s selection.Selection, goal wait.Goal, args []string) error {
	pods, err := awaited(ctx, sess, s, goal, args)
	if err != nil || len(pods) == 0 {
		return err
	}
	engine, err := sess.Engine()
	if err != nil {
		return err
	}
	progress := view.NewProgress(sess.IO, len(pods))
	defer progress.Stop()
	engine.Waiter.Report = progress.Obstacles
	return exit.Join(ctx, selection.ForEach(pods, len(pods), func(d *podspec.Desired) error {
		err := engine.Waiter.Await(ctx, d, goal)
		if err == nil {
			sess.IO.Print("pod %s is %s", model.RefOf(d.Pod), strings.TrimPrefix(string(goal), "condition="))
		}
		return err
	})...)
}

// workloadCondition is a condition of a Deployment or a Job, as in --for=condition=Available. Other conditions are
// those of pods.
type workloadCondition struct {
	name, value string
}

// conditionOf returns the condition that a goal names. For a goal without a condition, the result matches no workload.
func conditionOf(goal wait.Goal) workloadCondition {
	text := strings.TrimPrefix(string(goal), "condition=")
	name, value, given := strings.Cut(text, "=")
	if !given {
		value = string(v1.ConditionTrue)
	}
	return workloadCondition{name, value}
}

// isOf reports whether objects of a kind have the condition.
func (c workloadCondition) isOf(kind string) bool {
	known := map[string][]string{
		podspec.KindDeployment: {
			string(appsv1.DeploymentAvailable),
			string(appsv1.DeploymentProgressing),
		},
		podspec.KindJob: {
			string(batchv1.JobComplete),
			string(batchv1.JobFailed),
			string(batchv1.JobSuspended),
			string(batchv1.JobSuccessCriteriaMet),
			string(batchv1.JobFailureTarget),
		},
	}[kind]
	return slices.ContainsFunc(known, func(one string) bool { return strings.EqualFold(one, c.name) })
}

// holds reports whether an object has the condition with the wanted value.
func (c workloadCondition) holds(document any) bool {
	is := func(kind string, status v1.ConditionStatus) bool {
		return strings.EqualFold(kind, c.name) && strings.EqualFold(string(status), c.value)
	}
	switch d := document.(type) {
	case *appsv1.Deployment:
		return slices.ContainsFunc(d.Status.Conditions, func(one appsv1.DeploymentCondition) bool {
			return is(string(one.Type), one.Status)
		})
	case *batchv1.Job:
		return slices.ContainsFunc(d.Status.Conditions, func(one batchv1.JobCondition) bool {
			return is(string(one.Type), one.Status)
		})
	}
	return false
}

// workloads separates the workloads that have the condition themselves from the other arguments.
func (c workloadCondition) workloads(args []string, namespace string) (keys []state.ObjectKey, rest []string) {
	for _, arg := range args {
		if key, ok := selection.WorkloadNamed(arg, namespace); ok && c.isOf(key.Kind) {
			keys = append(keys, key)
		} else {
			rest = append(rest, arg)
		}
	}
	return keys, rest
}

func awaitWorkload(
	ctx context.Context, sess *session.Session, engine *runtime.Engine, c workloadCondition, key state.ObjectKey,
) error {
	last := "not checked yet"
	for {
		probeAll(ctx, sess, engine, key)
		x, err := observeWorkload(ctx, sess, engine, key)
		switch {
		case err != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
			return err
		case err == nil && c.holds(view.WorkloadDocument(&view.WorkloadRow{Record: x.Record, Expansion: x.Expansion})):
			sess.IO.Print("%s is %s", key, c.name)
			return nil
		case err == nil && x.Job != nil && workload.JobEnd(x.Job) != nil:
			doc := x.document()
			missed := fmt.Errorf("%s cannot become %s: it has finished: %s", key, c.name, view.WorkloadOutcome(&doc))
			return &exit.CodeError{Code: exit.NotYet, Err: missed}
		case err == nil:
			last = x.missing()
		}
		if !terminal.Sleep(ctx, recheckInterval) {
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				late := fmt.Errorf("%s is not %s in time: %s", key, c.name, last)
				return &exit.CodeError{Code: exit.NotYet, Err: late}
			}
			return context.Cause(ctx)
		}
	}
}

// observeWorkload observes a workload.
func observeWorkload(
	ctx context.Context, sess *session.Session, engine *runtime.Engine, key state.ObjectKey,
) (*expanded, error) {
	r, err := sess.Workloads().Get(key)
	if err != nil {
		return nil, err
	}
	unchanged := controller.Change{Outcome: objects.Unchanged, Record: r}
	all, err := (&expander{sess: sess, engine: engine}).expand(ctx, []controller.Change{unchanged})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// probeAll runs the probes of a workload's pods. It ignores errors, because the status shows them.
func probeAll(ctx context.Context, sess *session.Session, engine *runtime.Engine, key state.ObjectKey) {
	if pods, err := (selection.Selection{}).Pods(ctx, sess, key.Word()+"/"+key.Namespace+"/"+key.Name); err == nil {
		_ = selection.ProbeFirst(ctx, engine, pods...)
	}
}
