package agent

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/agent/daemon"
	"github.com/podctl/podctl/runtime/cluster/membership"
	"github.com/podctl/podctl/runtime/sleep"
)

// newLeave returns the command `podctl agent leave`. cluster has the settings of the configuration.
func newLeave(sess *session.Session, program Program, cluster *clusterOptions) *cobra.Command {
	s, grace := &daemon.Leaving{}, int64(-1)
	cmd := &cobra.Command{
		Use:   "leave [flags]",
		Short: "Take this machine out of its cluster",
		Long: "Take this machine out of its cluster. " +
			"The command cordons the Node and evicts its pods, as kubectl drain does:\n" +
			"PodDisruptionBudgets are respected, and pods of DaemonSets and mirror pods stay. " +
			"Then it deletes the Node, its last pods\nand its lease, and the agent continues without the cluster. " +
			"Pods from files and pods that were applied by hand are not\naffected.\n" +
			"\n" +
			"A node may not delete its own Node. " +
			"Without --kubeconfig, the command drains the node and ends with exit code 3. " +
			"Run\n`kubectl delete node` as an administrator, and then the command again. " +
			"--timeout limits the time. You can repeat an\ninterrupted command." +
			flags.ExitCodes("0 this machine has left the cluster", "1 error, or a pod that must not be ended",
				"3 drained, but the Node still exists", "130 interrupted"),
		Example: "  podctl agent leave --kubeconfig admin.conf --timeout 10m\n" +
			"  podctl agent leave --force --delete-emptydir-data",
		Args: flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if program.Node == nil {
				return becomeNode(program.Version)
			}
			if err := checkStarter(program.Version); err != nil {
				return err
			}
			if s.Kubeconfig == "" {
				s.Kubeconfig = cluster.Kubeconfig
			}
			if s.Kubeconfig == "" {
				return exit.Usagef("--kubeconfig is required, because the configuration file has none")
			}
			if grace >= 0 {
				s.Grace = &grace
			}
			return leave(cmd.Context(), sess, program, s)
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.Kubeconfig, "kubeconfig", "",
		"File with the credentials of an administrator (default: those of the node, which may not delete the Node)")
	f.Int64Var(&grace, "grace-period", -1, "Grace period of all pods in seconds (-1: that of each pod)")
	f.BoolVar(&s.Force, "force", false, "Also end pods that no controller creates again")
	f.BoolVar(&s.DeleteEmptyDir, "delete-emptydir-data", false, "Also end pods that lose the data of emptyDir volumes")
	return cmd
}

func leave(ctx context.Context, sess *session.Session, program Program, s *daemon.Leaving) error {
	root := sess.Flags.Layout().Root
	if left, err := membership.HasLeft(root); err != nil || left {
		sess.IO.Note("This machine has left its cluster.")
		return err
	}
	agent := sess.Agent()
	if _, err := agent.Status(ctx); err != nil {
		return err // Pods end only while an agent runs.
	}
	s.StateDir, s.Version, s.Now, s.Log, s.Note = root, program.Version, sess.IO.Now, newLog(sess), sess.IO.Note
	s.EndMembership = func(ctx context.Context) error { return endMembership(ctx, agent) }
	err := program.Node.Leave(ctx, s)
	if drained := (*daemon.NotRemovedError)(nil); errors.As(err, &drained) {
		return &exit.CodeError{Code: exit.NotYet, Err: err}
	}
	return err
}

// endMembership waits until the agent has removed its records of the pods of the API server, and makes it restart
// without the cluster. An agent that has ended meanwhile does that when it starts.
func endMembership(ctx context.Context, agent api.Client) error {
	for {
		status, err := agent.Status(ctx)
		if gone := (*api.NotRunningError)(nil); errors.As(err, &gone) {
			return nil
		}
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(status.Pods, func(p api.Pod) bool { return p.Source == podspec.OwnerAPI }) {
			_, err = agent.Reload(ctx)
			return err
		}
		if err = sleep.For(ctx, time.Second); err != nil {
			return err
		}
	}
}
