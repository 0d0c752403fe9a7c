package node

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/runtime/node"
)

// upTimeout is the default timeout for bringing a node up.
const upTimeout = 2 * time.Minute

func newUp(sess *session.Session) *cobra.Command {
	var (
		containerd, sandboxImage string
		load                     []string
	)
	cmd := &cobra.Command{
		Use:   "up [flags]",
		Short: "Start the private containerd",
		Long: "Start a private containerd below the state directory, with its own socket, files and bridge network, and wait until\n" +
			"it is healthy. One that runs is left alone; one that died is started again and keeps its containers. Without\n" +
			"--timeout, the command gives up after two minutes." +
			flags.ExitCodes("0 running and healthy", "1 error"),
		Example: "  podctl node up --load pause.tar --load demo.tar",
		Args:    flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := within(sess, cmd, upTimeout)
			defer cancel()
			if err := sess.Flags.Layout().Prepare(); err != nil {
				return err
			}
			o := options(sess, containerd)
			o.Load, o.SandboxImage = load, sandboxImage
			s, err := node.Up(ctx, o)
			if err != nil {
				return err
			}
			sess.IO.Print("node is up: containerd %s, pid %d, %s, pods on %s", s.Version, s.PID, s.Socket, s.Subnet)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&containerd, "containerd", "", "Path of containerd (default: as last time, or from PATH)")
	f.StringArrayVar(&load, "load", nil, "Image archive to load (repeatable)")
	f.StringVar(&sandboxImage, "sandbox-image", "", "Sandbox image (default: as last time, or "+node.DefaultSandboxImage+")")
	return cmd
}
