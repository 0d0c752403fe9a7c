package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/podctl/podctl/runtime/model"
)

// Probed records a probe result. As in a kubelet, failures are counted and not timed (worker.doProbe).
func (m *Metrics) Probed(
	pod model.PodRef, container string, t model.ProbeType, verdict model.ProbeResult, took time.Duration,
) {
	result := map[model.ProbeResult]string{
		model.ProbeSuccess: "successful",
		model.ProbeFailure: "failed",
		model.ProbeUnknown: "unknown",
	}[verdict]
	m.probes.WithLabelValues(t.Title(), result, container, pod.Name, pod.Namespace, string(pod.UID)).Inc()
	if verdict != model.ProbeFailure {
		m.probeTimes.WithLabelValues(t.Title(), container, pod.Name, pod.Namespace).Observe(took.Seconds())
	}
}

// Forget drops the metrics of a pod that is gone.
func (m *Metrics) Forget(pod model.PodRef) {
	m.probes.DeletePartialMatch(prometheus.Labels{"pod_uid": string(pod.UID)})
	m.probeTimes.DeletePartialMatch(prometheus.Labels{"pod": pod.Name, "namespace": pod.Namespace})
}
