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

// keepers are podctl's agent and, where one is named, a kubelet, each on a containerd of its own. All is measured
// with both of them running, in turn, beside the pods of the curves.
type keepers []*keeper

// newKeepers brings a node up for each, and starts them.
func newKeepers(ctx context.Context, o *options) (list keepers, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, list.end(context.WithoutCancel(ctx)))
		}
	}()
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
		// podctl makes and deletes a pod: after that the cgroups are there that a kubelet wants to find.
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

// end takes all down.
func (list keepers) end(ctx context.Context) (err error) {
	for _, k := range list {
		err = errors.Join(err, k.leave(ctx), k.close(ctx))
	}
	return err
}

// inTurn is a workload of all keepers, by what one of them does.
func (list keepers) inTurn(w workload, of func(*keeper) contender) *workload {
	for _, k := range list {
		c := of(k)
		c.name = k.name
		w.contenders = append(w.contenders, c)
	}
	return &w
}

// workloads are the reactions that are timed.
func (list keepers) workloads(pods int) []*workload {
	return []*workload{
		list.death(),
		list.edit(1), list.edit(4),
		list.arrival("new-1", "a new file of a pod with one container: until it runs", 1, shape{containers: 1}),
		list.arrival("new-4", "a new file of a pod with four containers: until they run", 0.8, shape{containers: 4}),
		list.arrival("new-init-3", "a new file of a pod with three init containers, then one: until it runs", 0.3, shape{inits: 3, containers: 1}),
		list.many(),
		list.restart(pods),
	}
}

// against is a limit beside the kubelet.
func against(factor float64) []limit { return []limit{{against: kubeletName, factor: factor}} }

// eventName is what no keeper can be faster than: the runtime's own word of a death.
const eventName = "the runtime's event"

// death kills the process of a container that has not ended before, so no restart delay is due.
func (list keepers) death() *workload {
	w := workload{
		name: "death", rounds: 10, limits: []limit{{ms: 50}},
		what: "from the end of a container's process until the runtime has made the next container, which is when it is told to start it",
	}
	all := list.inTurn(w, func(k *keeper) contender { return k.dying("death", k.afterDeath) })
	event := list[0].dying("told", list[0].eventOfDeath)
	event.name = eventName
	all.contenders = append(all.contenders, event)
	return all
}

// dying is what happens to a pod that is there for it, with another name each time: a kubelet remembers the
// restart delay of a pod whose manifest comes back.
func (k *keeper) dying(prefix string, run func(ctx context.Context, name string) (sample, error)) contender {
	round, name := 0, ""
	return contender{
		before: func(ctx context.Context) error {
			round++
			name = fmt.Sprintf("%s-%d", prefix, round)
			_, err := k.arrive(ctx, name, shape{containers: 1})
			return err
		},
		run:   func(ctx context.Context) (sample, error) { return run(ctx, name) },
		after: func(ctx context.Context) error { return k.drop(ctx, name) },
	}
}

// eventOfDeath kills the container of a pod, and waits until the runtime sends the event of its end.
func (k *keeper) eventOfDeath(ctx context.Context, name string) (sample, error) {
	ctx, cancel := context.WithTimeout(ctx, keeperLimit)
	defer cancel()
	events, err := k.cri.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	if err != nil {
		return sample{}, err
	}
	id, began, err := k.killOnly(ctx, name)
	for err == nil {
		var e *runtimeapi.ContainerEventResponse
		if e, err = events.Recv(); e.GetContainerId() == id && e.GetContainerEventType() == runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT {
			return sample{wall: time.Since(began)}, nil
		}
	}
	return sample{}, fmt.Errorf("no event of the end of %s: %w", id, err)
}

// afterDeath kills the container of a pod, and waits for its successor.
func (k *keeper) afterDeath(ctx context.Context, name string) (sample, error) {
	_, began, err := k.killOnly(ctx, name)
	if err != nil {
		return sample{}, err
	}
	next, err := k.awaitNew(ctx, name, 1, began)
	if err != nil {
		return sample{}, err
	}
	return sample{wall: time.Unix(0, next[0].GetCreatedAt()).Sub(began)}, nil
}

// killOnly kills the process of the only container of a pod, and returns the container's id and when.
func (k *keeper) killOnly(ctx context.Context, name string) (id string, at time.Time, err error) {
	containers, err := k.containers(ctx, name)
	if err != nil || len(containers) != 1 {
		return "", at, fmt.Errorf("%d containers of %s run: %w", len(containers), name, err)
	}
	id = containers[0].GetId()
	reply, err := k.cri.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id, Verbose: true})
	if err != nil {
		return id, at, err
	}
	var info struct{ PID int }
	if err = json.Unmarshal([]byte(reply.GetInfo()["info"]), &info); err != nil || info.PID <= 1 {
		return id, at, fmt.Errorf("the process of container %s is not known: %w", id, err)
	}
	at = time.Now()
	return id, at, syscall.Kill(info.PID, syscall.SIGKILL)
}

// change puts a manifest, and times until the last container of its pod has been recreated and all run, by the
// times of the runtime.
func (k *keeper) change(ctx context.Context, name string, s shape) (sample, error) {
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
}

// edit changes the environment of the last container of a pod.
func (list keepers) edit(containers int) *workload {
	w := workload{
		name: fmt.Sprintf("edit-1-of-%d", containers), rounds: 10, limits: against(0.5),
		what: fmt.Sprintf("an edit of one container of %d in the file of a pod that runs: until the replaced container runs", containers),
	}
	name := fmt.Sprintf("edit-%d", containers)
	return list.inTurn(w, func(k *keeper) contender {
		return contender{
			before: func(ctx context.Context) error {
				_, err := k.arrive(ctx, name, shape{containers: containers, mark: "a"})
				return err
			},
			run: func(ctx context.Context) (sample, error) {
				return k.change(ctx, name, shape{containers: containers, mark: "b"})
			},
			after: func(ctx context.Context) error { return k.drop(ctx, name) },
		}
	})
}

// arrival is a new file.
func (list keepers) arrival(name, what string, factor float64, s shape) *workload {
	return list.inTurn(workload{name: name, what: what, rounds: 10, limits: against(factor)}, func(k *keeper) contender {
		return contender{
			run:   func(ctx context.Context) (sample, error) { return k.change(ctx, name, s) },
			after: func(ctx context.Context) error { return k.drop(ctx, name) },
		}
	})
}

// many is fifty files at once.
func (list keepers) many() *workload {
	names := podNames("many", 0, 50)
	w := workload{name: "new-50", rounds: 3, limits: against(0.8), what: "fifty files of pods with one container at once: until all run"}
	return list.inTurn(w, func(k *keeper) contender {
		return contender{
			run: func(ctx context.Context) (sample, error) {
				return clocked(func() error { return k.arriveAll(ctx, names, shape{containers: 1}) })
			},
			after: func(ctx context.Context) error { return k.drop(ctx, names...) },
		}
	})
}

// restart kills the keeper and starts it again. It may stop no container.
func (list keepers) restart(pods int) *workload {
	w := workload{
		name: fmt.Sprintf("restart-%d", pods), rounds: 5, limits: []limit{{ms: 1000}},
		what: fmt.Sprintf("the start of a keeper that was killed, with %d pods that run: until it says that it keeps them all, none of which it touched", pods),
	}
	return list.inTurn(w, func(k *keeper) contender {
		return contender{run: func(ctx context.Context) (sample, error) {
			before, err := k.containers(ctx, "")
			if err != nil {
				return sample{}, err
			}
			k.kill()
			s, err := clocked(func() error { return k.start(ctx, pods) })
			return s, errors.Join(err, k.stillRun(ctx, before))
		}}
	})
}

// stillRun fails if a container does not run any more.
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

// runKeepers measures the agent beside a kubelet.
func runKeepers(ctx context.Context, o *options, only func(string) bool) (err error) {
	list, err := newKeepers(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, list.end(context.WithoutCancel(ctx))) }()
	report := &KeeperReport{Machine: list[0].machine(ctx)}
	err = list.measure(ctx, o, report, only)
	report.judge()
	return errors.Join(err, publish(o, report, "make bench-agent", report.page()))
}

// measure takes all figures. The pods of the curves stay to the end.
func (list keepers) measure(ctx context.Context, o *options, report *KeeperReport, only func(string) bool) (err error) {
	if report.Loads, err = list.curve(ctx, o.pods, o.window); err != nil {
		return err
	}
	first := make([][]*runtimeapi.Container, len(list))
	for i, k := range list {
		if first[i], err = k.containers(ctx, ""); err != nil {
			return err
		}
	}
	most := o.pods[len(o.pods)-1]
	if report.Workloads, err = measureAll(ctx, list.workloads(most), o.rounds, only); err != nil {
		return err
	}
	for i, k := range list {
		if err = k.stillRun(ctx, first[i]); err != nil {
			return err
		}
	}
	if !only("probed") {
		return nil
	}
	probed, err := list.probed(ctx, most, o.window)
	report.Loads = append(report.Loads, probed...)
	return err
}
