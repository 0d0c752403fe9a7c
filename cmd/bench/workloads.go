package main

import (
	"context"
	"fmt"
	"path/filepath"
)

// suite makes the workloads that are measured on a node.
type suite struct{ *node }

// The names of what -podctl and -before name.
const (
	podctlName = "podctl"
	beforeName = "podctl before"
)

// podctls are the contenders that run a command line of podctl: the one that is timed and, where
// -before names one, the podctl to compare it with. What surrounds a run is taken from around.
func (u *suite) podctls(around contender, args func() []string) []contender {
	var list []contender
	for _, p := range []struct{ name, path string }{{podctlName, u.o.podctl}, {beforeName, u.o.before}} {
		if p.path != "" {
			run := func(ctx context.Context) (sample, error) { return timed(ctx, p.path, u.args(args()...)...) }
			list = append(list, contender{name: p.name, before: around.before, run: run, after: around.after})
		}
	}
	return list
}

// always is a command line that is the same in each round.
func always(args ...string) func() []string { return func() []string { return args } }

// workloads are all that is measured, in the order of the report.
func (u *suite) workloads() []*workload {
	list := []*workload{u.version()}
	for _, count := range []int{1, 4, 8} {
		list = append(list, u.start(count))
	}
	list = append(list, u.inits(), u.replaceOne(), u.unchanged(), u.deletion(), u.pulls(), u.many(), u.idle())
	for _, pods := range []int{1, 10, 100, 300, 400, 500} {
		list = append(list, u.plan(pods))
	}
	return list
}

func (u *suite) version() *workload {
	return &workload{
		name: "version", what: "`podctl version --client`: the start of the process alone", rounds: 40,
		contenders: u.podctls(contender{}, always("version", "--client")),
	}
}

// lazily makes the floors of a workload when it begins: they need podctl and the
// runtime.
func lazily(w *workload, fill func(context.Context, *workload) error) *workload {
	begin := w.begin
	w.begin = func(ctx context.Context) error {
		if err := fill(ctx, w); err != nil {
			return err
		}
		return call(ctx, begin)
	}
	return w
}

// start is a new pod whose image is there.
func (u *suite) start(count int) *workload {
	name := fmt.Sprintf("start-%d", count)
	yardstick := floorName
	if count > 1 {
		yardstick = floorSideBySide
	}
	w := &workload{
		name: name, what: fmt.Sprintf("a new pod of %d containers, the image present", count),
		limits: []limit{{against: yardstick, factor: 1.15}},
	}
	return lazily(w, func(ctx context.Context, w *workload) error {
		s := shape{containers: count}
		path, err := u.write(name+".yaml", s.manifest(name))
		if err != nil {
			return err
		}
		f, err := u.floorOf(ctx, "floor-"+name, s)
		if err != nil {
			return err
		}
		remove := u.do("delete", "--force", name)
		w.contenders = append(u.podctls(contender{after: remove}, always("apply", path)), f.contender(floorName, oneByOne))
		if count > 1 {
			w.contenders = append(w.contenders, f.contender(floorSideBySide, sideBySide))
		}
		w.contenders = append(w.contenders, u.peersStart(f, path)...)
		w.contenders = append(w.contenders, u.kubelets("kubelet-"+name, s)...)
		w.trips = u.countTrips(nil, remove, "apply", path)
		return nil
	})
}

// The names of the yardsticks.
const (
	floorName       = "floor"
	floorSideBySide = "floor, side by side"
)

func (u *suite) inits() *workload {
	w := &workload{
		name: "init-3", what: "three init containers, then one: `apply --wait=started`",
		limits: []limit{{against: floorName, factor: 1.15}},
	}
	return lazily(w, func(ctx context.Context, w *workload) error {
		s := shape{inits: 3, containers: 1}
		path, err := u.write("inits.yaml", s.manifest("inits"))
		if err != nil {
			return err
		}
		f, err := u.floorOf(ctx, "floor-inits", s)
		if err != nil {
			return err
		}
		remove := u.do("delete", "--force", "inits")
		w.contenders = append(u.podctls(contender{after: remove}, always("apply", "--wait=started", path)), f.contender(floorName, oneByOne))
		w.contenders = append(w.contenders, u.kubelets("kubelet-inits", s)...)
		w.trips = u.countTrips(nil, remove, "apply", "--wait=started", path)
		return nil
	})
}

// replaceOne edits the environment of one container of four, back and forth.
func (u *suite) replaceOne() *workload {
	w := &workload{
		name: "replace-1-of-4", what: "one container of four replaced after an edit; the floor is stop, create, start",
		limits: []limit{{against: floorName, factor: 1.1}}, end: u.do("delete", "--force", "replace"),
	}
	return lazily(w, func(ctx context.Context, w *workload) error {
		var paths [2]string
		for i, mark := range []string{"a", "b"} {
			path, err := u.write("replace-"+mark+".yaml", shape{containers: 4, mark: mark}.manifest("replace"))
			if err != nil {
				return err
			}
			paths[i] = path
		}
		f, err := u.floorOf(ctx, "floor-replace", shape{containers: 4, mark: "a"})
		if err != nil {
			return err
		}
		if err := u.podctl(ctx, "apply", "--wait=started", paths[0]); err != nil {
			return err
		}
		if err := f.prepare(ctx); err != nil {
			return err
		}
		if err := f.run(ctx, oneByOne); err != nil {
			return err
		}
		turn := 0
		w.contenders = append(u.podctls(contender{}, func() []string {
			turn = 1 - turn
			return []string{"apply", paths[turn]}
		}), f.replacing())
		end := w.end
		w.end = func(ctx context.Context) error {
			if err := f.discard(ctx); err != nil {
				return err
			}
			return end(ctx)
		}
		return nil
	})
}

func (f *floor) replacing() contender {
	last := f.containers[len(f.containers)-1]
	var old string
	return contender{
		name: floorName,
		run: func(ctx context.Context) (sample, error) {
			return clocked(func() (err error) { old, err = f.replace(ctx, last); return err })
		},
		after: func(ctx context.Context) error { return f.removeContainer(ctx, old) },
	}
}

func (u *suite) unchanged() *workload {
	w := &workload{
		name: "unchanged", what: "`apply` of a pod of four containers that runs as it should",
		limits: []limit{{ms: 40}}, end: u.do("delete", "--force", "unchanged"),
	}
	return lazily(w, func(ctx context.Context, w *workload) error {
		path, err := u.write("unchanged.yaml", shape{containers: 4}.manifest("unchanged"))
		if err != nil {
			return err
		}
		w.contenders = u.podctls(contender{}, always("apply", path))
		w.trips = u.countTrips(nil, nil, "apply", path)
		return u.podctl(ctx, "apply", "--wait=started", path)
	})
}

func (u *suite) deletion() *workload {
	w := &workload{
		name: "delete", what: "`delete` of a pod of one container that obeys SIGTERM; the floor is stop, stop sandbox, remove, remove sandbox",
		limits: []limit{{against: floorName, factor: 1.1}},
	}
	return lazily(w, func(ctx context.Context, w *workload) error {
		s := shape{containers: 1}
		path, err := u.write("delete.yaml", s.manifest("delete"))
		if err != nil {
			return err
		}
		f, err := u.floorOf(ctx, "floor-delete", s)
		if err != nil {
			return err
		}
		apply := u.do("apply", path)
		w.contenders = append(u.podctls(contender{before: apply}, always("delete", "delete")), contender{
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
		w.contenders = append(w.contenders, u.kubeletDeletes("kubelet-delete", s)...)
		w.trips = u.countTrips(apply, nil, "delete", "delete")
		return nil
	})
}

// many is fifty pods in one call against fifty calls.
func (u *suite) many() *workload {
	const pods = 50
	w := &workload{
		name: "pods-50", what: "fifty pods of one container in one call; fifty calls one after the other",
		rounds: 3, limits: []limit{{against: "fifty calls", factor: 0.6}, {rss: 64}},
	}
	return lazily(w, func(_ context.Context, w *workload) error {
		var paths, names []string
		for i := range pods {
			name := fmt.Sprintf("many-%d", i)
			path, err := u.write(filepath.Join("many", name+".yaml"), shape{containers: 1}.manifest(name))
			if err != nil {
				return err
			}
			paths, names = append(paths, path), append(names, name)
		}
		remove := u.do(append([]string{"delete", "--force"}, names...)...)
		var single []func() (sample, error)
		w.contenders = []contender{
			{name: podctlName, run: u.timedPodctl("apply", filepath.Dir(paths[0])), after: remove},
			{name: "fifty calls", after: remove, run: func(ctx context.Context) (sample, error) {
				single = single[:0]
				for _, path := range paths {
					single = append(single, func() (sample, error) { return u.timedPodctl("apply", path)(ctx) })
				}
				return inTurn(single...)
			}},
		}
		return nil
	})
}

// idle waits ten seconds for an init container.
func (u *suite) idle() *workload {
	w := &workload{
		name: "idle", what: "`apply --wait` while an init container sleeps for ten seconds: the processor's time is the figure",
		rounds: 2,
	}
	return lazily(w, func(_ context.Context, w *workload) error {
		text := "apiVersion: v1\nkind: Pod\nmetadata: {name: idle}\nspec:\n  terminationGracePeriodSeconds: 1\n" +
			fmt.Sprintf("  initContainers: [{name: i, image: %q, args: [exit, -after, 10s, \"0\"]}]\n", demoImage) +
			fmt.Sprintf("  containers: [{name: c, image: %q, args: [sleep]}]\n", demoImage)
		path, err := u.write("idle.yaml", text)
		if err != nil {
			return err
		}
		w.limits = []limit{{cpuShare: 0.02}}
		w.contenders = []contender{{name: podctlName, run: u.timedPodctl("apply", "--wait=started", path), after: u.do("delete", "--force", "idle")}}
		return nil
	})
}
