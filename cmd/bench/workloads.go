package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
)

// suite makes the workloads that are measured on a node.
type suite struct{ *node }

// The names of contenders that are yardsticks, or that options name.
const (
	podctlName      = "podctl"
	beforeName      = "podctl before"
	floorName       = "floor"
	floorSideBySide = "floor, side by side"
)

// podctls are the contenders that run a command line of podctl: the one that is timed and, where
// -before names one, the podctl to compare it with. What surrounds a run is taken from around.
func (u *suite) podctls(around contender, args ...string) []contender {
	var list []contender
	for _, p := range []struct{ name, path string }{{podctlName, u.o.podctl}, {beforeName, u.o.before}} {
		if p.path != "" {
			run := func(ctx context.Context) (sample, error) { return timed(ctx, p.path, u.args(args...)...) }
			list = append(list, contender{name: p.name, before: around.before, run: run, after: around.after})
		}
	}
	return list
}

// workloads are all that is measured, in the order of the report.
func (u *suite) workloads() []*workload {
	list := []*workload{{
		name: "version", what: "`podctl version --client`: the start of the process alone", rounds: 40,
		contenders: u.podctls(contender{}, "version", "--client"),
	}}
	for _, count := range []int{1, 4, 8} {
		list = append(list, u.creation(fmt.Sprintf("start-%d", count), fmt.Sprintf("a new pod of %d containers, the image present", count), shape{containers: count}))
	}
	list = append(list, u.creation("init-3", "three init containers, then one: `apply --wait=started`", shape{inits: 3, containers: 1}, "--wait=started"),
		u.replaceOne(), u.unchanged(), u.deletion(), u.pulls(), u.many(), u.idle())
	for _, pods := range []int{1, 10, 100, 300, 400, 500} {
		list = append(list, u.plan(pods))
	}
	return list
}

// pod writes the manifest of a pod, and makes the floor of one that is like it.
func (u *suite) pod(ctx context.Context, name string, s shape) (string, *floor, error) {
	path, err := u.write(name+".yaml", s.manifest(name))
	if err != nil {
		return "", nil, err
	}
	f, err := u.floorOf(ctx, "floor-"+name, s)
	return path, f, err
}

// creation is a new pod whose image is there.
func (u *suite) creation(name, what string, s shape, flags ...string) *workload {
	w := &workload{name: name, what: what, limits: []limit{{against: floorName, factor: 1.15}}}
	if s.containers > 1 {
		w.limits[0].against = floorSideBySide
	}
	w.begin = func(ctx context.Context) error {
		path, f, err := u.pod(ctx, name, s)
		if err != nil {
			return err
		}
		apply, remove := append([]string{"apply", path}, flags...), u.do("delete", "--force", name)
		w.contenders = append(u.podctls(contender{after: remove}, apply...), f.contender(floorName, oneByOne))
		if s.containers > 1 {
			w.contenders = append(w.contenders, f.contender(floorSideBySide, sideBySide))
		}
		if s.inits == 0 {
			w.contenders = append(w.contenders, u.peersStart(f, path)...)
		}
		w.contenders = append(w.contenders, u.kubelets(nothing, starting("kubelet-"+name, s))...)
		w.trips = u.countTrips(nil, remove, apply...)
		return nil
	}
	return w
}

// replaceOne edits the environment of one container of four before each run.
func (u *suite) replaceOne() *workload {
	w := &workload{
		name: "replace-1-of-4", what: "one container of four replaced after an edit; the floor is stop, create, start",
		limits: []limit{{against: floorName, factor: 1.1}},
	}
	w.begin = func(ctx context.Context) error {
		s := shape{containers: 4}
		path, f, err := u.pod(ctx, "replace", s)
		if err != nil {
			return err
		}
		edits := 0
		edit := func(context.Context) error {
			edits++
			s.mark = fmt.Sprint(edits)
			_, err := u.write("replace.yaml", s.manifest("replace"))
			return err
		}
		w.contenders = append(u.podctls(contender{before: edit}, "apply", path), f.replacing())
		w.end = func(ctx context.Context) error {
			return errors.Join(f.discard(ctx), u.podctl(ctx, "delete", "--force", "replace"))
		}
		if err := errors.Join(u.podctl(ctx, "apply", "--wait=started", path), f.prepare(ctx)); err != nil {
			return err
		}
		return f.run(ctx, oneByOne)
	}
	return w
}

func (u *suite) unchanged() *workload {
	w := &workload{
		name: "unchanged", what: "`apply` of a pod of four containers that runs as it should",
		limits: []limit{{ms: 40}}, end: u.do("delete", "--force", "unchanged"),
	}
	w.begin = func(ctx context.Context) error {
		path, err := u.write("unchanged.yaml", shape{containers: 4}.manifest("unchanged"))
		if err != nil {
			return err
		}
		w.contenders, w.trips = u.podctls(contender{}, "apply", path), u.countTrips(nil, nil, "apply", path)
		return u.podctl(ctx, "apply", "--wait=started", path)
	}
	return w
}

func (u *suite) deletion() *workload {
	w := &workload{
		name: "delete", what: "`delete` of a pod of one container that obeys SIGTERM; the floor is stop, stop sandbox, remove, remove sandbox",
		limits: []limit{{against: floorName, factor: 1.1}},
	}
	w.begin = func(ctx context.Context) error {
		s := shape{containers: 1}
		path, f, err := u.pod(ctx, "delete", s)
		if err != nil {
			return err
		}
		apply := u.do("apply", path)
		w.contenders = append(u.podctls(contender{before: apply}, "delete", "delete"), contender{
			name: floorName, after: f.clean,
			before: func(ctx context.Context) error {
				if err := f.prepare(ctx); err != nil {
					return err
				}
				return f.run(ctx, oneByOne)
			},
			run: func(ctx context.Context) (sample, error) { return clocked(func() error { return f.remove(ctx) }) },
		})
		w.contenders = append(w.contenders, u.peersDelete(path)...)
		w.contenders = append(w.contenders, u.kubelets(starting("kubelet-delete", s), stopping("kubelet-delete"))...)
		w.trips = u.countTrips(apply, nil, "delete", "delete")
		return nil
	}
	return w
}

// many is fifty pods in one call against fifty calls.
func (u *suite) many() *workload {
	w := &workload{
		name: "pods-50", what: "fifty pods of one container in one call; fifty calls one after the other",
		rounds: 3, limits: []limit{{against: "fifty calls", factor: 0.6}, {rss: 64}},
	}
	w.begin = func(context.Context) error {
		names := podNames("many", 0, 50)
		paths, err := u.writeAll("many", names, shape{containers: 1})
		if err != nil {
			return err
		}
		remove := u.do(append([]string{"delete", "--force"}, names...)...)
		calls := func(ctx context.Context) (sum sample, err error) {
			for _, path := range paths {
				one, failed := timed(ctx, u.o.podctl, u.args("apply", path)...)
				sum.wall, sum.cpu, sum.rss = sum.wall+one.wall, sum.cpu+one.cpu, max(sum.rss, one.rss)
				err = errors.Join(err, failed)
			}
			return sum, err
		}
		w.contenders = []contender{
			{name: podctlName, run: u.timedPodctl("apply", filepath.Dir(paths[0])), after: remove},
			{name: "fifty calls", run: calls, after: remove},
		}
		return nil
	}
	return w
}

// writeAll writes the manifests of pods that are alike into a directory.
func (u *suite) writeAll(dir string, names []string, s shape) (paths []string, err error) {
	for _, name := range names {
		path, failed := u.write(filepath.Join(dir, name+".yaml"), s.manifest(name))
		paths, err = append(paths, path), errors.Join(err, failed)
	}
	return paths, err
}

// podNames are the names of pods with the numbers from one to below another.
func podNames(prefix string, from, to int) (names []string) {
	for i := from; i < to; i++ {
		names = append(names, fmt.Sprintf("%s-%d", prefix, i))
	}
	return names
}

// idle waits ten seconds for an init container.
func (u *suite) idle() *workload {
	w := &workload{
		name: "idle", what: "`apply --wait` while an init container sleeps for ten seconds: the processor's time is the figure",
		rounds: 2, limits: []limit{{cpuShare: 0.02}},
	}
	w.begin = func(context.Context) error {
		path, err := u.write("idle.yaml", shape{inits: 1, sleep: "10s", containers: 1}.manifest("idle"))
		w.contenders = []contender{{name: podctlName, run: u.timedPodctl("apply", "--wait=started", path), after: u.do("delete", "--force", "idle")}}
		return err
	}
	return w
}

// plan is the plan of a pod of five containers that runs, with so many other pods on
// the node.
func (u *suite) plan(pods int) *workload {
	w := &workload{
		name: fmt.Sprintf("plan-%d", pods), rounds: 25,
		what:   fmt.Sprintf("`plan` of a pod of five containers that runs, %s on the node; in turn the listing of all of them by `get -A`", u.podCount(pods)),
		limits: []limit{{ms: 25}, {rss: 40}},
	}
	if pods > 1 {
		w.limits[0].ms *= 1.5
	}
	w.begin = func(ctx context.Context) error {
		path, err := u.write("plan.yaml", shape{containers: 5}.manifest("planned"))
		if err != nil {
			return err
		}
		if err := errors.Join(u.podctl(ctx, "apply", "--wait=started", path), u.fill(ctx, pods-1)); err != nil {
			return err
		}
		w.contenders = append(u.podctls(contender{}, "plan", path),
			contender{name: "apply, unchanged", run: u.timedPodctl("apply", path)},
			contender{name: "get -A", run: u.timedPodctl("get", "-A")})
		w.trips = u.countTrips(nil, nil, "plan", path)
		return nil
	}
	return w
}

// podCount says how many pods there are, and how many of them run.
func (u *suite) podCount(pods int) string {
	if pods <= u.o.running {
		return fmt.Sprintf("%d pods", pods)
	}
	return fmt.Sprintf("%d pods (%d of which have finished)", pods, pods-u.o.running)
}

// fill brings the number of other pods up, of those that run first. They share the
// machine's network, which has no end of addresses.
func (u *suite) fill(ctx context.Context, pods int) error {
	if err := u.fillWith(ctx, min(pods, u.o.running-1), shape{containers: 1, network: "host"}, "started"); err != nil {
		return err
	}
	return u.fillWith(ctx, pods, shape{containers: 1, network: "host", finished: true}, "completed")
}

func (u *suite) fillWith(ctx context.Context, pods int, s shape, goal string) error {
	if pods <= u.filled {
		return nil
	}
	paths, err := u.writeAll("fill", podNames("fill", u.filled, pods), s)
	if err != nil {
		return err
	}
	u.filled = pods
	return u.podctl(ctx, append([]string{"apply", "--wait=" + goal, "--parallel", "8"}, paths...)...)
}
