package control

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/runtime/cluster/membership"
)

func newJoin(sess *session.Session) *cobra.Command {
	var confirmed bool
	cmd := &cobra.Command{
		Use:   "join [--new-cluster]",
		Short: "Let the node join another cluster, or join again after agent leave",
		Long: "Let the node join the cluster of its kubeconfig. " +
			"The agent joins another cluster only after this command, because this\n" +
			"ends the pods of the old cluster, with their grace periods. Pods from files are not affected. " +
			"Until then,\n`podctl agent status` reports another cluster.\n" +
			"\n" +
			"A new machine does not need this command. After `podctl agent leave`, --new-cluster is not needed." +
			flags.ExitCodes("0 success", "1 error, for example because this machine is not a node"),
		Example: "  podctl agent join --new-cluster",
		Args:    flags.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			left, err := membership.HasLeft(sess.Flags.Layout().Root)
			if err != nil {
				return err
			}
			if !confirmed && !left {
				return exit.Usagef("--new-cluster is required: it confirms that pods of the old cluster end")
			}
			registered, err := membership.Forget(sess.Flags.Layout().Root)
			if err != nil {
				return err
			}
			if !registered {
				return errors.New("this machine is not registered as a node: start `podctl agent --kubeconfig FILE`")
			}
			if left {
				sess.IO.Note("The node can join a cluster again: run `podctl agent reload`, or start the agent.")
				return nil
			}
			sess.IO.Note("The node joins the cluster that the API server in its kubeconfig belongs to.")
			return nil
		},
	}
	cmd.Flags().BoolVar(&confirmed, "new-cluster", false, "Confirm that pods of the old cluster end")
	return cmd
}
