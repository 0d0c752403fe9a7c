package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/wait"
)

// NewWait is `podctl wait`.
func NewWait(sess *session.Session) *cobra.Command {
	s := &selection.Selection{}
	goal := string(wait.Ready)
	cmd := &cobra.Command{
		Use:   "wait [flags] MANIFEST|POD...",
		Short: "Wait until pods are started, ready, completed or deleted",
		Long: "Wait until pods reach a state. This runs their probes and changes nothing else; to start pods and wait, use\n" +
			"apply --wait. The conditions Available and Progressing of a Deployment, and Complete, Failed and Suspended of a Job, are\n" +
			"those of the object itself." +
			flags.ExitCodes("0 reached", "1 error", "3 not reached in time, or cannot be reached any more", "5 manifest refused", "6 --for=completed: the pod has failed", "130 interrupted"),
		Example:           "  podctl wait web\n  podctl wait --for=completed --timeout 10m job\n  podctl wait --for=condition=Initialized web\n  podctl wait -l app=web\n  podctl wait --for=condition=Available deployment/web",
		ValidArgsFunction: completion.Of(sess.Flags).Targets,
		RunE: func(cmd *cobra.Command, args []string) error {
			if goal == "delete" {
				goal = string(wait.Deleted) // kubectl's word
			}
			if err := checkGoal(goal); err != nil {
				return err
			}
			if s.IsEmpty(args) {
				return exit.Usagef("wait needs a manifest or a pod, --all, or a selector")
			}
			return runWait(cmd.Context(), sess, *s, wait.Goal(goal), args)
		},
	}
	f := cmd.Flags()
	flags.Files(cmd, &s.Files, &s.Recursive)
	f.BoolVar(&s.All, "all", false, "All pods that podctl applied in the namespace")
	s.RegisterSelectors(f, "With --all or a selector: all namespaces")
	f.StringVar(&goal, "for", goal, "State to wait for: started, ready, completed, deleted or condition=NAME[=VALUE]")
	_ = cmd.RegisterFlagCompletionFunc("for", completion.Words(append(goals(), "condition=")...))
	return cmd
}

// goals are what can be waited for by one word.
func goals() []string {
	return []string{string(wait.Started), string(wait.Ready), string(wait.Completed), string(wait.Deleted)}
}

func checkGoal(goal string) error {
	if slices.Contains(goals(), goal) || (strings.HasPrefix(goal, "condition=") && goal != "condition=") {
		return nil
	}
	return exit.Usagef("--for must be one of %s or condition=NAME[=VALUE]", strings.Join(goals(), ", "))
}

// awaited are the pods to wait for. One that is not there is deleted already.
func awaited(ctx context.Context, sess *session.Session, s selection.Selection, goal wait.Goal, args []string) ([]*podspec.Desired, error) {
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
	c, conditional := conditionOf(goal)
	if !conditional {
		return awaitPods(ctx, sess, s, goal, args)
	}
	keys, args := splitWorkloads(c, args, sess.Flags.Namespace)
	if len(keys) == 0 {
		return awaitPods(ctx, sess, s, goal, args)
	}
	var others error
	if !s.IsEmpty(args) {
		others = awaitPods(ctx, sess, s, goal, args)
	}
	return exit.Join(ctx, awaitWorkloads(ctx, sess, c, keys), others)
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
