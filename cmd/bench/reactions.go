package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// keepers are podctl's agent and, with -kubelet, a kubelet, each with its own containerd. Both run during all
// measurements, which are made in turn, beside the idle pods.
type keepers []*keeper

// idlePrefix is the prefix of the names of the idle pods.
const idlePrefix = "idle"

// benchAgent measures the agent beside a kubelet.
func benchAgent(ctx context.Context, o *options) (r report, err error) {
	list, err := newKeepers(ctx, o)
	defer func() { err = errors.Join(err, list.end(context.WithoutCancel(ctx))) }()
	if err != nil {
		return r, err
	}
	r.Machine = list[0].machine(ctx)
	err = list.measure(ctx, o, &r)
	r.Targets = judgeLoads(r.Loads)
	return r, err
}

// newKeepers starts each keeper on its own node. After an error it also returns the keepers that it has begun to start.
func newKeepers(ctx context.Context, o *options) (list keepers, err error) {
	makers := []func(context.Context, *node) (*keeper, error){newAgent}
	if o.kubelet != "" {
		makers = append(makers, newKubelet)
	}
	for _, maker := range makers {
		n, err := newNode(ctx, o)
		if err != nil {
			return list, err
		}
		k, err := maker(ctx, n)
		list = append(list, k)
		if err != nil {
			return list, err
		}
		// Let podctl create and delete a pod, so that the cgroups exist that a kubelet requires.
		path, err := k.write("warm.yaml", shape{containers: 1}.manifest("warm"))
		if err != nil {
			return list, err
		}
		if err = errors.Join(k.podctl(ctx, "apply", "--wait=started", path), k.podctl(ctx, "delete", "warm")); err != nil {
			return list, err
		}
		if err = k.start(ctx, 0); err != nil {
			return list, err
		}
	}
	return list, nil
}

// end removes all keepers and their nodes.
func (list keepers) end(ctx context.Context) (err error) {
	for _, k := range list {
		err = errors.Join(err, k.leave(ctx), k.close(ctx))
	}
	return err
}

// measure measures all figures. The idle pods stay while the reactions are timed, and must all still run afterwards.
func (list keepers) measure(ctx context.Context, o *options, r *report) (err error) {
	if r.Loads, err = list.idle(ctx, Load{Pods: o.pods}, o.window); err != nil {
		return err
	}
	first := make([][]*runtimeapi.Container, len(list))
	for i, k := range list {
		if first[i], err = k.containers(ctx, ""); err != nil {
			return err
		}
	}
	if r.Results, err = measureAll(ctx, o, list.workloads(o.pods)); err != nil {
		return err
	}
	for i, k := range list {
		if err = errors.Join(k.stillRun(ctx, first[i]), k.drop(ctx, podNames(idlePrefix, o.pods)...)); err != nil {
			return err
		}
	}
	if !o.only.MatchString("probed") {
		return nil
	}
	probed, err := list.idle(ctx, Load{Pods: o.pods, Probed: true}, o.window)
	r.Loads = append(r.Loads, probed...)
	return err
}

// workloads returns the timed reactions.
func (list keepers) workloads(pods int) []workload {
	const edited = 4
	all := []struct {
		workload
		of func(*keeper) contender
	}{
		{workload{
			name: "death", rounds: 10, limit: limit{ms: 50},
			what: "from the end of a container's process until the runtime has created the next container",
		}, (*keeper).dying},
		{workload{
			name: "edit-1-of-4", rounds: 10, limit: limit{against: kubeletName, factor: 0.5},
			what: "an edit of one container of four in the file of a running pod, until the replacement runs",
		}, func(k *keeper) contender {
			c := k.changing("edit", shape{containers: edited, mark: "b"})
			c.before = func(ctx context.Context) error {
				_, err := k.arrive(ctx, "edit", shape{containers: edited, mark: "a"})
				return err
			}
			return c
		}},
		{workload{
			name: "new-1", rounds: 10, limit: limit{against: kubeletName, factor: 1},
			what: "a new file of a pod with one container, until it runs",
		}, func(k *keeper) contender { return k.changing("new", shape{containers: 1}) }},
		{workload{
			name: "new-init-3", rounds: 10, limit: limit{against: kubeletName, factor: 0.3},
			what: "a new file of a pod with three init containers, then one, until it runs",
		}, func(k *keeper) contender { return k.changing("inits", shape{inits: 3, containers: 1}) }},
		{workload{
			name: "new-50", rounds: 3, limit: limit{against: kubeletName, factor: 0.8},
			what: "fifty files of pods with one container at once, until all run",
		}, (*keeper).flooded},
		{workload{
			name: fmt.Sprintf("restart-%d", pods), rounds: 5, limit: limit{ms: 1000},
			what: fmt.Sprintf("the agent or the kubelet is killed and started with %d running pods, until it reports all of them; no container restarts", pods),
		}, func(k *keeper) contender { return k.restarting(pods) }},
	}
	workloads := make([]workload, len(all))
	for i, one := range all {
		workloads[i] = one.workload
		for _, k := range list {
			c := one.of(k)
			c.name = k.name
			workloads[i].contenders = append(workloads[i].contenders, c)
		}
	}
	return workloads
}

// dying kills the process of a container that has not ended before, so no restart delay applies. The pod has a new name
// each time, because a kubelet remembers the restart delay of a pod whose manifest comes back.
func (k *keeper) dying() contender {
	round, name := 0, ""
	return contender{
		before: func(ctx context.Context) error {
			round++
			name = fmt.Sprintf("death-%d", round)
			_, err := k.arrive(ctx, name, shape{containers: 1})
			return err
		},
		run: func(ctx context.Context) (sample, error) {
			began, err := k.killOnly(ctx, name)
			if err != nil {
				return sample{}, err
			}
			next, err := k.awaitNew(ctx, name, 1, began)
			if err != nil {
				return sample{}, err
			}
			return sample{wall: time.Unix(0, next[0].GetCreatedAt()).Sub(began)}, nil
		},
		after: func(ctx context.Context) error { return k.drop(ctx, name) },
	}
}

// killOnly kills the process of the only container of a pod, and returns the time.
func (k *keeper) killOnly(ctx context.Context, name string) (at time.Time, err error) {
	containers, err := k.containers(ctx, name)
	if err != nil || len(containers) != 1 {
		return at, fmt.Errorf("%d containers of %s run: %w", len(containers), name, err)
	}
	id := containers[0].GetId()
	reply, err := k.cri.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id, Verbose: true})
	if err != nil {
		return at, err
	}
	var info struct{ PID int }
	if err = json.Unmarshal([]byte(reply.GetInfo()["info"]), &info); err != nil || info.PID <= 1 {
		return at, fmt.Errorf("the process of container %s is unknown: %w", id, err)
	}
	return time.Now(), syscall.Kill(info.PID, syscall.SIGKILL)
}

// changing writes a manifest. It measures the time until the last container of its pod has been recreated and all run,
// according to the runtime.
func (k *keeper) changing(name string, s shape) contender {
	return contender{
		run: func(ctx context.Context) (sample, error) {
			began := time.Now()
			containers, err := k.arrive(ctx, name, s)
			last := began
			for _, c := range containers {
				reply, failed := k.cri.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: c.GetId()})
				err = errors.Join(err, failed)
				if at := time.Unix(0, reply.GetStatus().GetStartedAt()); at.After(last) {
					last = at
				}
			}
			return sample{wall: last.Sub(began)}, err
		},
		after: func(ctx context.Context) error { return k.drop(ctx, name) },
	}
}

// flooded writes fifty manifests at once.
func (k *keeper) flooded() contender {
	names := podNames("many", 50)
	return contender{
		run: func(ctx context.Context) (sample, error) {
			return clocked(func() error { return k.arriveAll(ctx, names, shape{containers: 1}) })
		},
		after: func(ctx context.Context) error { return k.drop(ctx, names...) },
	}
}

// restarting kills the keeper and starts it again. It must stop no container.
func (k *keeper) restarting(pods int) contender {
	return contender{run: func(ctx context.Context) (sample, error) {
		before, err := k.containers(ctx, "")
		if err != nil {
			return sample{}, err
		}
		k.kill()
		s, err := clocked(func() error { return k.start(ctx, pods) })
		return s, errors.Join(err, k.stillRun(ctx, before))
	}}
}

// stillRun fails if one of the containers no longer runs.
func (k *keeper) stillRun(ctx context.Context, before []*runtimeapi.Container) error {
	now, err := k.containers(ctx, "")
	if err != nil {
		return err
	}
	for _, c := range before {
		if !slices.ContainsFunc(now, func(n *runtimeapi.Container) bool { return n.GetId() == c.GetId() }) {
			return fmt.Errorf("%s has stopped container %s of pod %s", k.name, c.GetId(), c.GetLabels()["io.kubernetes.pod.name"])
		}
	}
	return nil
}
