package node

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/runtime/node"
)

// upTimeout is the default timeout for bringing a node up.
const upTimeout = 10 * time.Minute

func newUp(sess *session.Session) *cobra.Command {
	var (
		containerd, sandboxImage, driver string
		load                             []string
	)
	cmd := &cobra.Command{
		Use:   "up [flags]",
		Short: "Start the private containerd",
		Long: "Start a private containerd in the state directory, with its own socket, files and bridge network, " +
			"and wait until it is\nhealthy. " +
			"If it already runs, nothing changes. " +
			"If it died, it is started again, and its containers continue to run. " +
			"The\ncommand loads the pause image that was installed or built with podctl, " +
			"and prints a note if the sandbox image is\nmissing. " +
			"Without --timeout, it gives up after 10 minutes." +
			flags.ExitCodes("0 running and healthy", "1 error"),
		Example: "  podctl node up\n  podctl node up --load bin/pause.tar --load bin/demo.tar",
		Args:    flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := within(sess, cmd, upTimeout)
			defer cancel()
			if err := sess.Flags.Layout().Prepare(); err != nil {
				return err
			}
			o := options(sess, containerd)
			o.Load, o.SandboxImage, o.CgroupDriver = load, sandboxImage, driver
			s, err := node.Up(ctx, o)
			if err != nil {
				return err
			}
			sess.IO.Print("node is up: containerd %s, pid %d, %s, pods on %s", s.Version, s.PID, s.Socket, s.Subnet)
			noteSandboxImage(sess.IO, s)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&containerd, "containerd", "", "Path of containerd (default: the last one used, or from PATH)")
	f.StringArrayVar(&load, "load", nil, "Image archive to load (repeatable)")
	f.StringVar(&sandboxImage, "sandbox-image", "",
		"Sandbox image (default: the last one used, or "+node.DefaultSandboxImage+")")
	f.Var(&flags.Choice{Value: &driver, Allowed: []string{node.Systemd, node.Cgroupfs, ""}}, "cgroup-driver",
		"Cgroup driver: "+node.Systemd+" or "+node.Cgroupfs+
			" (default: the last one used, or systemd where systemd and cgroup v2 run)")
	return cmd
}

// noteSandboxImage prints a note if no pod can start yet because the sandbox image is missing.
func noteSandboxImage(out *terminal.IO, s *node.Status) {
	switch {
	case !s.SandboxImageMissing:
	case s.SandboxImage == node.DefaultSandboxImage:
		out.Note("note: the sandbox image %s is missing, no registry has it, and no pod can start without it: "+
			"load it (podctl node up --load pause.tar; `make images` builds bin/pause.tar), "+
			"or run podctl node down and choose another one with --sandbox-image", s.SandboxImage)
	default:
		out.Note("note: the sandbox image %s is missing: the first pod pulls it, or run podctl image pull %[1]s",
			s.SandboxImage)
	}
}
