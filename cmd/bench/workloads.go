package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Names of contenders that limits refer to.
const (
	podctlName      = "podctl"
	floorName       = "floor"
	floorSideBySide = "floor, side by side"
)

// suite creates the workloads of commands on a node.
type suite struct{ *node }

// podctls returns the contenders that run a command line of podctl: the one that is timed and, with -before, the podctl
// to compare it with.
func (u *suite) podctls(before, after step, args ...string) []contender {
	list := []contender{u.timedPodctl(podctlName, u.o.podctl, args...)}
	if u.o.before != "" {
		list = append(list, u.timedPodctl("podctl before", u.o.before, args...))
	}
	for i := range list {
		list[i].before, list[i].after = before, after
	}
	return list
}

// workloads returns all workloads in the order of the report.
func (u *suite) workloads() []workload {
	return []workload{
		u.creation("start-1", "a new pod of one container whose image is present",
			limit{against: floorName, factor: 1.15}, shape{containers: 1}),
		u.creation("start-4", "the same with four containers",
			limit{against: floorSideBySide, factor: 1.15}, shape{containers: 4}),
		u.creation("init-3", "three init containers, then one: `apply --wait=started`",
			limit{against: floorName, factor: 1.15}, shape{inits: 3, containers: 1}, "--wait=started"),
		u.replacement(), u.deletion(), u.waiting(), u.plan(1, 25), u.plan(400, 37.5),
	}
}

// pod writes the manifest of a pod, and prepares the floor of an equal pod.
func (u *suite) pod(ctx context.Context, name string, s shape) (string, *floor, error) {
	path, err := u.write(name+".yaml", s.manifest(name))
	if err != nil {
		return "", nil, err
	}
	f, err := u.floorOf(ctx, "floor-"+name, s)
	return path, f, err
}

// creation creates a new pod whose image is present.
func (u *suite) creation(name, what string, l limit, s shape, flags ...string) workload {
	return workload{name: name, what: what, limit: l, begin: func(ctx context.Context) ([]contender, error) {
		path, f, err := u.pod(ctx, name, s)
		if err != nil {
			return nil, err
		}
		apply := append([]string{"apply", path}, flags...)
		list := append(u.podctls(nil, u.do("delete", "--force", name), apply...), f.creating(floorName, oneByOne))
		if s.containers > 1 {
			list = append(list, f.creating(floorSideBySide, sideBySide))
		}
		if s.inits == 0 {
			list = append(list, u.peersStart(f, path)...)
		}
		return list, nil
	}}
}

// replacement edits the environment of one container of four before each run.
func (u *suite) replacement() workload {
	w := workload{
		name:  "replace-1-of-4",
		what:  "one container of four is replaced after an edit; the floor is stop, create, start",
		limit: limit{against: floorName, factor: 1.1},
	}
	var f *floor
	w.begin = func(ctx context.Context) (list []contender, err error) {
		s, path := shape{containers: 4}, ""
		if path, f, err = u.pod(ctx, "replace", s); err != nil {
			return nil, err
		}
		edits := 0
		edit := func(context.Context) error {
			edits++
			s.mark = fmt.Sprint(edits)
			_, failed := u.write("replace.yaml", s.manifest("replace"))
			return failed
		}
		if err = errors.Join(u.podctl(ctx, "apply", "--wait=started", path), f.prepare(ctx)); err != nil {
			return nil, err
		}
		return append(u.podctls(edit, nil, "apply", path), f.replacing()), f.run(ctx, oneByOne)
	}
	w.end = func(ctx context.Context) error {
		return errors.Join(f.discard(ctx), u.podctl(ctx, "delete", "--force", "replace"))
	}
	return w
}

func (u *suite) deletion() workload {
	w := workload{
		name: "delete",
		what: "`delete` of a pod of one container that obeys SIGTERM; " +
			"the floor is stop, stop sandbox, remove, remove sandbox",
		limit: limit{against: floorName, factor: 1.1},
	}
	w.begin = func(ctx context.Context) ([]contender, error) {
		path, f, err := u.pod(ctx, "delete", shape{containers: 1})
		if err != nil {
			return nil, err
		}
		list := append(u.podctls(u.do("apply", path), nil, "delete", "delete"), f.removing())
		return append(list, u.peersDelete(path)...), nil
	}
	return w
}

// waiting waits ten seconds for an init container.
func (u *suite) waiting() workload {
	w := workload{
		name: "wait-10s", what: "the processor time of `apply --wait` while an init container sleeps for ten seconds",
		rounds: 2,
		limit:  limit{cpuShare: 0.02},
	}
	w.begin = func(context.Context) ([]contender, error) {
		path, err := u.write("waiting.yaml", shape{inits: 1, sleep: "10s", containers: 1}.manifest("waiting"))
		return u.podctls(nil, u.do("delete", "--force", "waiting"), "apply", "--wait=started", path), err
	}
	return w
}

// plan plans a running pod of five containers, with the given number of pods on the node.
func (u *suite) plan(pods int, ms float64) workload {
	w := workload{
		name: fmt.Sprintf("plan-%d", pods), rounds: 25, limit: limit{ms: ms},
		what: fmt.Sprintf("`plan` of a running pod of five containers, pods on the node: %d", pods),
	}
	w.begin = func(ctx context.Context) ([]contender, error) {
		path, err := u.write("plan.yaml", shape{containers: 5}.manifest("planned"))
		if err != nil {
			return nil, err
		}
		return u.podctls(nil, nil, "plan", path),
			errors.Join(u.podctl(ctx, "apply", "--wait=started", path), u.fill(ctx, pods-1))
	}
	return w
}

// fill runs other pods. They use the machine's network, because there are not enough addresses for them.
func (u *suite) fill(ctx context.Context, pods int) error {
	if pods == 0 {
		return nil
	}
	var manifests strings.Builder
	for _, name := range podNames("fill", pods) {
		manifests.WriteString("---\n" + shape{containers: 1, host: true}.manifest(name))
	}
	path, err := u.write("fill.yaml", manifests.String())
	return errors.Join(err, u.podctl(ctx, "apply", "--wait=started", "--parallel", "8", path))
}
