package stats

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// ResourceMetrics serves the metrics that metrics-server reads (kubelet: /metrics/resource). Values have the time of
// their measurement.
func (m *Meter) ResourceMetrics() http.Handler {
	return m.handler(usage, (*exposition).resources, func(e *exposition) { e.fail("resource") })
}

// handler serves the metrics of a measurement. Without one, it serves only that there was an error.
func (m *Meter) handler(wanted extent, do func(*exposition, *measurement), fail func(*exposition)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now, err := m.measured(r.Context(), wanted)
		registry := prometheus.NewRegistry()
		registry.MustRegister(collector(func(ch chan<- prometheus.Metric) {
			if e := (&exposition{ch, map[string]string{}}); err != nil {
				fail(e)
			} else {
				do(e, now)
			}
		}))
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}).ServeHTTP(w, r)
	})
}

// collector makes metrics on request.
type collector func(ch chan<- prometheus.Metric)

// Describe describes nothing: the metrics depend on the pods.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect makes the metrics.
func (c collector) Collect(ch chan<- prometheus.Metric) { c(ch) }

// exposition sends metrics.
type exposition struct {
	ch chan<- prometheus.Metric
	// disks are the paths of block devices, by their numbers.
	disks map[string]string
}

// metric describes a metric.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// send sends a value; none if it is not known. at is the time of its measurement; zero if it has none.
func (e *exposition) send(m *metric, at metav1.Time, value *uint64, unit float64, labels ...string) {
	if value == nil {
		return
	}
	e.sendFloat(m, at, float64(*value)/unit, labels...)
}

func (e *exposition) sendFloat(m *metric, at metav1.Time, value float64, labels ...string) {
	one := prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
	if !at.IsZero() {
		one = prometheus.NewMetricWithTimestamp(at.Time, one)
	}
	e.ch <- one
}

// seconds and bytes are units of values.
const (
	seconds = float64(time.Second)
	bytes   = 1.0
)

func counter(name, help string, labels ...string) *metric {
	return &metric{prometheus.NewDesc(name, help, labels, nil), prometheus.CounterValue}
}

func gauge(name, help string, labels ...string) *metric {
	return &metric{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue}
}

// fail reports that nothing could be measured.
func (e *exposition) fail(subject string) { e.sendFloat(scrapeError(subject), metav1.Time{}, 1) }

func scrapeError(subject string) *metric {
	return gauge(subject+"_scrape_error", "1 if there was an error while getting container metrics, 0 otherwise")
}

// resources makes the metrics of /metrics/resource (kubelet: resourceMetricsCollector).
func (e *exposition) resources(now *measurement) {
	s := now.summary
	e.usage(subjectOf("node"), s.Node.CPU, s.Node.Memory, s.Node.Swap)
	names := []string{"container", "pod", "namespace"}
	start := gauge("container_start_time_seconds", "Start time of the container since unix epoch in seconds", names...)
	limit := gauge("container_swap_limit_bytes",
		"Current amount of the container swap limit in bytes. Reported only on non-windows systems", names...)
	container, whole := subjectOf("container", names...), subjectOf("pod", names[1:]...)
	for i := range s.Pods {
		pod := &s.Pods[i]
		for j := range pod.Containers {
			one := &pod.Containers[j]
			labels := []string{one.Name, pod.PodRef.Name, pod.PodRef.Namespace}
			e.sendFloat(start, metav1.Time{}, float64(one.StartTime.UnixNano())/seconds, labels...)
			e.usage(container, one.CPU, one.Memory, one.Swap, labels...)
			if one.Swap != nil && one.Swap.SwapAvailableBytes != nil {
				whole := *one.Swap.SwapAvailableBytes + *one.Swap.SwapUsageBytes
				e.send(limit, one.Swap.Time, &whole, bytes, labels...)
			}
		}
		e.usage(whole, pod.CPU, pod.Memory, pod.Swap, pod.PodRef.Name, pod.PodRef.Namespace)
	}
	e.sendFloat(scrapeError("resource"), metav1.Time{}, 0)
}

// subject has the metrics of the node, of pods or of containers.
type subject struct{ cpu, memory, swap *metric }

// subjectOf returns the metrics whose names begin with that of their subject.
func subjectOf(name string, labels ...string) *subject {
	return &subject{
		cpu: counter(name+"_cpu_usage_seconds_total",
			"Cumulative cpu time consumed by the "+name+" in core-seconds", labels...),
		memory: gauge(name+"_memory_working_set_bytes", "Current working set of the "+name+" in bytes", labels...),
		swap:   gauge(name+"_swap_usage_bytes", "Current amount of the "+name+" swap usage in bytes", labels...),
	}
}

// usage sends the three metrics of a subject.
func (e *exposition) usage(
	of *subject, cpu *statsapi.CPUStats, memory *statsapi.MemoryStats, swap *statsapi.SwapStats, labels ...string,
) {
	if cpu != nil {
		e.send(of.cpu, cpu.Time, cpu.UsageCoreNanoSeconds, seconds, labels...)
	}
	if memory != nil {
		e.send(of.memory, memory.Time, memory.WorkingSetBytes, bytes, labels...)
	}
	if swap != nil {
		e.send(of.swap, swap.Time, swap.SwapUsageBytes, bytes, labels...)
	}
}
