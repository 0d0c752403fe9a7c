package interact

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/runtime/remote"
	"github.com/podctl/podctl/runtime/service"
)

// NewPortForward returns the command `podctl port-forward`.
func NewPortForward(sess *session.Session) *cobra.Command {
	f := &remote.Forwarding{Addresses: []string{"localhost"}, Out: sess.IO.Out, Err: sess.IO.Err}
	cmd := &cobra.Command{
		Use:   "port-forward [flags] POD|KIND/NAME [LOCAL:]PORT...",
		Short: "Forward local ports to a pod or Service",
		Long: "Listen on local ports and forward connections to a pod. " +
			"Without LOCAL, the local port has the same number. " +
			"With an\nempty LOCAL, podctl chooses a free port. " +
			"PORT is the number or name of a container port. " +
			"With service/NAME, PORT is a\nport of the Service, and connections go to its first pod." +
			flags.ExitCodes(
				"0 --timeout expired",
				"1 error, or the connection to the pod was lost",
				"5 manifest refused",
				"130 interrupted",
			),
		Example: "  podctl port-forward web 8080:80\n" +
			"  podctl port-forward web :http --address 0.0.0.0\n" +
			"  podctl port-forward service/web 8080:80",
		ValidArgsFunction: completion.Of(sess.Flags).PodThenPorts,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return exit.Usagef("port-forward needs a pod and a port")
			}
			ctx := cmd.Context()
			d, err := selection.One(ctx, sess, selection.Show, args[0])
			if err != nil {
				return err
			}
			engine, err := sess.Engine()
			if err != nil {
				return err
			}
			if f.Ports, err = forwarded(sess, args, d.Pod); err != nil {
				return err
			}
			if err := engine.Sessions.PortForward(ctx, d, f); err != nil {
				return err
			}
			return session.WatchEnded(ctx)
		},
	}
	cmd.Flags().StringSliceVar(&f.Addresses, "address", f.Addresses, "Addresses to listen on (comma-separated)")
	return cmd
}

// forwarded returns the ports to forward. It translates ports of a Service to the target ports of the pod.
func forwarded(sess *session.Session, args []string, pod *v1.Pod) ([]string, error) {
	key, ok := selection.ServiceNamed(args[0], sess.Flags.Namespace)
	if !ok {
		return args[1:], nil
	}
	o, err := sess.Objects().Get(key)
	if err != nil {
		return nil, err
	}
	ports := make([]string, 0, len(args)-1)
	for _, arg := range args[1:] {
		local, port, given := strings.Cut(arg, ":")
		if !given {
			port = local
		}
		number, target := service.Target(o.Service, port, pod)
		if target == 0 {
			return nil, exit.Usagef(
				"%s has no port %s that leads to pod %s (`podctl get %s/%s -o yaml` shows its ports)",
				key, port, pod.Name, key.Word(), key.Name)
		}
		if !given {
			local = fmt.Sprint(number)
		}
		ports = append(ports, fmt.Sprintf("%s:%d", local, target))
	}
	return ports, nil
}
