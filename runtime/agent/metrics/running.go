package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// CountFunc counts the pods that have a running sandbox, and containers by their state: created, running, exited or
// unknown.
type CountFunc func(context.Context) (pods int, containers map[string]int, err error)

// countTimeout limits a query of the runtime.
const countTimeout = 5 * time.Second

// running queries the runtime whenever the metrics are read, because recorded values could be wrong.
type running struct {
	count            CountFunc
	pods, containers *prometheus.Desc
}

func newRunning(count CountFunc) *running {
	return &running{
		count: count,
		pods:  prometheus.NewDesc("kubelet_running_pods", "Number of pods that have a running pod sandbox", nil, nil),
		containers: prometheus.NewDesc("kubelet_running_containers",
			"Number of containers currently running", []string{"container_state"}, nil),
	}
}

// Describe sends the descriptions of the metrics.
func (r *running) Describe(to chan<- *prometheus.Desc) { to <- r.pods; to <- r.containers }

// Collect sends the values of the metrics. It sends none if the runtime does not answer.
func (r *running) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
	defer cancel()
	pods, containers, err := r.count(ctx)
	if err != nil {
		return
	}
	to <- prometheus.MustNewConstMetric(r.pods, prometheus.GaugeValue, float64(pods))
	for state, n := range containers {
		to <- prometheus.MustNewConstMetric(r.containers, prometheus.GaugeValue, float64(n), state)
	}
}
