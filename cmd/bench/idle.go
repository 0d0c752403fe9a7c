package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Load is an agent's usage while its pods run without events.
type Load struct {
	Agent string
	Pods  int
	// Probed is set for pods that are probed three times in ten seconds.
	Probed bool
	// CPU is the processor time in milliseconds per second.
	CPU float64
	// RSS is the memory in MiB, and Anonymous the part of it that belongs to no file.
	RSS, Anonymous float64
	// Heap is the size of its objects in MiB: the smaller of two readings, because some wait for the garbage
	// collection.
	Heap float64
	// Calls are calls to the runtime per second. Wakeups are voluntary context switches of its threads per second.
	Calls, Wakeups float64
}

func (l *Load) pods() string {
	if l.Probed {
		return fmt.Sprintf("%d probed", l.Pods)
	}
	return fmt.Sprint(l.Pods)
}

// rest is the pause between the start of the last pod and the measurement.
const rest = 15 * time.Second

// idle starts pods, and measures all agents at the same time.
func (list nodeAgents) idle(ctx context.Context, of Load, window time.Duration) ([]Load, error) {
	fmt.Fprintf(os.Stderr, "bench: idle with %s pods\n", of.pods())
	for _, a := range list {
		if err := a.arriveAll(ctx, podNames(idlePrefix, of.Pods), shape{containers: 1, probed: of.Probed}); err != nil {
			return nil, err
		}
	}
	time.Sleep(rest)
	loads, before := make([]Load, len(list)), make([]usage, len(list))
	for i, a := range list {
		var err error
		if before[i], err = a.usage(ctx); err != nil {
			return nil, err
		}
	}
	time.Sleep(window)
	for i, a := range list {
		after, err := a.usage(ctx)
		if err != nil {
			return nil, err
		}
		loads[i] = of
		loads[i].Agent = a.name
		loads[i].between(&before[i], &after)
	}
	return loads, nil
}

// usage is the usage of an agent up to a time.
type usage struct {
	at                   time.Time
	cpu                  time.Duration
	rss, anonymous, heap float64
	calls                float64
	wakeups              int64
}

// between computes the usage between two times.
func (l *Load) between(before, after *usage) {
	seconds := after.at.Sub(before.at).Seconds()
	l.CPU = milliseconds(after.cpu-before.cpu) / seconds
	l.RSS, l.Anonymous, l.Heap = after.rss, after.anonymous, min(before.heap, after.heap)
	l.Calls = (after.calls - before.calls) / seconds
	l.Wakeups = float64(after.wakeups-before.wakeups) / seconds
}

func (a *nodeAgent) usage(ctx context.Context) (u usage, err error) {
	page, err := get(ctx, a.address+"/metrics")
	if err != nil {
		return u, err
	}
	u.at, u.calls = time.Now(), sumOf(string(page), "kubelet_runtime_operations_total")
	u.heap = sumOf(string(page), "go_memstats_heap_alloc_bytes") / (1 << 20)
	process := fmt.Sprintf("/proc/%d/", a.cmd.Process.Pid)
	u.rss, u.anonymous = mebibytes(process+"status", "VmRSS"), mebibytes(process+"status", "RssAnon")
	tasks, _ := filepath.Glob(process + "task/*") // The pattern is valid.
	for _, task := range tasks {
		var nanoseconds, voluntary int64
		times, _ := os.ReadFile(filepath.Join(task, "schedstat")) // The thread may have ended.
		switches := field(filepath.Join(task, "status"), "voluntary_ctxt_switches")
		fmt.Sscan(string(times), &nanoseconds) //nolint:errcheck // as above
		fmt.Sscan(switches, &voluntary)        //nolint:errcheck // as above
		u.cpu, u.wakeups = u.cpu+time.Duration(nanoseconds), u.wakeups+voluntary
	}
	return u, nil
}

// judgeLoads compares the idle usage of the agent with that of the kubelet for the same pods.
func judgeLoads(loads []Load) (targets []Target) {
	for i := range loads {
		agent := &loads[i]
		for j := range loads {
			kubelet := &loads[j]
			if agent.Agent != agentName || kubelet.Agent != kubeletName ||
				agent.Pods != kubelet.Pods || agent.Probed != kubelet.Probed {
				continue
			}
			with := fmt.Sprintf(" of a kubelet with %s pods", agent.pods())
			targets = append(targets,
				Target{"times the processor time" + with, 0.33, agent.CPU / kubelet.CPU},
				Target{"times the memory" + with, 0.4, agent.RSS / kubelet.RSS},
				Target{fmt.Sprintf("MiB of memory with %s pods", agent.pods()), 64, agent.RSS})
		}
	}
	return targets
}
