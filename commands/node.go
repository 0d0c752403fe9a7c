package commands

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/node"
	"github.com/podctl/podctl/runtime/state"
)

type nodeOptions struct {
	containerd   string
	load         []string
	sandboxImage string
	output       string
}

// How long bringing a node up or down may take where nobody says it.
const (
	upTimeout   = 2 * time.Minute
	downTimeout = 5 * time.Minute
)

// within bounds a command that no --timeout bounds.
func (g *globals) within(cmd *cobra.Command, fallback time.Duration) (context.Context, context.CancelFunc) {
	if g.timeout > 0 || cmd.Flags().Changed("timeout") {
		fallback = 0
	}
	return withTimeout(cmd.Context(), fallback)
}

func newNode(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "node COMMAND",
		Short: "A private containerd for a machine that has no runtime",
		Long:  "Bring up, look at and take down a private containerd with a bridge network, for machines without a container runtime.",
		Args:  unknownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newNodeUp(g), newNodeDown(g), newNodeStatus(g))
	return cmd
}

func newNodeUp(g *globals) *cobra.Command {
	o := &nodeOptions{}
	cmd := &cobra.Command{
		Use:   "up [flags]",
		Short: "Start the private containerd, healthy when the command returns",
		Long: "Start a private containerd below the state directory: own socket, own files, own bridge network.\n" +
			"One that runs is left alone; one that died is started again and keeps its containers. Without --timeout it\n" +
			"gives up after two minutes." +
			exitCodes("0 up and healthy", "1 error"),
		Example: "  podctl node up --load pause.tar --load demo.tar",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := g.within(cmd, upTimeout)
			defer cancel()
			if err := g.layout().Prepare(); err != nil {
				return err
			}
			s, err := node.Up(ctx, o.options(g))
			if err != nil {
				return err
			}
			g.print("node is up: containerd %s, pid %d, %s, pods on %s", s.Version, s.PID, s.Socket, s.Subnet)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.containerd, "containerd", "", "The containerd program (default: that of the node before, or the one in PATH)")
	f.StringArrayVar(&o.load, "load", nil, "Image archive to load (repeatable)")
	f.StringVar(&o.sandboxImage, "sandbox-image", "", "Image of the pods' sandboxes (default: that of the node before, or "+node.DefaultSandboxImage+")")
	return cmd
}

func (o *nodeOptions) options(g *globals) node.Options {
	return node.Options{
		Dir: g.layout().NodeDir(), Containerd: o.containerd, Load: o.load, SandboxImage: o.sandboxImage,
		Report: func(text string) { g.note("%s", text) },
	}
}

func newNodeDown(g *globals) *cobra.Command {
	o := &nodeOptions{}
	cmd := &cobra.Command{
		Use:   "down [flags]",
		Short: "Stop the pods and the private containerd, and leave nothing",
		Long: "Delete the pods of the private containerd, stop it, and remove its mounts, network and files. Without --timeout it\n" +
			"gives up after five minutes." + exitCodes("0 gone", "1 error"),
		Example: "  podctl node down",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := g.within(cmd, downTimeout)
			defer cancel()
			if err := g.deleteNodePods(ctx, o.options(g)); err != nil {
				g.note("note: %v; the node takes its pods down by itself", err)
			}
			if err := node.Down(ctx, o.options(g)); err != nil {
				return err
			}
			g.print("node is down")
			return nil
		},
	}
	cmd.Flags().StringVar(&o.containerd, "containerd", "", "The containerd program, if it has to be started for the clean-up")
	return cmd
}

// deleteNodePods deletes the pods that podctl applied to the node, so that hooks
// run and nothing of them is left in the state directory. A node that died is
// started again for it.
func (g *globals) deleteNodePods(ctx context.Context, o node.Options) error {
	socket := node.Socket(o.Dir)
	applied, unreadable, err := state.Applied(g.layout())
	if err != nil {
		return err
	}
	for _, one := range unreadable {
		g.note("note: %v; if the pod is this node's, it goes without its hooks, and its files stay below the state directory", one)
	}
	applied = slices.DeleteFunc(applied, func(p state.AppliedPod) bool { return p.Checkpoint.Endpoint != "unix://"+socket })
	if len(applied) == 0 {
		return nil
	}
	if _, err = node.Up(ctx, o); err != nil {
		return err
	}
	g.runtimeEndpoint, g.settings[endpointFlag] = socket, setting{origin: "podctl node"}
	engine, err := g.connect()
	if err != nil {
		return err
	}
	d := newDeleter(g, engine, &deleteOptions{grace: -1, parallel: stoppedAtATime}, refs(desiredOf(applied)))
	return errors.Join(d.run(ctx), g.client.Close())
}

func newNodeStatus(g *globals) *cobra.Command {
	o := &nodeOptions{}
	cmd := &cobra.Command{
		Use:     "status [flags]",
		Short:   "Show whether the private containerd runs",
		Long:    "Show whether the private containerd runs, where its socket is, and how many pods it has." + exitCodes("0 running", "1 error", "3 not running"),
		Example: "  podctl node status\n  podctl node status -o json | jq -r .socket",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := node.Get(cmd.Context(), g.layout().NodeDir())
			if err != nil {
				return err
			}
			return g.showNode(o, s)
		},
	}
	cmd.Flags().VarP(outputFlag(&o.output, "json", "yaml"), "output", "o", "Output format: text, json or yaml")
	return cmd
}

func (g *globals) showNode(o *nodeOptions, s *node.Status) error {
	switch {
	case isDocument(o.output):
		doc := struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			*node.Status
		}{model.APIVersion, "NodeStatus", s}
		if err := writeDocument(g.env.Out, o.output, doc); err != nil {
			return err
		}
	case s.Running:
		g.print("node is up: containerd %s, pid %d, %s, pods on %s, %d running", s.Version, s.PID, s.Socket, s.Subnet, s.Pods)
	default:
		g.print("node is not up (podctl node up)")
	}
	if !s.Running {
		return withCode(exitNotYet)
	}
	return nil
}
