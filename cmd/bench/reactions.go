package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// nodeAgents are podctl's agent and, with -kubelet, a kubelet, each with its own containerd. Both run during all
// measurements, which are made in turn, beside the idle pods.
type nodeAgents []*nodeAgent

// benchAgent measures the agent beside a kubelet.
func benchAgent(ctx context.Context, o *options) (machine string, results []Result, err error) {
	var list nodeAgents
	defer func() {
		for _, a := range list {
			err = errors.Join(err, a.close(context.WithoutCancel(ctx)))
		}
	}()
	makers := []func(*node, *options) (*nodeAgent, error){(*node).podctlAgent}
	if o.kubelet != "" {
		makers = append(makers, (*node).kubelet)
	}
	for _, maker := range makers {
		n, nodeErr := newNode(ctx, o)
		a, agentErr := maker(n, o)
		list = append(list, a)
		if err = errors.Join(nodeErr, agentErr); err == nil {
			err = a.begin(ctx)
		}
		if err != nil {
			return "", nil, err
		}
	}
	results, err = list.measure(ctx, o)
	return list[0].machine(ctx, tool(o.kubelet)), results, err
}

// begin starts the agent without pods. Before that, podctl creates and deletes a pod, so that the cgroups exist that a
// kubelet requires.
func (a *nodeAgent) begin(ctx context.Context) error {
	const name = "warm"
	return inTurn(
		a.put(name, shape{containers: 1}, name),
		a.podctl.do("apply", "--wait=started", a.manifest(name)),
		a.podctl.do("delete", name),
		func(context.Context) error { return os.Remove(a.manifest(name)) },
		func(ctx context.Context) error { return a.start(ctx, 0) },
	)(ctx)
}

// measure measures all figures. The idle pods stay while the reactions are timed, and must all still run afterwards.
func (list nodeAgents) measure(ctx context.Context, o *options) ([]Result, error) {
	idle, err := list.idle(ctx, fmt.Sprintf("%d pods", idlePods), shape{containers: 1})
	if err != nil {
		return nil, err
	}
	results, err := measureAll(ctx, o, list.workloads())
	results = append(results, idle...)
	for _, a := range list {
		if err == nil {
			err = errors.Join(a.idlersRun(ctx), a.drop(ctx, podNames(idlePrefix, idlePods)...))
		}
	}
	if err != nil || !o.only.MatchString("probed") {
		return results, err
	}
	probed, err := list.idle(ctx, fmt.Sprintf("%d probed pods", idlePods), shape{containers: 1, probed: true})
	return append(results, probed...), err
}

// idlersRun fails if a container of an idle pod no longer runs.
func (a *nodeAgent) idlersRun(ctx context.Context) error {
	now, err := a.containers(ctx, "")
	for _, c := range a.idlers {
		same := func(n *runtimeapi.Container) bool { return n.GetId() == c.GetId() }
		if err == nil && !slices.ContainsFunc(now, same) {
			err = fmt.Errorf("%s has stopped container %s of %v", a.name, c.GetId(), c.GetLabels())
		}
	}
	return err
}

// workloads returns the timed reactions.
func (list nodeAgents) workloads() (workloads []workload) {
	changing := func(s shape, names ...string) func(*nodeAgent) contender {
		return func(a *nodeAgent) contender { return a.changing(s, names...) }
	}
	one := shape{containers: 1}
	for _, reaction := range []struct {
		workload
		of func(*nodeAgent) contender
	}{
		{about(10, "death", "from the end of a container's process until the runtime has created the next container",
			Target{Unit: inMilliseconds, Limit: 50}), (*nodeAgent).dying},
		{about(10, "edit-1-of-4", "an edit of one container of four in the file of a running pod, "+
			"until the replacement runs", times(kubeletName, 0.5)), (*nodeAgent).editing},
		{about(10, "new-1", "a new file of a pod with one container, until it runs",
			times(kubeletName, 1)), changing(one, "new")},
		{about(10, "new-init-3", "a new file of a pod with three init containers, then one, until it runs",
			times(kubeletName, 0.3)), changing(shape{inits: 3, containers: 1}, "inits")},
		{about(3, "new-50", "fifty files of pods with one container at once, until all run",
			times(kubeletName, 0.8)), changing(one, podNames("many", 50)...)},
		{about(5, fmt.Sprint("restart-", idlePods), fmt.Sprintf("the agent or the kubelet is killed and started with "+
			"%d running pods, until it reports all of them; no container restarts", idlePods),
			Target{Unit: inMilliseconds, Limit: 1000}), (*nodeAgent).restarting},
	} {
		reaction.begin = func(context.Context) (contenders []contender, _ error) {
			for _, a := range list {
				contenders = append(contenders, reaction.of(a))
				contenders[len(contenders)-1].name = a.name
			}
			return contenders, nil
		}
		workloads = append(workloads, reaction.workload)
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
			_, err := a.arrive(ctx, shape{containers: 1}, name)
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

// changing writes manifests. It measures the time until the last container of each pod has been recreated and all run,
// according to the runtime.
func (a *nodeAgent) changing(s shape, names ...string) contender {
	return contender{
		run: func(ctx context.Context) (sample, error) {
			began := time.Now()
			last, err := a.arrive(ctx, s, names...)
			return sample{wall: last.Sub(began)}, err
		},
		after: func(ctx context.Context) error { return a.drop(ctx, names...) },
	}
}

// editing changes one container of four in a running pod.
func (a *nodeAgent) editing() contender {
	const name = "edit"
	four := shape{containers: 4, mark: "b"}
	c := a.changing(four, name)
	c.before = func(ctx context.Context) error {
		four.mark = "a"
		_, err := a.arrive(ctx, four, name)
		return err
	}
	return c
}

// restarting kills the agent and starts it again.
func (a *nodeAgent) restarting() contender {
	return contender{run: clocked(func(ctx context.Context) error {
		a.kill()
		return a.start(ctx, idlePods)
	})}
}

const (
	// idlePods is the number of idle pods, and idlePrefix the prefix of their names.
	idlePods, idlePrefix = 110, "idle"
	// rest is the pause between the start of the last pod and the measurement, and window the time of that.
	rest, window = 15 * time.Second, time.Minute
)

// idle starts pods, and measures all agents at the same time while nothing happens.
func (list nodeAgents) idle(ctx context.Context, pods string, s shape) ([]Result, error) {
	fmt.Fprintf(os.Stderr, "bench: idle with %s\n", pods)
	for _, a := range list {
		_, err := a.arrive(ctx, s, podNames(idlePrefix, idlePods)...)
		if err == nil {
			a.idlers, err = a.containers(ctx, "")
		}
		if err != nil {
			return nil, err
		}
	}
	time.Sleep(rest)
	began, before := time.Now(), make([]time.Duration, len(list))
	for i, a := range list {
		before[i] = processorTime(a.cmd.Process.Pid)
	}
	time.Sleep(window)
	results := idleResults(pods)
	for i, a := range list {
		pid := a.cmd.Process.Pid
		status := fmt.Sprintf("/proc/%d/status", pid)
		used, rss := milliseconds(processorTime(pid)-before[i]), mebibytes(status, "VmRSS")
		for j, value := range []float64{used / time.Since(began).Seconds(), rss, rss, mebibytes(status, "RssAnon")} {
			results[j].add(a.name, value)
		}
	}
	return results, nil
}

// idleResults returns the targets: processor time, memory beside a kubelet, memory, and the part of the memory that
// belongs to no file.
func idleResults(pods string) []Result {
	return []Result{
		{Name: "idle: processor time with " + pods, Target: times(kubeletName, 0.33)},
		{Name: "idle: memory with " + pods, Target: times(kubeletName, 0.4)},
		{Name: "idle: memory with " + pods, Target: Target{Unit: inMebibytes, Limit: 64}},
		{Name: "idle: anonymous memory with " + pods},
	}
}

// add adds the value of a contender that was measured once. The first is podctl's agent.
func (r *Result) add(name string, value float64) {
	f := Figures{Name: name, Runs: 1, Value: Spread{value, value, value}}
	if len(r.Contenders) > 0 {
		f.Ratio = r.Contenders[0].Value.Median / value
	}
	r.Contenders = append(r.Contenders, f)
	r.Target.measure(r.Contenders)
}
