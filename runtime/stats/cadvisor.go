package stats

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// ContainerMetrics serves the metrics of cAdvisor that dashboards use, with its names and labels (kubelet:
// /metrics/cadvisor). A metric of a whole pod has no container.
func (m *Meter) ContainerMetrics() http.Handler { return m.handler(m.collectContainers) }

// labelsOf are the labels of cAdvisor for a container, as a kubelet sets them (containerPrometheusLabelsFunc).
func labelsOf() []string { return []string{"container", "id", "image", "name", "namespace", "pod"} }

// collectContainers makes the metrics of /metrics/cadvisor.
func (m *Meter) collectContainers(e *exposition, s *statsapi.Summary, images map[sample]containerImage) {
	hardware := m.Node()
	e.send(gauge("machine_memory_bytes", "Amount of memory installed on the machine."),
		metav1.Time{}, memoryCapacity(hardware), bytes)
	start := gauge("container_start_time_seconds", "Start time of the container since unix epoch in seconds.",
		labelsOf()...)
	disk := gauge("container_fs_usage_bytes", "Number of bytes that are consumed by the container on this filesystem.",
		labelsOf()...)
	e.container(s.Node.CPU, s.Node.Memory, s.Node.Swap, "", "/", "", "", "", "")
	for i := range s.Pods {
		pod := &s.Pods[i]
		name, namespace := pod.PodRef.Name, pod.PodRef.Namespace
		e.container(pod.CPU, pod.Memory, pod.Swap, "", "pod"+pod.PodRef.UID, "", "", namespace, name)
		e.network(pod)
		for j := range pod.Containers {
			one := &pod.Containers[j]
			image := images[sample{uid: pod.PodRef.UID, container: one.Name}]
			labels := []string{one.Name, image.id, image.image, image.id, namespace, name}
			e.container(one.CPU, one.Memory, one.Swap, labels...)
			e.sendFloat(start, metav1.Time{}, float64(one.StartTime.UnixNano())/seconds, labels...)
			if one.Rootfs != nil {
				e.send(disk, one.Rootfs.Time, one.Rootfs.UsedBytes, bytes, labels...)
			}
		}
	}
}

// container makes the metrics of processor and memory.
func (e *exposition) container(
	cpu *statsapi.CPUStats, memory *statsapi.MemoryStats, swap *statsapi.SwapStats, labels ...string,
) {
	if cpu != nil {
		e.send(counter("container_cpu_usage_seconds_total", "Cumulative cpu time consumed in seconds.", labelsOf()...),
			cpu.Time, cpu.UsageCoreNanoSeconds, seconds, labels...)
	}
	if memory != nil {
		for _, one := range []struct {
			name, help string
			value      *uint64
		}{
			{"container_memory_usage_bytes", "Current memory usage in bytes, including all memory.", memory.UsageBytes},
			{"container_memory_working_set_bytes", "Current working set in bytes.", memory.WorkingSetBytes},
			{"container_memory_rss", "Size of RSS in bytes.", memory.RSSBytes},
		} {
			e.send(gauge(one.name, one.help, labelsOf()...), memory.Time, one.value, bytes, labels...)
		}
	}
	if swap != nil {
		e.send(gauge("container_memory_swap", "Container swap usage in bytes.", labelsOf()...),
			swap.Time, swap.SwapUsageBytes, bytes, labels...)
	}
}

// network makes the metrics of a pod's network.
func (e *exposition) network(pod *statsapi.PodStats) {
	if pod.Network == nil {
		return
	}
	names := append(labelsOf(), "interface")
	for i := range pod.Network.Interfaces {
		one := &pod.Network.Interfaces[i]
		for _, metric := range []struct {
			name, help string
			value      *uint64
		}{
			{"container_network_receive_bytes_total", "Cumulative count of bytes received", one.RxBytes},
			{"container_network_receive_errors_total", "Cumulative count of errors while receiving", one.RxErrors},
			{"container_network_transmit_bytes_total", "Cumulative count of bytes transmitted", one.TxBytes},
			{"container_network_transmit_errors_total", "Cumulative count of errors while transmitting", one.TxErrors},
		} {
			e.send(counter(metric.name, metric.help, names...), pod.Network.Time, metric.value, bytes,
				"", "pod"+pod.PodRef.UID, "", "", pod.PodRef.Namespace, pod.PodRef.Name, one.Name)
		}
	}
}
