package commands

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/wait"
)

func newWait(g *globals) *cobra.Command {
	s := &selection{quiet: true}
	goal := string(wait.Ready)
	cmd := &cobra.Command{
		Use:   "wait [flags] MANIFEST|POD...",
		Short: "Wait until pods are started, ready, completed or deleted",
		Long: "Wait until pods have got somewhere, without doing anything to them but asking their probes: somebody else\n" +
			"makes the passes. To make them, use apply --wait." +
			exitCodes("0 there", "1 error", "3 not there in time, or it cannot get there any more", "5 refused manifest", "130 interrupted"),
		Example:           "  podctl wait web\n  podctl wait --for=completed --timeout 10m job\n  podctl wait --for=condition=Initialized web",
		ValidArgsFunction: g.completeTargets,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkGoal(goal); err != nil {
				return err
			}
			if len(args)+len(s.files) == 0 {
				return usagef("wait needs a manifest or a pod")
			}
			return runWait(cmd, g, *s, wait.Goal(goal), args)
		},
	}
	f := cmd.Flags()
	f.StringSliceVarP(&s.files, "filename", "f", nil, "Manifest: file, directory, URL or - (repeatable)")
	f.StringVar(&goal, "for", goal, "What to wait for: started, ready, completed, deleted or condition=NAME[=VALUE]")
	_ = cmd.RegisterFlagCompletionFunc("for", completeWords(append(goals(), "condition=")...))
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
	return usagef("--for must be one of %s or condition=NAME[=VALUE]", strings.Join(goals(), ", "))
}

// awaited are the pods to wait for. One that is not there is deleted already.
func (g *globals) awaited(ctx context.Context, s selection, goal wait.Goal, args []string) ([]*podspec.Desired, error) {
	if goal != wait.Deleted {
		return g.desired(ctx, s, args)
	}
	var pods []*podspec.Desired
	if len(s.files) > 0 {
		loaded, err := g.desired(ctx, s, nil)
		if err != nil {
			return nil, err
		}
		pods = loaded
	}
	for _, arg := range args {
		found, err := g.desired(ctx, selection{quiet: true}, []string{arg})
		if gone := (*state.NotFoundError)(nil); errors.As(err, &gone) {
			g.print("pod %s is deleted", gone.Name)
			continue
		}
		if err != nil {
			return nil, err
		}
		pods = append(pods, found...)
	}
	return pods, nil
}

func runWait(cmd *cobra.Command, g *globals, s selection, goal wait.Goal, args []string) error {
	ctx := cmd.Context()
	pods, err := g.awaited(ctx, s, goal, args)
	if err != nil || len(pods) == 0 {
		return err
	}
	engine, err := g.connect()
	if err != nil {
		return err
	}
	errs := make([]error, len(pods))
	var group sync.WaitGroup
	for i, d := range pods {
		group.Go(func() {
			if errs[i] = engine.Waiter.Await(ctx, d, goal); errs[i] == nil {
				g.print("pod %s is %s", model.RefOf(d.Pod), strings.TrimPrefix(string(goal), "condition="))
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}
