package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

const (
	// idlePrefix is the prefix of the names of the idle pods.
	idlePrefix = "idle"
	// rest is the pause between the start of the last pod and the measurement.
	rest = 15 * time.Second
)

// idle starts pods, and measures all agents at the same time while nothing happens.
func (list nodeAgents) idle(ctx context.Context, o *options, pods string, s shape) ([]Result, error) {
	fmt.Fprintf(os.Stderr, "bench: idle with %s\n", pods)
	for _, a := range list {
		if _, err := a.arrive(ctx, s, podNames(idlePrefix, o.pods)...); err != nil {
			return nil, err
		}
	}
	time.Sleep(rest)
	before, began := make([]time.Duration, len(list)), make([]time.Time, len(list))
	for i, a := range list {
		before[i], began[i] = processorTime(a.cmd.Process.Pid), time.Now()
	}
	time.Sleep(o.window)
	results := idleResults(pods)
	for i, a := range list {
		pid := a.cmd.Process.Pid
		status := fmt.Sprintf("/proc/%d/status", pid)
		used, rss := milliseconds(processorTime(pid)-before[i]), mebibytes(status, "VmRSS")
		for j, value := range []float64{used / time.Since(began[i]).Seconds(), rss, rss, mebibytes(status, "RssAnon")} {
			results[j].add(a.name, value)
		}
	}
	return results, nil
}

// idleResults returns the targets: processor time, memory beside a kubelet, memory, and the part of the memory that
// belongs to no file.
func idleResults(pods string) []Result {
	return []Result{
		{Name: "idle: processor time with " + pods, Target: timesKubelet(0.33)},
		{Name: "idle: memory with " + pods, Target: timesKubelet(0.4)},
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
