package stats

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/runtime/cgroup"
)

// ContainerMetrics serves the metrics of cAdvisor, with its names and labels (kubelet: /metrics/cadvisor). Each cgroup
// of pods has its own: the tops, the pods, their sandboxes and their containers.
func (m *Meter) ContainerMetrics() http.Handler {
	metrics := newGroupMetrics()
	return m.handler(detailed, func(e *exposition, now *measurement) {
		e.machine(m)
		for i := range now.groups {
			if g := &now.groups[i]; g.path != "" {
				e.group(metrics, g, &now.details[i], metav1.NewTime(now.at))
			}
		}
		e.sendFloat(scrapeError("container"), metav1.Time{}, 0)
		e.sendFloat(scrapeError("machine"), metav1.Time{}, 0)
	}, func(e *exposition) { e.fail("container") })
}

// labelsOf are the labels of cAdvisor for a cgroup, as a kubelet sets them (containerPrometheusLabelsFunc).
func labelsOf(more ...string) []string {
	return append([]string{"container", "id", "image", "name", "namespace", "pod"}, more...)
}

// labels are the values of labelsOf.
func (g *group) labels(more ...string) []string {
	return append([]string{g.container, g.path, g.image, g.id, g.namespace, g.pod}, more...)
}

// machine makes the metrics of the machine.
func (e *exposition) machine(m *Meter) {
	id, capacity := m.Identity, capacityOf(m.Node())
	send := func(name, help string, value *uint64) {
		e.send(gauge(name, help, "boot_id", "machine_id", "system_uuid"), metav1.Time{}, value, 1,
			id.BootID, id.MachineID, id.SystemUUID)
	}
	send("machine_cpu_cores", "Number of logical CPU cores.", new(uint64(max(capacity.Cpu().Value(), 0))))
	send("machine_memory_bytes", "Amount of memory installed on the machine.", memoryCapacity(capacity))
	if total, _, known := swapSize(); known {
		send("machine_swap_bytes", "Amount of swap memory available on the machine.", &total)
	}
}

// detailMetric is a metric of a cgroup.
type detailMetric struct {
	*metric

	unit float64
	// timeless metrics have no time, because they are settings.
	timeless bool
	value    func(d *cgroup.Details) *uint64
}

// orZero returns a function that returns zero in place of an unknown value, as cAdvisor does for missing limits.
func orZero(value func(d *cgroup.Details) *uint64) func(*cgroup.Details) *uint64 {
	return func(d *cgroup.Details) *uint64 {
		if v := value(d); v != nil || d.Memory == nil {
			return v
		}
		return new(uint64)
	}
}

// processorMetrics are the metrics of a cgroup's processor time.
func processorMetrics() []detailMetric {
	count := func(name, help string, unit float64, value func(d *cgroup.Details) *uint64) detailMetric {
		return detailMetric{counter("container_cpu_"+name, help, labelsOf()...), unit, false, value}
	}
	spec := func(name, help string, value func(d *cgroup.Details) *uint64) detailMetric {
		return detailMetric{gauge("container_spec_cpu_"+name, help, labelsOf()...), 1, true, value}
	}
	return []detailMetric{
		count("user_seconds_total", "Cumulative user cpu time consumed in seconds.", seconds,
			func(d *cgroup.Details) *uint64 { return d.User }),
		count("system_seconds_total", "Cumulative system cpu time consumed in seconds.", seconds,
			func(d *cgroup.Details) *uint64 { return d.System }),
		count("cfs_periods_total", "Number of elapsed enforcement period intervals.", 1,
			func(d *cgroup.Details) *uint64 { return d.Periods }),
		count("cfs_throttled_periods_total", "Number of throttled period intervals.", 1,
			func(d *cgroup.Details) *uint64 { return d.ThrottledPeriods }),
		count("cfs_throttled_seconds_total", "Total time duration the container has been throttled.", seconds,
			func(d *cgroup.Details) *uint64 { return d.ThrottledTime }),
		count("cfs_burst_periods_total", "Number of periods when burst occurs.", 1,
			func(d *cgroup.Details) *uint64 { return d.BurstPeriods }),
		count("cfs_burst_seconds_total", "Total time duration the container has been bursted.", seconds,
			func(d *cgroup.Details) *uint64 { return d.BurstTime }),
		spec("period", "CPU period of the container.", func(d *cgroup.Details) *uint64 { return d.Period }),
		spec("quota", "CPU quota of the container.", func(d *cgroup.Details) *uint64 { return d.Quota }),
		spec("shares", "CPU share of the container.", func(d *cgroup.Details) *uint64 { return d.Shares }),
	}
}

// memoryMetrics are the metrics of a cgroup's memory.
func memoryMetrics() []detailMetric {
	size := func(name, help string, value func(d *cgroup.Details) *uint64) detailMetric {
		return detailMetric{gauge("container_memory_"+name, help, labelsOf()...), bytes, false, value}
	}
	limit := func(name, help string, value func(d *cgroup.Details) *uint64) detailMetric {
		return detailMetric{gauge("container_spec_memory_"+name, help, labelsOf()...), bytes, true, orZero(value)}
	}
	return []detailMetric{
		size("usage_bytes", "Current memory usage in bytes, including all memory regardless of when it was accessed",
			func(d *cgroup.Details) *uint64 { return d.Memory }),
		size("working_set_bytes", "Current working set in bytes.",
			func(d *cgroup.Details) *uint64 { return d.WorkingSet }),
		size("rss", "Size of RSS in bytes.", func(d *cgroup.Details) *uint64 { return d.RSS }),
		size("swap", "Container swap usage in bytes.", func(d *cgroup.Details) *uint64 { return d.Swap }),
		size("cache", "Number of bytes of page cache memory.", func(d *cgroup.Details) *uint64 { return d.Cache }),
		size("mapped_file", "Size of memory mapped files in bytes.",
			func(d *cgroup.Details) *uint64 { return d.MappedFile }),
		size("total_active_file_bytes", "Current total active file in bytes.",
			func(d *cgroup.Details) *uint64 { return d.ActiveFile }),
		size("total_inactive_file_bytes", "Current total inactive file in bytes.",
			func(d *cgroup.Details) *uint64 { return d.InactiveFile }),
		size("kernel_usage", "Size of kernel memory allocated in bytes.",
			func(d *cgroup.Details) *uint64 { return d.KernelMemory }),
		size("max_usage_bytes", "Maximum memory usage recorded in bytes",
			func(d *cgroup.Details) *uint64 { return d.MaxMemory }),
		{
			counter("container_memory_failcnt", "Number of memory usage hits limits", labelsOf()...), 1, false,
			func(d *cgroup.Details) *uint64 { return d.MemoryFailures },
		},
		{counter("container_oom_events_total", "Count of out of memory events observed for the container",
			labelsOf()...), 1, false, orZero(func(d *cgroup.Details) *uint64 { return d.OOM })},
		limit("limit_bytes", "Memory limit for the container.", func(d *cgroup.Details) *uint64 { return d.Limit }),
		limit("swap_limit_bytes", "Memory swap limit for the container.",
			func(d *cgroup.Details) *uint64 { return d.SwapLimit }),
		limit("reservation_limit_bytes", "Memory reservation limit for the container.",
			func(d *cgroup.Details) *uint64 { return d.Reservation }),
	}
}

// taskMetrics are the metrics of a cgroup's processes.
func taskMetrics() []detailMetric {
	number := func(name, help string, value func(d *cgroup.Details) *uint64) detailMetric {
		return detailMetric{gauge("container_"+name, help, labelsOf()...), 1, false, value}
	}
	return []detailMetric{
		number("processes", "Number of processes running inside the container.",
			func(d *cgroup.Details) *uint64 { return d.Members }),
		number("threads", "Number of threads running inside the container", orZero(
			func(d *cgroup.Details) *uint64 { return d.Threads })),
		number("threads_max", "Maximum number of threads allowed inside the container, infinity if value is zero",
			orZero(func(d *cgroup.Details) *uint64 { return d.ThreadsMax })),
	}
}

// pressureMetrics are the metrics of times that tasks waited, in microseconds.
func pressureMetrics() (all []detailMetric) {
	add := func(resource, name string, of func(*cgroup.Details) *cgroup.Pressure) {
		metricOf := func(kind, help string, total func(*cgroup.Pressure) *uint64) detailMetric {
			return detailMetric{
				counter("container_pressure_"+resource+"_"+kind+"_seconds_total", help, labelsOf()...), 1e6, false,
				func(d *cgroup.Details) *uint64 {
					if p := of(d); p != nil {
						return total(p)
					}
					return nil
				},
			}
		}
		all = append(all,
			metricOf("stalled", "Total time duration no tasks in the container could make progress due to "+name+
				" congestion.", func(p *cgroup.Pressure) *uint64 { return &p.Full.Total }),
			metricOf("waiting", "Total time duration tasks in the container have waited due to "+name+" congestion.",
				func(p *cgroup.Pressure) *uint64 { return &p.Some.Total }))
	}
	add("cpu", "CPU", func(d *cgroup.Details) *cgroup.Pressure { return d.CPUPressure })
	add("memory", "memory", func(d *cgroup.Details) *cgroup.Pressure { return d.MemoryPressure })
	add("io", "IO", func(d *cgroup.Details) *cgroup.Pressure { return d.IOPressure })
	return all
}

// groupMetrics are all metrics of a cgroup.
type groupMetrics struct {
	started, seen, processor, failures *metric

	details []detailMetric
	disks   []diskMetric
	network []deviceMetric
}

// diskMetric is a metric of a block device, and deviceMetric one of a network interface.
type (
	diskMetric struct {
		*metric
		value func(*cgroup.DiskIO) *uint64
	}
	deviceMetric struct {
		*metric
		value func(*device) *uint64
	}
)

// newGroupMetrics returns the metrics of cgroups. They are made once, because each description is validated.
func newGroupMetrics() *groupMetrics {
	return &groupMetrics{
		started: gauge("container_start_time_seconds", "Start time of the container since unix epoch in seconds.",
			labelsOf()...),
		seen: gauge("container_last_seen", "Last time a container was seen by the exporter", labelsOf()...),
		processor: counter("container_cpu_usage_seconds_total", "Cumulative cpu time consumed in seconds.",
			labelsOf("cpu")...),
		failures: counter("container_memory_failures_total", "Cumulative count of memory allocation failures.",
			labelsOf("failure_type", "scope")...),
		details: slices.Concat(processorMetrics(), memoryMetrics(), taskMetrics(), pressureMetrics()),
		disks:   diskMetrics(),
		network: networkMetrics(),
	}
}

// group sends the metrics of a cgroup.
func (e *exposition) group(metrics *groupMetrics, g *group, d *cgroup.Details, at metav1.Time) {
	e.sendFloat(metrics.started, metav1.Time{}, float64(g.started.Unix()), g.labels()...)
	e.sendFloat(metrics.seen, at, float64(at.Unix()), g.labels()...)
	e.send(metrics.processor, at, d.CPU, seconds, g.labels("total")...)
	for _, one := range metrics.details {
		when := at
		if one.timeless {
			when = metav1.Time{}
		}
		e.send(one.metric, when, one.value(d), one.unit, g.labels()...)
	}
	for _, scope := range []string{"container", "hierarchy"} {
		e.send(metrics.failures, at, d.PageFaults, 1, g.labels("pgfault", scope)...)
		e.send(metrics.failures, at, d.MajorPageFaults, 1, g.labels("pgmajfault", scope)...)
	}
	for i := range d.Disks {
		labels := g.labels(e.pathOf(d.Disks[i].Device))
		for _, m := range metrics.disks {
			e.send(m.metric, at, m.value(&d.Disks[i]), 1, labels...)
		}
	}
	for i := range g.devices {
		for _, m := range metrics.network {
			e.send(m.metric, at, m.value(&g.devices[i]), 1, g.labels(g.devices[i].name)...)
		}
	}
}

// diskMetrics are the metrics of a cgroup's transfers.
func diskMetrics() []diskMetric {
	count := func(name, help string, value func(*cgroup.DiskIO) *uint64) diskMetric {
		return diskMetric{counter("container_fs_"+name, "Cumulative count of "+help, labelsOf("device")...), value}
	}
	return []diskMetric{
		count("reads_bytes_total", "bytes read", func(d *cgroup.DiskIO) *uint64 { return &d.ReadBytes }),
		count("writes_bytes_total", "bytes written", func(d *cgroup.DiskIO) *uint64 { return &d.WrittenBytes }),
		count("reads_total", "reads completed", func(d *cgroup.DiskIO) *uint64 { return &d.Reads }),
		count("writes_total", "writes completed", func(d *cgroup.DiskIO) *uint64 { return &d.Writes }),
	}
}

// networkMetrics are the metrics of network interfaces.
func networkMetrics() []deviceMetric {
	count := func(name, help string, value func(*device) *uint64) deviceMetric {
		m := counter("container_network_"+name, "Cumulative count of "+help, labelsOf("interface")...)
		return deviceMetric{m, value}
	}
	return []deviceMetric{
		count("receive_bytes_total", "bytes received", func(d *device) *uint64 { return &d.rx.bytes }),
		count("receive_packets_total", "packets received", func(d *device) *uint64 { return &d.rx.packets }),
		count("receive_packets_dropped_total", "packets dropped while receiving",
			func(d *device) *uint64 { return &d.rx.dropped }),
		count("receive_errors_total", "errors encountered while receiving",
			func(d *device) *uint64 { return &d.rx.errors }),
		count("transmit_bytes_total", "bytes transmitted", func(d *device) *uint64 { return &d.tx.bytes }),
		count("transmit_packets_total", "packets transmitted", func(d *device) *uint64 { return &d.tx.packets }),
		count("transmit_packets_dropped_total", "packets dropped while transmitting",
			func(d *device) *uint64 { return &d.tx.dropped }),
		count("transmit_errors_total", "errors encountered while transmitting",
			func(d *device) *uint64 { return &d.tx.errors }),
	}
}

// pathOf returns the path of a block device. Many cgroups use the same one, so it is looked up once.
func (e *exposition) pathOf(number string) string {
	path, known := e.disks[number]
	if !known {
		path = deviceOf(number)
		e.disks[number] = path
	}
	return path
}

// deviceOf returns the path of a block device with a number such as 254:0; empty if it is not known.
func deviceOf(number string) string {
	// Without this file, the path is not known.
	text, _ := os.ReadFile(filepath.Join("/sys/dev/block", filepath.Base(number), "uevent"))
	for line := range strings.Lines(string(text)) {
		if name, found := strings.CutPrefix(strings.TrimSpace(line), "DEVNAME="); found {
			return "/dev/" + name
		}
	}
	return ""
}
