package main

import (
	"context"
	"fmt"
	"path/filepath"
)

// workloads are all that is measured, in the order of the report.
func (n *node) workloads() []*workload {
	list := []*workload{n.version()}
	for _, count := range []int{1, 4, 8} {
		list = append(list, n.start(count))
	}
	list = append(list, n.inits(), n.replaceOne(), n.unchanged(), n.deletion(), n.pulls(), n.many(), n.idle())
	for _, pods := range []int{1, 10, 100, 300, 400, 500} {
		list = append(list, n.plan(pods))
	}
	return list
}

func (n *node) version() *workload {
	return &workload{
		name: "version", what: "`podctl version --client`: the start of the process alone", rounds: 40,
		contenders: []contender{{name: "podctl", run: n.timedPodctl("version", "--client")}},
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
func (n *node) start(count int) *workload {
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
		path, err := n.write(name+".yaml", s.manifest(name))
		if err != nil {
			return err
		}
		f, err := n.floorOf(ctx, "floor-"+name, s)
		if err != nil {
			return err
		}
		remove := n.do("delete", "--force", name)
		w.contenders = []contender{
			{name: "podctl", run: n.timedPodctl("apply", path), after: remove},
			f.contender(floorName, oneByOne),
		}
		if count > 1 {
			w.contenders = append(w.contenders, f.contender(floorSideBySide, sideBySide))
		}
		w.contenders = append(w.contenders, n.peersStart(f, path)...)
		w.contenders = append(w.contenders, n.kubelets("kubelet-"+name, s)...)
		w.trips = n.countTrips(nil, remove, "apply", path)
		return nil
	})
}

// The names of the yardsticks.
const (
	floorName       = "floor"
	floorSideBySide = "floor, side by side"
)

func (n *node) inits() *workload {
	w := &workload{
		name: "init-3", what: "three init containers, then one: `apply --wait=started`",
		limits: []limit{{against: floorName, factor: 1.15}},
	}
	return lazily(w, func(ctx context.Context, w *workload) error {
		s := shape{inits: 3, containers: 1}
		path, err := n.write("inits.yaml", s.manifest("inits"))
		if err != nil {
			return err
		}
		f, err := n.floorOf(ctx, "floor-inits", s)
		if err != nil {
			return err
		}
		remove := n.do("delete", "--force", "inits")
		w.contenders = []contender{
			{name: "podctl", run: n.timedPodctl("apply", "--wait=started", path), after: remove},
			f.contender(floorName, oneByOne),
		}
		w.contenders = append(w.contenders, n.kubelets("kubelet-inits", s)...)
		w.trips = n.countTrips(nil, remove, "apply", "--wait=started", path)
		return nil
	})
}

// replaceOne edits the environment of one container of four, back and forth.
func (n *node) replaceOne() *workload {
	w := &workload{
		name: "replace-1-of-4", what: "one container of four replaced after an edit; the floor is stop, create, start",
		limits: []limit{{against: floorName, factor: 1.1}}, end: n.do("delete", "--force", "replace"),
	}
	return lazily(w, func(ctx context.Context, w *workload) error {
		var paths [2]string
		for i, mark := range []string{"a", "b"} {
			path, err := n.write("replace-"+mark+".yaml", shape{containers: 4, mark: mark}.manifest("replace"))
			if err != nil {
				return err
			}
			paths[i] = path
		}
		f, err := n.floorOf(ctx, "floor-replace", shape{containers: 4, mark: "a"})
		if err != nil {
			return err
		}
		if err := n.podctl(ctx, "apply", "--wait=started", paths[0]); err != nil {
			return err
		}
		if err := f.prepare(ctx); err != nil {
			return err
		}
		if err := f.run(ctx, oneByOne); err != nil {
			return err
		}
		turn := 0
		w.contenders = []contender{
			{name: "podctl", run: func(ctx context.Context) (sample, error) {
				turn = 1 - turn
				return n.timedPodctl("apply", paths[turn])(ctx)
			}},
			f.replacing(),
		}
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

func (n *node) unchanged() *workload {
	w := &workload{
		name: "unchanged", what: "`apply` of a pod of four containers that runs as it should",
		limits: []limit{{ms: 40}}, end: n.do("delete", "--force", "unchanged"),
	}
	return lazily(w, func(ctx context.Context, w *workload) error {
		path, err := n.write("unchanged.yaml", shape{containers: 4}.manifest("unchanged"))
		if err != nil {
			return err
		}
		w.contenders = []contender{{name: "podctl", run: n.timedPodctl("apply", path)}}
		w.trips = n.countTrips(nil, nil, "apply", path)
		return n.podctl(ctx, "apply", "--wait=started", path)
	})
}

func (n *node) deletion() *workload {
	w := &workload{
		name: "delete", what: "`delete` of a pod of one container that obeys SIGTERM; the floor is stop, stop sandbox, remove, remove sandbox",
		limits: []limit{{against: floorName, factor: 1.1}},
	}
	return lazily(w, func(ctx context.Context, w *workload) error {
		s := shape{containers: 1}
		path, err := n.write("delete.yaml", s.manifest("delete"))
		if err != nil {
			return err
		}
		f, err := n.floorOf(ctx, "floor-delete", s)
		if err != nil {
			return err
		}
		apply := n.do("apply", path)
		w.contenders = []contender{
			{name: "podctl", before: apply, run: n.timedPodctl("delete", "delete")},
			{
				name: floorName, after: f.clean,
				before: func(ctx context.Context) error {
					if err := f.prepare(ctx); err != nil {
						return err
					}
					return f.run(ctx, oneByOne)
				},
				run: func(ctx context.Context) (sample, error) { return clocked(func() error { return f.remove(ctx) }) },
			},
		}
		w.contenders = append(w.contenders, n.peersDelete(path)...)
		w.contenders = append(w.contenders, n.kubeletDeletes("kubelet-delete", s)...)
		w.trips = n.countTrips(apply, nil, "delete", "delete")
		return nil
	})
}

// many is fifty pods in one call against fifty calls.
func (n *node) many() *workload {
	const pods = 50
	w := &workload{
		name: "pods-50", what: "fifty pods of one container in one call; fifty calls one after the other",
		rounds: 3, limits: []limit{{against: "fifty calls", factor: 0.6}, {rss: 64}},
	}
	return lazily(w, func(_ context.Context, w *workload) error {
		var paths, names []string
		for i := range pods {
			name := fmt.Sprintf("many-%d", i)
			path, err := n.write(filepath.Join("many", name+".yaml"), shape{containers: 1}.manifest(name))
			if err != nil {
				return err
			}
			paths, names = append(paths, path), append(names, name)
		}
		remove := n.do(append([]string{"delete", "--force"}, names...)...)
		var single []func() (sample, error)
		w.contenders = []contender{
			{name: "podctl", run: n.timedPodctl("apply", filepath.Dir(paths[0])), after: remove},
			{name: "fifty calls", after: remove, run: func(ctx context.Context) (sample, error) {
				single = single[:0]
				for _, path := range paths {
					single = append(single, func() (sample, error) { return n.timedPodctl("apply", path)(ctx) })
				}
				return inTurn(single...)
			}},
		}
		return nil
	})
}

// idle waits ten seconds for an init container.
func (n *node) idle() *workload {
	w := &workload{
		name: "idle", what: "`apply --wait` while an init container sleeps for ten seconds: the processor's time is the figure",
		rounds: 2,
	}
	return lazily(w, func(_ context.Context, w *workload) error {
		text := "apiVersion: v1\nkind: Pod\nmetadata: {name: idle}\nspec:\n  terminationGracePeriodSeconds: 1\n" +
			fmt.Sprintf("  initContainers: [{name: i, image: %q, args: [exit, -after, 10s, \"0\"]}]\n", demoImage) +
			fmt.Sprintf("  containers: [{name: c, image: %q, args: [sleep]}]\n", demoImage)
		path, err := n.write("idle.yaml", text)
		if err != nil {
			return err
		}
		w.limits = []limit{{cpuShare: 0.02}}
		w.contenders = []contender{{name: "podctl", run: n.timedPodctl("apply", "--wait=started", path), after: n.do("delete", "--force", "idle")}}
		return nil
	})
}
