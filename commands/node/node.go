package node

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/node"
)

// New returns the command `podctl node`.
func New(sess *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "node COMMAND",
		Short: "Manage a private containerd for machines without a runtime",
		Long: "Start, inspect and remove a private containerd with a bridge network, " +
			"for machines without a container runtime.",
		Args: flags.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newUp(sess), newDown(sess), newStatus(sess))
	return cmd
}

// within sets a default timeout for a command without --timeout.
func within(sess *session.Session, cmd *cobra.Command, fallback time.Duration) (context.Context, context.CancelFunc) {
	if sess.Flags.Timeout > 0 || cmd.Flags().Changed("timeout") {
		fallback = 0
	}
	return session.WithTimeout(cmd.Context(), fallback)
}

// options returns the options that all node commands share.
func options(sess *session.Session, containerd string) node.Options {
	return node.Options{
		Dir:        sess.Flags.Layout().NodeDir(),
		Containerd: containerd,
		Report:     func(text string) { sess.IO.Note("%s", text) },
	}
}

func newStatus(sess *session.Session) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "status [flags]",
		Short: "Show the state of the private containerd",
		Long: "Show whether the private containerd runs, where its socket is, and how many pods it has." +
			flags.ExitCodes("0 running", "1 error", "3 not running"),
		Example: "  podctl node status\n  podctl node status -o json | jq -r .socket",
		Args:    flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := node.Get(cmd.Context(), sess.Flags.Layout().NodeDir())
			if err != nil {
				return err
			}
			return show(sess.IO, s, output)
		},
	}
	cmd.Flags().VarP(flags.Output(&output, "json", "yaml"), "output", "o", "Output format: text, json or yaml")
	return cmd
}

func show(out *terminal.IO, s *node.Status, output string) error {
	switch {
	case terminal.IsDocument(output):
		doc := struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			*node.Status
		}{model.APIVersion, "NodeStatus", s}
		if err := terminal.WriteDocument(out.Out, output, doc); err != nil {
			return err
		}
	case s.Running:
		out.Print("node is up: containerd %s, pid %d, %s, pods on %s, %d running",
			s.Version, s.PID, s.Socket, s.Subnet, s.Pods)
		noteSandboxImage(out, s)
	default:
		out.Print("node is not up (podctl node up)")
	}
	if !s.Running {
		return exit.With(exit.NotYet)
	}
	return nil
}
