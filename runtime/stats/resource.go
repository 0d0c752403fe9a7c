package stats

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// ResourceMetrics serves the metrics that metrics-server reads (kubelet: /metrics/resource). Values have the time of
// their measurement.
func (m *Meter) ResourceMetrics() http.Handler { return m.handler(m.collectResources) }

// handler serves the metrics that a function makes from a measurement.
func (m *Meter) handler(collect func(e *exposition, s *statsapi.Summary, images map[sample]containerImage)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		registry := prometheus.NewRegistry()
		registry.MustRegister(collector(func(ch chan<- prometheus.Metric) {
			m.expose(r.Context(), &exposition{ch}, collect)
		}))
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}).ServeHTTP(w, r)
	})
}

func (m *Meter) expose(
	ctx context.Context, e *exposition, collect func(*exposition, *statsapi.Summary, map[sample]containerImage),
) {
	s, images, err := m.measured(ctx)
	if err != nil {
		e.fail()
		return
	}
	collect(e, s, images)
}

// collector makes metrics on request.
type collector func(ch chan<- prometheus.Metric)

// Describe describes nothing: the metrics depend on the pods.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect makes the metrics.
func (c collector) Collect(ch chan<- prometheus.Metric) { c(ch) }

// exposition sends metrics.
type exposition struct{ ch chan<- prometheus.Metric }

// metric describes a metric.
type metric struct {
	name, help string
	kind       prometheus.ValueType
	labels     []string
}

// send sends a value; none if it is not known. at is the time of its measurement; zero if it has none.
func (e *exposition) send(m *metric, at metav1.Time, value *uint64, unit float64, labels ...string) {
	if value == nil {
		return
	}
	e.sendFloat(m, at, float64(*value)/unit, labels...)
}

func (e *exposition) sendFloat(m *metric, at metav1.Time, value float64, labels ...string) {
	desc := prometheus.NewDesc(m.name, m.help, m.labels, nil)
	one := prometheus.MustNewConstMetric(desc, m.kind, value, labels...)
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
	return &metric{name, help, prometheus.CounterValue, labels}
}

func gauge(name, help string, labels ...string) *metric {
	return &metric{name, help, prometheus.GaugeValue, labels}
}

// fail reports that nothing could be measured.
func (e *exposition) fail() { e.sendFloat(scrapeError(), metav1.Time{}, 1) }

func scrapeError() *metric {
	return gauge("resource_scrape_error", "1 if there was an error while getting container metrics, 0 otherwise")
}

// collectResources makes the metrics of /metrics/resource (kubelet: resourceMetricsCollector).
func (*Meter) collectResources(e *exposition, s *statsapi.Summary, _ map[sample]containerImage) {
	e.usage("node", "the node", nil, s.Node.CPU, s.Node.Memory, s.Node.Swap)
	start := gauge("container_start_time_seconds", "Start time of the container since unix epoch in seconds",
		"container", "pod", "namespace")
	for i := range s.Pods {
		pod := &s.Pods[i]
		for j := range pod.Containers {
			one := &pod.Containers[j]
			labels := []string{one.Name, pod.PodRef.Name, pod.PodRef.Namespace}
			e.sendFloat(start, metav1.Time{}, float64(one.StartTime.UnixNano())/seconds, labels...)
			e.usage("container", "the container", []string{"container", "pod", "namespace"},
				one.CPU, one.Memory, one.Swap, labels...)
		}
		e.usage("pod", "the pod", []string{"pod", "namespace"}, pod.CPU, pod.Memory, pod.Swap,
			pod.PodRef.Name, pod.PodRef.Namespace)
	}
	e.sendFloat(scrapeError(), metav1.Time{}, 0)
}

// usage makes the three metrics of the node, of a pod or of a container.
func (e *exposition) usage(
	kind, of string, names []string,
	cpu *statsapi.CPUStats, memory *statsapi.MemoryStats, swap *statsapi.SwapStats, labels ...string,
) {
	if cpu != nil {
		e.send(counter(kind+"_cpu_usage_seconds_total", "Cumulative cpu time consumed by "+of+" in core-seconds", names...),
			cpu.Time, cpu.UsageCoreNanoSeconds, seconds, labels...)
	}
	if memory != nil {
		e.send(gauge(kind+"_memory_working_set_bytes", "Current working set of "+of+" in bytes", names...),
			memory.Time, memory.WorkingSetBytes, bytes, labels...)
	}
	if swap != nil {
		e.send(gauge(kind+"_swap_usage_bytes", "Current amount of the swap usage of "+of+" in bytes", names...),
			swap.Time, swap.SwapUsageBytes, bytes, labels...)
	}
}
