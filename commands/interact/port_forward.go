package interact

import (
	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/runtime/remote"
)

// NewPortForward is `podctl port-forward`.
func NewPortForward(sess *session.Session) *cobra.Command {
	f := &remote.Forwarding{Addresses: []string{"localhost"}, Out: sess.IO.Out, Err: sess.IO.Err}
	cmd := &cobra.Command{
		Use:   "port-forward [flags] POD [LOCAL:]PORT...",
		Short: "Forward local ports to a pod",
		Long: "Listen on local ports and forward connections to a pod. Without LOCAL, the same port number is used; with an empty\n" +
			"LOCAL, any free one. PORT is a number or the name of a container's port." +
			flags.ExitCodes("0 --timeout expired", "1 error, or the connection to the pod was lost", "5 manifest refused", "130 interrupted"),
		Example:           "  podctl port-forward web 8080:80\n  podctl port-forward web :http --address 0.0.0.0",
		ValidArgsFunction: completion.Of(sess.Flags).PodThenPorts,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return exit.Usagef("port-forward needs a pod and a port")
			}
			ctx := cmd.Context()
			d, err := selection.Reachable(ctx, sess, args[0])
			if err != nil {
				return err
			}
			engine, err := sess.Engine()
			if err != nil {
				return err
			}
			f.Ports = args[1:]
			if err := engine.Sessions.PortForward(ctx, d, f); err != nil {
				return err
			}
			return session.WatchEnded(ctx)
		},
	}
	cmd.Flags().StringSliceVar(&f.Addresses, "address", f.Addresses, "Addresses to listen on (comma-separated)")
	return cmd
}
