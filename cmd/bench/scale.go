package main

import (
	"context"
	"fmt"
	"path/filepath"
)

// plan is the plan of a pod of five containers that runs, with so many other pods on
// the node.
func (n *node) plan(pods int) *workload {
	w := &workload{
		name: fmt.Sprintf("plan-%d", pods), rounds: 25,
		what:   fmt.Sprintf("`plan` of a pod of five containers that runs, %s on the node; in turn the listing of all of them by `get -A`", n.crowd(pods)),
		limits: []limit{{ms: 25}, {rss: 40}},
	}
	if pods > 1 {
		w.limits = []limit{{ms: 25 * 1.5}, {rss: 40}}
	}
	return lazily(w, func(ctx context.Context, w *workload) error {
		path, err := n.write("plan.yaml", shape{containers: 5}.manifest("planned"))
		if err != nil {
			return err
		}
		if err := n.podctl(ctx, "apply", "--wait=started", path); err != nil {
			return err
		}
		if err := n.fill(ctx, pods-1); err != nil {
			return err
		}
		w.contenders = []contender{
			{name: "podctl", run: n.timedPodctl("plan", path)},
			{name: "apply, unchanged", run: n.timedPodctl("apply", path)},
			{name: "get -A", run: n.timedPodctl("get", "-A")},
		}
		w.trips = n.countTrips(nil, nil, "plan", path)
		return nil
	})
}

// crowd says how many pods there are, and how many of them run.
func (n *node) crowd(pods int) string {
	if pods <= n.o.running {
		return fmt.Sprintf("%d pods", pods)
	}
	return fmt.Sprintf("%d pods (%d of which have finished)", pods, pods-n.o.running)
}

// fill brings the number of other pods up, of those that run first. They share the
// machine's network, which has no end of addresses.
func (n *node) fill(ctx context.Context, pods int) error {
	if err := n.fillWith(ctx, min(pods, n.o.running-1), shape{containers: 1, network: "host"}, "started"); err != nil {
		return err
	}
	return n.fillWith(ctx, pods, shape{containers: 1, network: "host", finished: true}, "completed")
}

func (n *node) fillWith(ctx context.Context, pods int, s shape, goal string) error {
	var paths []string
	for ; n.filled < pods; n.filled++ {
		name := fmt.Sprintf("fill-%d", n.filled)
		path, err := n.write(filepath.Join("fill", name+".yaml"), s.manifest(name))
		if err != nil {
			return err
		}
		paths = append(paths, path)
	}
	if len(paths) == 0 {
		return nil
	}
	return n.podctl(ctx, append([]string{"apply", "--wait=" + goal, "--parallel", "8"}, paths...)...)
}
