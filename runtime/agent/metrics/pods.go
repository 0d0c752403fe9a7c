package metrics

import (
	"context"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
)

// Pods lists the pods of the agent with their status.
type Pods func(context.Context) (*v1.PodList, error)

// podStates exports the status of pods and containers under the names and labels of kube-state-metrics, so that its
// dashboards and alerts fit.
type podStates struct {
	pods Pods

	phase, ready              *prometheus.Desc
	containerReady, restarts  *prometheus.Desc
	initReady, initRestarts   *prometheus.Desc
	waitingReason, terminated *prometheus.Desc
}

// ShowPods adds the status of pods. Call it once, before the metrics are read.
func (m *Metrics) ShowPods(pods Pods) { m.registry.MustRegister(newPodStates(pods)) }

// ShowMirrors adds the number of mirror pods of a node, which count returns each time the metrics are read.
func (m *Metrics) ShowMirrors(count func() int) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Subsystem: kubelet, Name: "mirror_pods", Help: "The number of mirror pods of the node in the API server.",
	}, func() float64 { return float64(count()) }))
}

func newPodStates(pods Pods) *podStates {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("kube_pod_"+name, help, append([]string{"namespace", "pod", "uid"}, labels...), nil)
	}
	return &podStates{
		pods:  pods,
		phase: desc("status_phase", "The pods current phase.", "phase"),
		ready: desc("status_ready", "Describes whether the pod is ready to serve requests.", "condition"),
		containerReady: desc("container_status_ready",
			"Describes whether the containers readiness check succeeded.", "container"),
		restarts: desc("container_status_restarts_total",
			"The number of container restarts per container.", "container"),
		initReady: desc("init_container_status_ready",
			"Describes whether the init containers readiness check succeeded.", "container"),
		initRestarts: desc("init_container_status_restarts_total",
			"The number of restarts for the init container.", "container"),
		waitingReason: desc("container_status_waiting_reason",
			"Describes the reason the container is currently in waiting state.", "container", "reason"),
		terminated: desc("container_status_last_terminated_reason",
			"Describes the last reason the container was in terminated state.", "container", "reason"),
	}
}

// Describe sends the descriptions of the metrics.
func (s *podStates) Describe(to chan<- *prometheus.Desc) {
	for _, one := range []*prometheus.Desc{
		s.phase, s.ready, s.containerReady, s.restarts, s.initReady, s.initRestarts, s.waitingReason, s.terminated,
	} {
		to <- one
	}
}

// Collect sends the values of the metrics. It sends none if pods cannot be listed.
func (s *podStates) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
	defer cancel()
	list, err := s.pods(ctx)
	if err != nil || list == nil {
		return
	}
	for i := range list.Items {
		s.collect(&list.Items[i], to)
	}
}

func (s *podStates) collect(pod *v1.Pod, to chan<- prometheus.Metric) {
	send := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		labels = append([]string{pod.Namespace, pod.Name, string(pod.UID)}, labels...)
		to <- prometheus.MustNewConstMetric(desc, kind, value, labels...)
	}
	one := map[bool]float64{true: 1}
	for _, phase := range []v1.PodPhase{v1.PodPending, v1.PodRunning, v1.PodSucceeded, v1.PodFailed, v1.PodUnknown} {
		send(s.phase, prometheus.GaugeValue, one[pod.Status.Phase == phase], string(phase))
	}
	at := slices.IndexFunc(pod.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodReady })
	for label, status := range map[string]v1.ConditionStatus{
		"true":    v1.ConditionTrue,
		"false":   v1.ConditionFalse,
		"unknown": v1.ConditionUnknown,
	} {
		if at >= 0 {
			send(s.ready, prometheus.GaugeValue, one[pod.Status.Conditions[at].Status == status], label)
		}
	}
	for i := range pod.Status.InitContainerStatuses {
		c := &pod.Status.InitContainerStatuses[i]
		send(s.initReady, prometheus.GaugeValue, one[c.Ready], c.Name)
		send(s.initRestarts, prometheus.CounterValue, float64(c.RestartCount), c.Name)
	}
	for i := range pod.Status.ContainerStatuses {
		c := &pod.Status.ContainerStatuses[i]
		send(s.containerReady, prometheus.GaugeValue, one[c.Ready], c.Name)
		send(s.restarts, prometheus.CounterValue, float64(c.RestartCount), c.Name)
		if c.State.Waiting != nil && c.State.Waiting.Reason != "" {
			send(s.waitingReason, prometheus.GaugeValue, 1, c.Name, c.State.Waiting.Reason)
		}
		if last := c.LastTerminationState.Terminated; last != nil && last.Reason != "" {
			send(s.terminated, prometheus.GaugeValue, 1, c.Name, last.Reason)
		}
	}
}
