package stats

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/podctl/podctl/runtime/cgroup"
)

// cpuOf returns the processor usage of a cgroup; nil if it is not known.
func cpuOf(u *cgroup.Usage, at metav1.Time) *statsapi.CPUStats {
	if u.CPU == nil {
		return nil
	}
	return &statsapi.CPUStats{Time: at, UsageCoreNanoSeconds: u.CPU, PSI: psiOf(u.CPUPressure)}
}

// ioOf returns how long the tasks of a cgroup waited for disks; nil if it is not known.
func ioOf(u *cgroup.Usage, at metav1.Time) *statsapi.IOStats {
	if u.IOPressure == nil {
		return nil
	}
	return &statsapi.IOStats{Time: at, PSI: psiOf(u.IOPressure)}
}

// psiOf returns a pressure; nil if it is not known. The totals of a kubelet are in microseconds too.
func psiOf(p *cgroup.Pressure) *statsapi.PSIStats {
	if p == nil {
		return nil
	}
	data := func(s cgroup.Stall) statsapi.PSIData {
		return statsapi.PSIData{Total: s.Total, Avg10: s.Avg10, Avg60: s.Avg60, Avg300: s.Avg300}
	}
	return &statsapi.PSIStats{Some: data(p.Some), Full: data(p.Full)}
}

// memoryOf returns the memory usage of a cgroup; nil if it is not known. Memory is available below a limit
// (kubelet: cadvisorInfoToCPUandMemoryStats).
func memoryOf(u *cgroup.Usage, at metav1.Time) *statsapi.MemoryStats {
	if u.Memory == nil {
		return nil
	}
	m := &statsapi.MemoryStats{
		Time: at, UsageBytes: u.Memory, WorkingSetBytes: u.WorkingSet, RSSBytes: u.RSS,
		PageFaults: u.PageFaults, MajorPageFaults: u.MajorPageFaults, PSI: psiOf(u.MemoryPressure),
	}
	if u.Limit != nil && u.WorkingSet != nil {
		m.AvailableBytes = new(*u.Limit - min(*u.Limit, *u.WorkingSet))
	}
	return m
}

// swapOf returns the swapped memory of a cgroup; nil if it is not known.
func swapOf(u *cgroup.Usage, at metav1.Time) *statsapi.SwapStats {
	if u.Swap == nil {
		return nil
	}
	s := &statsapi.SwapStats{Time: at, SwapUsageBytes: u.Swap}
	if u.SwapLimit != nil {
		s.SwapAvailableBytes = new(*u.SwapLimit - min(*u.SwapLimit, *u.Swap))
	}
	return s
}

// samples are the processor usages of an earlier measurement.
type samples map[sample]*statsapi.CPUStats

// sample identifies a measured cgroup. The node has no uid, and a pod no container. A container that was started again
// begins at zero.
type sample struct {
	uid, container string
	// started is in nanoseconds since 1970.
	started int64
}

// each calls do with every processor usage of a summary.
func each(s *statsapi.Summary, do func(sample, *statsapi.CPUStats)) {
	do(sample{}, s.Node.CPU)
	for i := range s.Node.SystemContainers {
		one := &s.Node.SystemContainers[i]
		do(sample{container: one.Name}, one.CPU)
	}
	for i := range s.Pods {
		pod := &s.Pods[i]
		do(sample{uid: pod.PodRef.UID}, pod.CPU)
		for j := range pod.Containers {
			one := &pod.Containers[j]
			do(sample{pod.PodRef.UID, one.Name, one.StartTime.UnixNano()}, one.CPU)
		}
	}
}

// addRates sets the current processor usage, which follows from two measurements. It returns the samples for the next
// one.
func addRates(s *statsapi.Summary, before samples) samples {
	now := samples{}
	each(s, func(key sample, cpu *statsapi.CPUStats) {
		if cpu == nil {
			return
		}
		now[key] = cpu
		cpu.UsageNanoCores = rate(before[key], cpu)
	})
	return now
}

// rate returns the processor usage between two measurements, in billionths of a core; nil if one is missing.
func rate(before, now *statsapi.CPUStats) *uint64 {
	if before == nil {
		return nil
	}
	from, to, elapsed := *before.UsageCoreNanoSeconds, *now.UsageCoreNanoSeconds, now.Time.Sub(before.Time.Time)
	if elapsed <= 0 || to < from {
		return nil
	}
	return new(uint64(float64(to-from) / elapsed.Seconds()))
}
