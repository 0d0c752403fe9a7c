package interact

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/commands/completion"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/flags"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/logfile"
	"github.com/podctl/podctl/runtime/remote"
	runtimesession "github.com/podctl/podctl/runtime/session"
)

type debugOptions struct {
	streamOptions
	image   string
	target  string
	profile string
	pull    string
	env     []string
	attach  bool
	kubelet bool
}

// NewDebug returns the command `podctl debug`.
func NewDebug(sess *session.Session) *cobra.Command {
	o := &debugOptions{}
	cmd := &cobra.Command{
		Annotations: exit.OwnFailure(exit.ExecFailed),
		Use:         "debug [flags] POD --image IMAGE [-- COMMAND [ARG...]]",
		Short:       "Add a debug container to a running pod",
		Long: "Add a debug container to a running pod. " +
			"It shares the network of the pod and, with --target, the processes of one\ncontainer. " +
			"The manifest and the other containers do not change. " +
			"The debug container runs until it exits or the pod\nstops." +
			flags.ExitCodes(
				"0 started; with -i: the container exited with 0",
				"1-125 with -i: the exit code of the container",
				"126 the container could not be started, or its output could not be written",
				"127 no such pod or container",
				"130 interrupted",
			),
		Example: "  podctl debug -it web --image busybox --target app\n" +
			"  podctl debug web --image tools --profile netadmin -- tcpdump -i eth0",
		ValidArgsFunction: completion.Of(sess.Flags).Pod,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || o.image == "" || (len(args) > 1 && cmd.ArgsLenAtDash() != 1) {
				return exit.Usagef("debug needs a pod and --image, and a command only after --")
			}
			return processCode(runDebug(cmd.Context(), sess, o, args[0], args[1:]))
		},
	}
	f := cmd.Flags()
	o.register(cmd)
	f.Lookup("container").Usage = "Name of the debug container (default: debugger- and five letters)"
	f.StringVar(&o.image, "image", "", "Image of the debug container")
	f.StringVar(&o.target, "target", "", "Container to share processes with")
	profiles := []string{"general", "baseline", "restricted", "netadmin", "sysadmin"}
	f.Var(&flags.Choice{Value: &o.profile, Allowed: profiles, Start: "general"}, "profile",
		"Security profile: general, baseline, restricted, netadmin or sysadmin")
	f.StringArrayVarP(&o.env, "env", "e", nil, "Environment variable: NAME=VALUE (repeatable)")
	f.StringVar(&o.pull, "image-pull-policy", "",
		"Pull policy: Always, IfNotPresent or Never (default: depends on the image tag)")
	f.BoolVar(&o.kubelet, "allow-kubelet", false, "Continue even if a kubelet on the same runtime may kill the pod")
	f.BoolVar(&o.attach, "attach", false, "Attach to the container even without -i")
	return cmd
}

func runDebug(ctx context.Context, sess *session.Session, o *debugOptions, name string, command []string) error {
	d, engine, err := selection.Running(ctx, sess, name)
	if err == nil && d.Rebuilt {
		err = fmt.Errorf("pod %s/%s was not applied by podctl, so podctl cannot add a container to it",
			d.Pod.Namespace, d.Pod.Name)
	}
	if err != nil {
		return notFoundCode(err)
	}
	if o.tty && o.stdin && sess.IO.Terminal() == nil {
		noteNoTerminal(sess.IO)
		o.tty = false
	}
	c, err := o.definition(command)
	if err != nil {
		return err
	}
	outcome, err := o.start(ctx, sess, engine, d, c)
	if outcome != nil {
		err = errors.Join(err, outcome.Err())
	}
	if err != nil {
		return err
	}
	if !o.stdin && !o.attach {
		sess.IO.Print("debug container %s is running; use its name with podctl logs, exec and attach", c.Name)
		return nil
	}
	a := &attachment{io: sess.IO, engine: engine, container: c.Name}
	if a.pod, err = engine.Sessions.WithDebug(ctx, d); err != nil {
		return err
	}
	if err = a.follow(ctx, &o.streamOptions); err != nil {
		return err
	}
	t, err := a.end(ctx)
	if err == nil && t != nil && t.ExitCode != 0 {
		return &remote.ExitError{Code: int(t.ExitCode)}
	}
	return err
}

func (o *debugOptions) start(
	ctx context.Context, sess *session.Session, engine *runtime.Engine, d *podspec.Desired, c *v1.EphemeralContainer,
) (*executor.Outcome, error) {
	opts := executor.Options{AllowKubelet: o.kubelet}
	if !o.container.Quiet {
		progress := view.NewProgress(sess.IO, 1)
		defer progress.Stop()
		opts.Report, opts.Downloads = progress.Report, progress.Live()
	}
	return engine.Pods.Debug(ctx, d, c, opts)
}

// follow connects to a debug container that has an input. For one without an input, and for one that ended before it
// wrote anything, it prints the log. The log has the output from before the connection.
func (a *attachment) follow(ctx context.Context, o *streamOptions) error {
	if o.stdin {
		wrote, err := a.connect(ctx, o)
		if wrote {
			return err
		}
		if t, unknown := a.end(ctx); unknown != nil || t == nil {
			return err
		}
	}
	opts := runtimesession.LogOptions{Options: logfile.Options{Follow: true}, Container: a.container, Once: true}
	return a.engine.Sessions.Logs(ctx, a.pod, opts, a.io.Out, a.io.Err)
}

// A runtime ends the streams of a container shortly before it reports the end of the container.
const (
	exitTries = 40
	exitPause = 50 * time.Millisecond
)

// end returns how a container ended, after its streams have ended. It returns nil if the container still runs.
func (a *attachment) end(ctx context.Context) (*v1.ContainerStateTerminated, error) {
	for range exitTries {
		pods, err := a.engine.Lister.List(ctx, []*podspec.Desired{a.pod})
		if err != nil {
			return nil, err
		}
		if t := view.StatusOf(pods[0], a.container).State.Terminated; t != nil || !terminal.Sleep(ctx, exitPause) {
			return t, nil
		}
	}
	return nil, nil // it runs
}

// definition returns the debug container for the flags.
func (o *debugOptions) definition(command []string) (*v1.EphemeralContainer, error) {
	name := o.container.Name
	if name == "" {
		name = "debugger-" + strings.ToLower(rand.Text()[:5])
	}
	c := &v1.EphemeralContainer{
		TargetContainerName: o.target,
		EphemeralContainerCommon: v1.EphemeralContainerCommon{
			Name: name, Image: o.image, Command: command, Stdin: o.stdin, StdinOnce: o.stdin, TTY: o.tty,
			ImagePullPolicy: v1.PullPolicy(o.pull), SecurityContext: debugProfile(o.profile),
		},
	}
	for _, e := range o.env {
		key, value, ok := strings.Cut(e, "=")
		if !ok {
			return nil, exit.Usagef("--env %s: must be NAME=VALUE", e)
		}
		c.Env = append(c.Env, v1.EnvVar{Name: key, Value: value})
	}
	return c, nil
}

// debugProfile returns the security context of a profile. The profiles are those of kubectl debug.
func debugProfile(profile string) *v1.SecurityContext {
	yes, no := true, false
	switch profile {
	case "baseline":
		return nil
	case "restricted":
		return &v1.SecurityContext{
			RunAsNonRoot: &yes, AllowPrivilegeEscalation: &no,
			Capabilities:   &v1.Capabilities{Drop: []v1.Capability{"ALL"}},
			SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault},
		}
	case "netadmin":
		return &v1.SecurityContext{Capabilities: &v1.Capabilities{Add: []v1.Capability{"NET_ADMIN", "NET_RAW"}}}
	case "sysadmin":
		return &v1.SecurityContext{Privileged: &yes}
	}
	return &v1.SecurityContext{Capabilities: &v1.Capabilities{Add: []v1.Capability{"SYS_PTRACE"}}}
}
