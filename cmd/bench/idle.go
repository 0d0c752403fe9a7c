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
	before, began := make([]time.Duration, len(list)), make([]time.Time, len(list))
	for i, a := range list {
		before[i], began[i] = a.cpu(), time.Now()
	}
	time.Sleep(window)
	loads := make([]Load, len(list))
	for i, a := range list {
		status := fmt.Sprintf("/proc/%d/status", a.cmd.Process.Pid)
		loads[i] = of
		loads[i].Agent = a.name
		loads[i].CPU = milliseconds(a.cpu()-before[i]) / time.Since(began[i]).Seconds()
		loads[i].RSS, loads[i].Anonymous = mebibytes(status, "VmRSS"), mebibytes(status, "RssAnon")
	}
	return loads, nil
}

// cpu returns the processor time of an agent so far, by the scheduler's statistics of its threads.
func (a *nodeAgent) cpu() (sum time.Duration) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", a.cmd.Process.Pid)) // The pattern is valid.
	for _, task := range tasks {
		var nanoseconds int64
		text, _ := os.ReadFile(task)          // The thread may have ended.
		fmt.Sscan(string(text), &nanoseconds) //nolint:errcheck // as above
		sum += time.Duration(nanoseconds)
	}
	return sum
}

// judgeLoads compares the idle usage of the agent with that of the kubelet for the same pods. Both are measured one
// after the other, the agent first.
func judgeLoads(loads []Load) (results []Result) {
	for i := 1; i < len(loads); i++ {
		agent, kubelet := &loads[i-1], &loads[i]
		if agent.Agent != agentName || kubelet.Agent != kubeletName {
			continue
		}
		with := fmt.Sprintf(" with %s pods", agent.pods())
		results = append(results,
			compared("idle: processor time"+with, 0.33, agent.CPU/kubelet.CPU),
			compared("idle: memory"+with, 0.4, agent.RSS/kubelet.RSS),
			Result{Name: "idle: memory" + with, Target: Target{Unit: "MiB", Limit: 64, Measured: agent.RSS}})
	}
	return results
}

func compared(name string, most, ratio float64) Result {
	return Result{
		Name:       name,
		Contenders: []Figures{{Name: kubeletName, Ratio: ratio}},
		Target:     Target{Against: kubeletName, Limit: most, Measured: ratio},
	}
}
