package commands

import (
	"github.com/spf13/cobra"

	"github.com/podctl/podctl/runtime/remote"
)

func newPortForward(g *globals) *cobra.Command {
	f := &remote.Forwarding{Addresses: []string{"localhost"}, Out: g.env.Out, Err: g.env.Err}
	cmd := &cobra.Command{
		Use:   "port-forward [flags] POD [LOCAL:]PORT...",
		Short: "Carry connections to ports of this machine into a pod",
		Long: "Listen on ports of this machine and carry what comes there into a pod. LOCAL may be left out (the same number)\n" +
			"or be empty (any free one); PORT may be the name of a container's port." +
			exitCodes("0 --timeout is over", "1 error, or the pod was lost", "5 refused manifest", "130 interrupted"),
		Example:           "  podctl port-forward web 8080:80\n  podctl port-forward web :http --address 0.0.0.0",
		ValidArgsFunction: g.completePod,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usagef("port-forward needs a pod and a port")
			}
			ctx := cmd.Context()
			d, err := g.onePod(ctx, args[0])
			if err != nil {
				return err
			}
			engine, err := g.connect()
			if err != nil {
				return err
			}
			f.Ports = args[1:]
			if err := engine.Sessions.PortForward(ctx, d, f); err != nil {
				return err
			}
			return watchEnded(ctx)
		},
	}
	cmd.Flags().StringSliceVar(&f.Addresses, "address", f.Addresses, "Addresses to listen on (comma separated)")
	return cmd
}
