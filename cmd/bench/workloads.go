package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// floorName is the name of the contender that most targets refer to.
const floorName = "floor"

// command is a workload of podctl commands. Its pod has the name of the workload.
type command struct {
	workload
	pod shape
	// others is the number of other pods on the node.
	others int
	// before, timed and after are the commands of each run; before and after may be empty. NAME stands for the pod and
	// PATH for its manifest.
	before, timed, after string
	// edited changes the environment of the last container between before and timed.
	edited bool
	// floor is the same work with bare calls. With a command before it, it needs an existing pod.
	floor func(*floor, context.Context) error
	// peers adds the other tools that can start a pod.
	peers bool
}

// commands returns all workloads of commands in the order of the report.
func commands() []command {
	const force, started = "delete --force NAME", "apply --wait=started PATH"
	one, five := shape{containers: 1}, shape{containers: 5}
	return []command{
		{
			workload: about(10, "start-1", "a new pod of one container whose image is present", times(floorName, 1.15)),
			pod:      one, timed: "apply PATH", after: force, floor: (*floor).create, peers: true,
		}, {
			workload: about(10, "start-4", "the same with four containers", times(floorName, 1.15)),
			pod:      shape{containers: 4}, timed: "apply PATH", after: force, floor: (*floor).create, peers: true,
		}, {
			workload: about(10, "init-3", "three init containers, then one: `apply --wait=started`",
				times(floorName, 1.15)),
			pod: shape{inits: 3, containers: 1}, timed: started, after: force, floor: (*floor).create,
		}, {
			workload: about(10, "replace-1-of-4",
				"one container of four is replaced after an edit; the floor is stop, create, start",
				times(floorName, 1.1)),
			pod: shape{containers: 4}, before: started, edited: true, timed: "apply PATH", after: force,
			floor: (*floor).replace,
		}, {
			workload: about(10, "delete", "`delete` of a pod of one container that obeys SIGTERM; "+
				"the floor is stop, stop sandbox, remove, remove sandbox", times(floorName, 1.1)),
			pod: one, before: "apply PATH", timed: "delete NAME", floor: (*floor).remove,
		}, {
			workload: about(2, "wait-10s",
				"the processor time of `apply --wait` while an init container sleeps for ten seconds",
				Target{Unit: ofOneProcessor, Limit: 0.02}),
			pod: shape{inits: 1, sleep: 10 * time.Second, containers: 1}, timed: started, after: force,
		}, {
			workload: about(25, "plan-1", "`plan` of a running pod of five containers, pods on the node: 1",
				Target{Unit: inMilliseconds, Limit: 25}),
			pod: five, before: started, timed: "plan PATH",
		}, {
			workload: about(25, "plan-400", "`plan` of a running pod of five containers, pods on the node: 400",
				Target{Unit: inMilliseconds, Limit: 37.5}),
			pod: five, others: 399, before: started, timed: "plan PATH",
		},
	}
}

// suite is the node of the commands, with the other tools; they are nil if they are not installed.
type suite struct {
	*node

	// before is the podctl of -before on this node, or nil.
	before, podman, crictl program
}

// benchCommands measures single commands on one node.
func benchCommands(ctx context.Context, o *options) (machine string, results []Result, err error) {
	u := &suite{podman: tool(o.podman), crictl: tool("crictl")}
	u.node, err = newNode(ctx, o)
	defer func() { err = errors.Join(err, u.close(context.WithoutCancel(ctx))) }()
	if err != nil {
		return "", nil, err
	}
	if o.before != "" {
		u.before = u.onNode(o.before)
	}
	if u.podman != nil {
		defer u.podman.do("rmi", demoImage)(context.WithoutCancel(ctx)) //nolint:errcheck // it may not be loaded
		// podman needs capabilities that the container of a build may not have.
		const try = "podctl-bench-try"
		err = inTurn(
			u.put(try, shape{containers: 1}, try),
			u.podman.do("load", "-q", "-i", filepath.Join(o.images, demoArchive)),
			u.podman.do("kube", "play", u.manifest(try)),
			u.podman.do("kube", "down", u.manifest(try)),
		)(ctx)
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench: podman is left out:", err)
			u.podman = nil
		}
	}
	var workloads []workload
	for _, c := range commands() {
		workloads = append(workloads, u.workload(&c))
	}
	results, err = measureAll(ctx, o, workloads)
	return u.machine(ctx, u.crictl, u.podman), results, err
}

// workload returns the workload of a command with its contenders on this node.
func (u *suite) workload(c *command) workload {
	w := c.workload
	w.begin = func(ctx context.Context) ([]contender, error) {
		if err := inTurn(u.put(w.Name, c.pod, w.Name), u.fill(c.others))(ctx); err != nil {
			return nil, err
		}
		list := []contender{u.run(c, "podctl", u.podctl)}
		if u.before != nil {
			list = append(list, u.run(c, "podctl before", u.before))
		}
		if c.floor == nil {
			return list, nil
		}
		f, err := u.floorOf(ctx, "floor-"+w.Name, c.pod)
		if err != nil {
			return nil, err
		}
		return append(append(list, f.contender(c)), u.peers(c, f)...), nil
	}
	w.end = u.podctl.do("delete", "--force", "--ignore-not-found", w.Name)
	return w
}

// run returns the contender of a podctl program.
func (u *suite) run(c *command, name string, podctl program) contender {
	words := func(line string) []string {
		return strings.Fields(strings.NewReplacer("NAME", c.Name, "PATH", u.manifest(c.Name)).Replace(line))
	}
	one := podctl.contender(name, words(c.timed)...)
	one.before, one.after = podctl.do(words(c.before)...), podctl.do(words(c.after)...)
	if c.edited {
		edited := c.pod
		edited.mark = "edited"
		one.before = inTurn(u.put(c.Name, c.pod, c.Name), one.before, u.put(c.Name, edited, c.Name))
	}
	return one
}

// contender returns the bare calls of a command.
func (f *floor) contender(c *command) contender {
	one := contender{name: floorName, before: f.prepare, after: f.discard}
	one.run = clocked(func(ctx context.Context) error { return c.floor(f, ctx) })
	if c.before != "" {
		one.before = inTurn(f.prepare, f.create)
	}
	return one
}

// peers returns the other tools that can start the pod.
func (u *suite) peers(c *command, f *floor) (list []contender) {
	if c.peers && u.crictl != nil {
		list = append(list, f.crictl(u.crictl))
	}
	if c.peers && u.podman != nil {
		play := u.podman.contender("podman kube play", "kube", "play", u.manifest(c.Name))
		play.after = u.podman.do("kube", "down", u.manifest(c.Name))
		list = append(list, play)
	}
	return list
}

// fill runs other pods. They use the machine's network, because there are not enough addresses for them.
func (u *suite) fill(pods int) step {
	if pods == 0 {
		return nil
	}
	return inTurn(
		u.put("fill", shape{containers: 1, host: true}, podNames("fill", pods)...),
		u.podctl.do("apply", "--wait=started", "--parallel", "8", u.manifest("fill")),
	)
}
