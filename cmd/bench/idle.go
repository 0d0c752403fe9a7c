package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Load is what a keeper uses while its pods run and nothing happens.
type Load struct {
	Keeper string `json:"keeper"`
	Pods   int    `json:"pods"`
	// Probed is set for pods that are asked three times in ten seconds.
	Probed bool `json:"probed,omitempty"`
	// CPU is the processor's time in milliseconds per second, RuntimeCPU that of its containerd.
	CPU        float64 `json:"cpuMsPerSecond"`
	RuntimeCPU float64 `json:"runtimeCpuMsPerSecond"`
	// RSS is the memory in MiB, and Anonymous what of it belongs to no file.
	RSS       float64 `json:"rssMiB"`
	Anonymous float64 `json:"anonymousMiB"`
	// Heap is what its objects take in MiB: the less of two readings, because some wait for the collection. Binary is
	// the size of its binary.
	Heap   float64 `json:"heapMiB"`
	Binary float64 `json:"binaryMiB"`
	// Calls are those to the runtime per second, Wakeups how often a thread went on per second.
	Calls   float64 `json:"callsPerSecond"`
	Wakeups float64 `json:"wakeupsPerSecond"`
	// Written is what it wrote to disks, in KiB per minute.
	Written float64 `json:"writtenKiBPerMinute"`
}

// rest is how long the keepers have to come to rest after the last pod has started.
const rest = 15 * time.Second

// curve brings up more and more pods, and measures the keepers idle with each number.
func (list keepers) curve(ctx context.Context, counts []int, window time.Duration) (loads []Load, err error) {
	have := 0
	for _, count := range counts {
		for _, k := range list {
			if err := k.arriveAll(ctx, podNames("idle", have, count), shape{containers: 1}); err != nil {
				return loads, err
			}
		}
		have = count
		more, err := list.idle(ctx, Load{Pods: count}, window)
		if err != nil {
			return loads, err
		}
		loads = append(loads, more...)
	}
	return loads, nil
}

// probed puts pods with probes in the place of the others, and measures the keepers with them.
func (list keepers) probed(ctx context.Context, count int, window time.Duration) ([]Load, error) {
	for _, k := range list {
		if err := k.drop(ctx, podNames("idle", 0, count)...); err != nil {
			return nil, err
		}
		if err := k.arriveAll(ctx, podNames("probed", 0, count), shape{containers: 1, probed: true}); err != nil {
			return nil, err
		}
	}
	return list.idle(ctx, Load{Pods: count, Probed: true}, window)
}

// idle measures all keepers at the same time.
func (list keepers) idle(ctx context.Context, of Load, window time.Duration) ([]Load, error) {
	fmt.Fprintf(os.Stderr, "bench: idle with %s pods\n", of.pods())
	time.Sleep(rest)
	loads, before := make([]Load, len(list)), make([]usage, len(list))
	for i, k := range list {
		var err error
		if before[i], err = k.usage(ctx); err != nil {
			return nil, err
		}
	}
	time.Sleep(window)
	for i, k := range list {
		after, err := k.usage(ctx)
		if err != nil {
			return nil, err
		}
		loads[i] = of
		loads[i].Keeper = k.name
		loads[i].between(&before[i], &after)
	}
	return loads, nil
}

// usage is what a keeper has used until a time.
type usage struct {
	at               time.Time
	own, runtime     time.Duration
	rss, anonymous   float64
	heap, binary     float64
	calls            float64
	wakeups, written int64
}

// between fills in what was used between two times.
func (l *Load) between(before, after *usage) {
	seconds := after.at.Sub(before.at).Seconds()
	l.CPU = milliseconds(after.own-before.own) / seconds
	l.RuntimeCPU = milliseconds(after.runtime-before.runtime) / seconds
	l.RSS, l.Anonymous, l.Binary = after.rss, after.anonymous, after.binary
	l.Heap = min(before.heap, after.heap)
	l.Calls = (after.calls - before.calls) / seconds
	l.Wakeups = float64(after.wakeups-before.wakeups) / seconds
	l.Written = float64(after.written-before.written) / (1 << 10) / seconds * time.Minute.Seconds()
}

func (k *keeper) usage(ctx context.Context) (u usage, err error) {
	page, err := get(ctx, k.address+"/metrics")
	if err != nil {
		return u, err
	}
	pid := k.cmd.Process.Pid
	containerd, err := k.containerd()
	if err != nil {
		return u, err
	}
	u.at, u.calls = time.Now(), sumOf(string(page), "kubelet_runtime_operations_total")
	u.rss, u.anonymous = mebibytes(pid, "VmRSS"), mebibytes(pid, "RssAnon")
	u.heap = sumOf(string(page), "go_memstats_heap_alloc_bytes") / (1 << 20)
	binary, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return u, err
	}
	u.binary = float64(binary.Size()) / (1 << 20)
	fmt.Sscan(field(fmt.Sprintf("/proc/%d/io", pid), "write_bytes"), &u.written) //nolint:errcheck // it stays zero then
	u.own, u.wakeups = threads(pid)
	u.runtime, _ = threads(containerd)
	return u, nil
}

// threads are the time on a processor and the wake-ups of all threads of a process.
func threads(pid int) (cpu time.Duration, wakeups int64) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid)) // The pattern is right.
	for _, task := range tasks {
		var nanoseconds, voluntary int64
		fmt.Sscan(firstLine(os.ReadFile(filepath.Join(task, "schedstat"))), &nanoseconds)      //nolint:errcheck // the thread has ended
		fmt.Sscan(field(filepath.Join(task, "status"), "voluntary_ctxt_switches"), &voluntary) //nolint:errcheck // as above
		cpu, wakeups = cpu+time.Duration(nanoseconds), wakeups+voluntary
	}
	return cpu, wakeups
}

// containerd is the process of the keeper's runtime.
func (k *keeper) containerd() (int, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		text, _ := os.ReadFile(path) // A process may have ended.
		name, _, _ := strings.Cut(string(text), "\x00")
		if filepath.Base(name) == "containerd" && strings.Contains(string(text), k.node.dir) {
			return strconv.Atoi(filepath.Base(filepath.Dir(path)))
		}
	}
	return 0, fmt.Errorf("no containerd of %s runs: %w", k.node.dir, err)
}
