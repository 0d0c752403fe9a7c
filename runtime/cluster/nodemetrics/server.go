package nodemetrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// serverMetrics are the metrics of requests to the node's server (kubelet: pkg/kubelet/server/metrics).
type serverMetrics struct {
	total     *prometheus.CounterVec
	inflight  *prometheus.GaugeVec
	durations *prometheus.HistogramVec
}

func newServerMetrics(registry *prometheus.Registry) serverMetrics {
	labels := []string{"method", "path", "server_type", "long_running"}
	s := serverMetrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubelet_http_requests_total", Help: "Number of requests to the node's server, also of refused ones.",
		}, labels),
		inflight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kubelet_http_inflight_requests", Help: "Number of requests in progress to the node's server.",
		}, labels),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "kubelet_http_requests_duration_seconds",
			Help:    "Duration of requests to the node's server in seconds.",
			Buckets: prometheus.DefBuckets,
		}, labels),
	}
	registry.MustRegister(s.total, s.inflight, s.durations)
	return s
}

// RequestBegun counts a request to the node's server by its labels. The caller limits the number of their values, and
// calls the result at the end of the request.
func (m *Metrics) RequestBegun(method, path, serverType string, longRunning bool) (ended func()) {
	labels, begun := []string{method, path, serverType, strconv.FormatBool(longRunning)}, m.Now()
	m.server.total.WithLabelValues(labels...).Inc()
	m.server.inflight.WithLabelValues(labels...).Inc()
	return func() {
		m.server.inflight.WithLabelValues(labels...).Dec()
		m.server.durations.WithLabelValues(labels...).Observe(m.Now().Sub(begun).Seconds())
	}
}
