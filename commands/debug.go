package commands

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/logfile"
	"github.com/podctl/podctl/runtime/remote"
	"github.com/podctl/podctl/runtime/session"
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

func newDebug(g *globals) *cobra.Command {
	o := &debugOptions{}
	cmd := &cobra.Command{
		Annotations: ownFailure(exitExecFailed),
		Use:         "debug [flags] POD --image IMAGE [-- COMMAND [ARG...]]",
		Short:       "Add a debug container to a running pod",
		Long: "Add a container to a running pod, to look at it from within: it shares the pod's network, and with --target the\n" +
			"processes of one of its containers. The pod's manifest stays as it is, no other container is touched, and the\n" +
			"debug container lives until it ends or the pod is stopped." +
			exitCodes("0 it was started; with -i: it ended well", "1-125 with -i: its own exit code", "126 it could not be started, or what it printed not be written", "127 there is no such pod or container", "130 interrupted"),
		Example:           "  podctl debug -it web --image busybox --target app\n  podctl debug web --image tools --profile netadmin -- tcpdump -i eth0",
		ValidArgsFunction: g.completePod,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || o.image == "" || (len(args) > 1 && cmd.ArgsLenAtDash() != 1) {
				return &codeError{code: exitExecFailed, err: usagef("debug needs a pod and --image, and a command only after --")}
			}
			return execCode(runDebug(cmd.Context(), g, o, args[0], args[1:]))
		},
	}
	f := cmd.Flags()
	o.add(cmd)
	f.Lookup("container").Usage = "The name of the debug container (default: debugger- and some letters)"
	f.StringVar(&o.image, "image", "", "The image of the debug container")
	f.StringVar(&o.target, "target", "", "Share the processes of this container")
	f.Var(&choice{value: &o.profile, allowed: []string{"general", "baseline", "restricted", "netadmin", "sysadmin"}, start: "general"},
		"profile", "What it may do: general, baseline, restricted, netadmin or sysadmin")
	f.StringArrayVarP(&o.env, "env", "e", nil, "NAME=VALUE for its environment (repeatable)")
	f.StringVar(&o.pull, "image-pull-policy", "", "Always, IfNotPresent or Never (default: by the image's tag)")
	f.BoolVar(&o.kubelet, "allow-kubelet", false, "Go on although a kubelet runs on the same runtime and may kill the pod")
	f.BoolVar(&o.attach, "attach", false, "Connect to it also without -i")
	return cmd
}

func runDebug(ctx context.Context, g *globals, o *debugOptions, name string, command []string) error {
	d, err := g.runningPod(ctx, name)
	if err != nil {
		return noEntry(err)
	}
	if o.tty && o.stdin && g.env.terminal() == nil {
		g.noteNoTerminal()
		o.tty = false
	}
	c, err := o.definition(command)
	if err != nil {
		return err
	}
	opts := executor.Options{Report: g.progress(false), AllowKubelet: o.kubelet}
	if o.quiet {
		opts.Report = nil
	}
	outcome, err := g.engine.Pods.Debug(ctx, d, c, opts)
	if err = errors.Join(err, failureOf(outcome)); err != nil {
		return err
	}
	if !o.stdin && !o.attach {
		g.print("debug container %s runs; podctl logs, exec and attach know it by that name", c.Name)
		return nil
	}
	with, err := g.engine.Sessions.WithDebug(ctx, d)
	if err != nil {
		return err
	}
	if err := g.watchDebug(ctx, o, with, c.Name); err != nil {
		return err
	}
	return g.exitOf(ctx, with, c.Name)
}

// watchDebug connects to a debug container that is typed to. Of another one, and of one that
// has ended before anything of it was heard, the log is shown, which has what it wrote before
// anybody could connect.
func (g *globals) watchDebug(ctx context.Context, o *debugOptions, d *podspec.Desired, container string) error {
	if o.stdin {
		err := g.attach(ctx, &o.streamOptions, d, container)
		if o.heard.Load() || !g.hasEnded(ctx, d, container) {
			return err
		}
	}
	opts := session.LogOptions{Options: logfile.Options{Follow: true}, Container: container, Once: true}
	return g.engine.Sessions.Logs(ctx, d, opts, g.env.Out, g.env.Err)
}

// A runtime ends the streams of a container a moment before it says that it ended.
const (
	exitTries = 40
	exitPause = 50 * time.Millisecond
)

// ending is how a container ended whose streams have; nil when it still runs.
func (g *globals) ending(ctx context.Context, d *podspec.Desired, container string) (*v1.ContainerStateTerminated, error) {
	for range exitTries {
		pods, err := g.engine.Lister.List(ctx, []*podspec.Desired{d})
		if err != nil {
			return nil, err
		}
		if t := statusOf(pods[0], container).State.Terminated; t != nil || !sleep(ctx, exitPause) {
			return t, nil
		}
	}
	return nil, nil //nolint:nilnil // it runs
}

func (g *globals) hasEnded(ctx context.Context, d *podspec.Desired, container string) bool {
	t, err := g.ending(ctx, d, container)
	return err == nil && t != nil
}

// exitOf is the exit code of a container whose streams have ended; none when it
// still runs.
func (g *globals) exitOf(ctx context.Context, d *podspec.Desired, container string) error {
	t, err := g.ending(ctx, d, container)
	if err == nil && t != nil && t.ExitCode != 0 {
		return &remote.ExitError{Code: int(t.ExitCode)}
	}
	return err
}

func failureOf(outcome *executor.Outcome) error {
	if outcome == nil {
		return nil
	}
	return outcome.Err()
}

// definition is the debug container that the flags describe.
func (o *debugOptions) definition(command []string) (*v1.EphemeralContainer, error) {
	name := o.container
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
			return nil, usagef("--env %s: NAME=VALUE is wanted", e)
		}
		c.Env = append(c.Env, v1.EnvVar{Name: key, Value: value})
	}
	return c, nil
}

// debugProfile is what a debug container may do (kubectl debug: the profiles of the
// same names).
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
