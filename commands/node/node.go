package node

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/runtime/node"
)

// New is `podctl node`.
func New(sess *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "node COMMAND",
		Short: "Manage a private containerd for machines without a runtime",
		Long:  "Start, inspect and remove a private containerd with a bridge network, for machines without a container runtime.",
		Args:  flags.Subcommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newUp(sess), newDown(sess), newStatus(sess))
	return cmd
}

// within bounds a command that no --timeout bounds.
func within(sess *session.Session, cmd *cobra.Command, fallback time.Duration) (context.Context, context.CancelFunc) {
	if sess.Flags.Timeout > 0 || cmd.Flags().Changed("timeout") {
		fallback = 0
	}
	return session.WithTimeout(cmd.Context(), fallback)
}

// options are those that every command on the node has.
func options(sess *session.Session, containerd string) node.Options {
	return node.Options{
		Dir: sess.Flags.Layout().NodeDir(), Containerd: containerd, Report: func(text string) { sess.IO.Note("%s", text) },
	}
}
