package main

import (
	"context"
	"fmt"
	"path/filepath"
)

// plan is the plan of a pod of five containers that runs, with so many other pods on
// the node.
func (u *suite) plan(pods int) *workload {
	w := &workload{
		name: fmt.Sprintf("plan-%d", pods), rounds: 25,
		what:   fmt.Sprintf("`plan` of a pod of five containers that runs, %s on the node; in turn the listing of all of them by `get -A`", u.podCount(pods)),
		limits: []limit{{ms: 25}, {rss: 40}},
	}
	if pods > 1 {
		w.limits = []limit{{ms: 25 * 1.5}, {rss: 40}}
	}
	return lazily(w, func(ctx context.Context, w *workload) error {
		path, err := u.write("plan.yaml", shape{containers: 5}.manifest("planned"))
		if err != nil {
			return err
		}
		if err := u.podctl(ctx, "apply", "--wait=started", path); err != nil {
			return err
		}
		if err := u.fill(ctx, pods-1); err != nil {
			return err
		}
		w.contenders = append(u.podctls(contender{}, always("plan", path)),
			contender{name: "apply, unchanged", run: u.timedPodctl("apply", path)},
			contender{name: "get -A", run: u.timedPodctl("get", "-A")})
		w.trips = u.countTrips(nil, nil, "plan", path)
		return nil
	})
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
	var paths []string
	for ; u.filled < pods; u.filled++ {
		name := fmt.Sprintf("fill-%d", u.filled)
		path, err := u.write(filepath.Join("fill", name+".yaml"), s.manifest(name))
		if err != nil {
			return err
		}
		paths = append(paths, path)
	}
	if len(paths) == 0 {
		return nil
	}
	return u.podctl(ctx, append([]string{"apply", "--wait=" + goal, "--parallel", "8"}, paths...)...)
}
