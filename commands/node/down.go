package node

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/runtime/node"
	"github.com/podctl/podctl/runtime/state"
)

// downTimeout is the default timeout for taking a node down.
const downTimeout = 15 * time.Minute

func newDown(sess *session.Session) *cobra.Command {
	var containerd string
	var all bool
	cmd := &cobra.Command{
		Use:   "down [flags]",
		Short: "Remove the private containerd and its pods",
		Long: "Delete the pods of the private containerd, stop it, and remove its mounts, network and files. Without --timeout, the\n" +
			"command gives up after five minutes.\n" +
			"\n" +
			"--purge leaves nothing of podctl on the machine: it also deletes the pods of other runtimes, workloads and Services, and\n" +
			"removes nftables tables, route_localnet, cgroups, archived logs, the state directory and the DATA OF CLAIMS. Stop the agent\n" +
			"first. Files that podctl did not make stay, for example seccomp profiles." +
			flags.ExitCodes("0 removed", "1 error"),
		Example: "  podctl node down\n  podctl node down --purge",
		Args:    flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := within(sess, cmd, downTimeout)
			defer cancel()
			o := options(sess, containerd)
			if all {
				return purge(ctx, sess, o)
			}
			if err := deletePods(ctx, sess, o); err != nil {
				sess.IO.Note("note: %v; the node removes its pods itself", err)
			}
			if err := node.Down(ctx, o); err != nil {
				return err
			}
			sess.IO.Print("node is down")
			return nil
		},
	}
	cmd.Flags().StringVar(&containerd, "containerd", "", "Path of containerd, if it has to be started for the clean-up")
	cmd.Flags().BoolVar(&all, "purge", false, "Also remove everything else of podctl: all pods, the data of claims, logs, rules and files")
	return cmd
}

// deletePods deletes the pods that podctl applied to the node, so that hooks
// run and nothing of them is left in the state directory. A node that died is
// started again for it.
func deletePods(ctx context.Context, sess *session.Session, o node.Options) error {
	socket := node.Socket(o.Dir)
	applied, unreadable, err := state.Applied(sess.Flags.Layout())
	if err != nil {
		return err
	}
	for _, one := range unreadable {
		sess.IO.Note("note: %v; if the pod is this node's, it is removed without hooks, and its files stay in the state directory", one)
	}
	applied = slices.DeleteFunc(applied, func(p state.AppliedPod) bool { return p.Checkpoint.Endpoint != "unix://"+socket })
	if len(applied) == 0 {
		return nil
	}
	if _, err = node.Up(ctx, o); err != nil {
		return err
	}
	return deletePodsAt(ctx, sess, socket, selection.Refs(selection.DesiredOf(applied)))
}
