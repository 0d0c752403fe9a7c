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

// nodeAgents are podctl's agent and, with -kubelet, a kubelet, each with its own containerd. Both run during all
// measurements, which are made in turn, beside the idle pods.
type nodeAgents []*nodeAgent

// idlePrefix is the prefix of the names of the idle pods.
const idlePrefix = "idle"

// benchAgent measures the agent beside a kubelet.
func benchAgent(ctx context.Context, o *options) (r report, err error) {
	list, err := newNodeAgents(ctx, o)
	defer func() { err = errors.Join(err, list.end(context.WithoutCancel(ctx))) }()
	if err != nil {
		return r, err
	}
	r.Machine = list[0].machine(ctx)
	err = list.measure(ctx, o, &r)
	r.Idle = judgeLoads(r.Loads)
	return r, err
}

// newNodeAgents starts each agent on its own node. After an error it also returns the agents that it has begun to
// start.
func newNodeAgents(ctx context.Context, o *options) (list nodeAgents, err error) {
	makers := []func(context.Context, *node) (*nodeAgent, error){newPodctlAgent}
	if o.kubelet != "" {
		makers = append(makers, newKubelet)
	}
	for _, maker := range makers {
		n, err := newNode(ctx, o)
		if err != nil {
			return list, err
		}
		a, err := maker(ctx, n)
		list = append(list, a)
		if err != nil {
			return list, err
		}
		// Let podctl create and delete a pod, so that the cgroups exist that a kubelet requires.
		path, err := a.write("warm.yaml", shape{containers: 1}.manifest("warm"))
		if err != nil {
			return list, err
		}
		err = errors.Join(a.podctl(ctx, "apply", "--wait=started", path), a.podctl(ctx, "delete", "warm"))
		if err != nil {
			return list, err
		}
		if err = a.start(ctx, 0); err != nil {
			return list, err
		}
	}
	return list, nil
}

// end removes all agents and their nodes.
func (list nodeAgents) end(ctx context.Context) (err error) {
	for _, a := range list {
		err = errors.Join(err, a.leave(ctx), a.close(ctx))
	}
	return err
}

// measure measures all figures. The idle pods stay while the reactions are timed, and must all still run afterwards.
func (list nodeAgents) measure(ctx context.Context, o *options, r *report) (err error) {
	if r.Loads, err = list.idle(ctx, Load{Pods: o.pods}, o.window); err != nil {
		return err
	}
	first := make([][]*runtimeapi.Container, len(list))
	for i, a := range list {
		if first[i], err = a.containers(ctx, ""); err != nil {
			return err
		}
	}
	if r.Results, err = measureAll(ctx, o, list.workloads(o.pods)); err != nil {
		return err
	}
	for i, a := range list {
		if err = errors.Join(a.stillRun(ctx, first[i]), a.drop(ctx, podNames(idlePrefix, o.pods)...)); err != nil {
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
func (list nodeAgents) workloads(pods int) []workload {
	const edited = 4
	all := []struct {
		workload
		of func(*nodeAgent) contender
	}{
		{workload{
			name: "death", rounds: 10, limit: limit{ms: 50},
			what: "from the end of a container's process until the runtime has created the next container",
		}, (*nodeAgent).dying},
		{workload{
			name: "edit-1-of-4", rounds: 10, limit: limit{against: kubeletName, factor: 0.5},
			what: "an edit of one container of four in the file of a running pod, until the replacement runs",
		}, func(a *nodeAgent) contender {
			c := a.changing("edit", shape{containers: edited, mark: "b"})
			c.before = func(ctx context.Context) error {
				_, err := a.arrive(ctx, "edit", shape{containers: edited, mark: "a"})
				return err
			}
			return c
		}},
		{workload{
			name: "new-1", rounds: 10, limit: limit{against: kubeletName, factor: 1},
			what: "a new file of a pod with one container, until it runs",
		}, func(a *nodeAgent) contender { return a.changing("new", shape{containers: 1}) }},
		{workload{
			name: "new-init-3", rounds: 10, limit: limit{against: kubeletName, factor: 0.3},
			what: "a new file of a pod with three init containers, then one, until it runs",
		}, func(a *nodeAgent) contender { return a.changing("inits", shape{inits: 3, containers: 1}) }},
		{workload{
			name: "new-50", rounds: 3, limit: limit{against: kubeletName, factor: 0.8},
			what: "fifty files of pods with one container at once, until all run",
		}, (*nodeAgent).flooded},
		{workload{
			name: fmt.Sprintf("restart-%d", pods), rounds: 5, limit: limit{ms: 1000},
			what: fmt.Sprintf("the agent or the kubelet is killed and started with %d running pods, "+
				"until it reports all of them; no container restarts", pods),
		}, func(a *nodeAgent) contender { return a.restarting(pods) }},
	}
	workloads := make([]workload, len(all))
	for i, one := range all {
		workloads[i] = one.workload
		for _, a := range list {
			c := one.of(a)
			c.name = a.name
			workloads[i].contenders = append(workloads[i].contenders, c)
		}
	}
	return workloads
}

// dying kills the process of a container that has not ended before, so no restart delay applies. The pod has a new name
// each time, because a kubelet remembers the restart delay of a pod whose manifest comes back.
func (a *nodeAgent) dying() contender {
	round, name := 0, ""
	return contender{
		before: func(ctx context.Context) error {
			round++
			name = fmt.Sprintf("death-%d", round)
			_, err := a.arrive(ctx, name, shape{containers: 1})
			return err
		},
		run: func(ctx context.Context) (sample, error) {
			began, err := a.killOnly(ctx, name)
			if err != nil {
				return sample{}, err
			}
			next, err := a.awaitNew(ctx, name, 1, began)
			if err != nil {
				return sample{}, err
			}
			return sample{wall: time.Unix(0, next[0].GetCreatedAt()).Sub(began)}, nil
		},
		after: func(ctx context.Context) error { return a.drop(ctx, name) },
	}
}

// killOnly kills the process of the only container of a pod, and returns the time.
func (a *nodeAgent) killOnly(ctx context.Context, name string) (at time.Time, err error) {
	containers, err := a.containers(ctx, name)
	if err != nil || len(containers) != 1 {
		return at, fmt.Errorf("%d containers of %s run: %w", len(containers), name, err)
	}
	id := containers[0].GetId()
	reply, err := a.cri.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id, Verbose: true})
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
func (a *nodeAgent) changing(name string, s shape) contender {
	return contender{
		run: func(ctx context.Context) (sample, error) {
			began := time.Now()
			containers, err := a.arrive(ctx, name, s)
			last := began
			for _, c := range containers {
				reply, failed := a.cri.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: c.GetId()})
				err = errors.Join(err, failed)
				if at := time.Unix(0, reply.GetStatus().GetStartedAt()); at.After(last) {
					last = at
				}
			}
			return sample{wall: last.Sub(began)}, err
		},
		after: func(ctx context.Context) error { return a.drop(ctx, name) },
	}
}

// flooded writes fifty manifests at once.
func (a *nodeAgent) flooded() contender {
	names := podNames("many", 50)
	return contender{
		run:   clocked(func(ctx context.Context) error { return a.arriveAll(ctx, names, shape{containers: 1}) }),
		after: func(ctx context.Context) error { return a.drop(ctx, names...) },
	}
}

// restarting kills the agent and starts it again. It must stop no container.
func (a *nodeAgent) restarting(pods int) contender {
	var before []*runtimeapi.Container
	return contender{
		before: func(ctx context.Context) (err error) {
			before, err = a.containers(ctx, "")
			return err
		},
		run: clocked(func(ctx context.Context) error {
			a.kill()
			return a.start(ctx, pods)
		}),
		after: func(ctx context.Context) error { return a.stillRun(ctx, before) },
	}
}

// stillRun fails if one of the containers no longer runs.
func (a *nodeAgent) stillRun(ctx context.Context, before []*runtimeapi.Container) error {
	now, err := a.containers(ctx, "")
	if err != nil {
		return err
	}
	for _, c := range before {
		if !slices.ContainsFunc(now, func(n *runtimeapi.Container) bool { return n.GetId() == c.GetId() }) {
			return fmt.Errorf("%s has stopped container %s of pod %s",
				a.name, c.GetId(), c.GetLabels()["io.kubernetes.pod.name"])
		}
	}
	return nil
}
