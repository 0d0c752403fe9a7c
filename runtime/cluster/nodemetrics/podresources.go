package nodemetrics

import "github.com/prometheus/client_golang/prometheus"

// podResourcesMetrics are the metrics of requests to the PodResources API (kubelet: pkg/kubelet/apis/podresources).
type podResourcesMetrics struct {
	total *prometheus.CounterVec
	// requests and errors count the requests of version v1 by method.
	requests, errors map[string]*prometheus.CounterVec
}

func newPodResourcesMetrics(registry *prometheus.Registry) podResourcesMetrics {
	counter := func(name, help string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubelet_pod_resources_endpoint_" + name, Help: help,
		}, []string{"server_api_version"})
		registry.MustRegister(c)
		return c
	}
	p := podResourcesMetrics{
		total:    counter("requests_total", "Number of requests to the PodResources API."),
		requests: map[string]*prometheus.CounterVec{}, errors: map[string]*prometheus.CounterVec{},
	}
	for method, name := range map[string]string{
		"List": "list", "Get": "get", "GetAllocatableResources": "get_allocatable",
	} {
		p.requests[method] = counter("requests_"+name, "Number of requests to the PodResources method "+method+".")
		p.errors[method] = counter("errors_"+name, "Number of failed requests to the PodResources method "+method+".")
	}
	return p
}

// PodResourcesServed counts a response of the PodResources API: the version of the API, the method and the error.
func (m *Metrics) PodResourcesServed(version, method string, err error) {
	p := m.podResources
	p.total.WithLabelValues(version).Inc()
	if version != "v1" || p.requests[method] == nil {
		return
	}
	p.requests[method].WithLabelValues(version).Inc()
	if err != nil {
		p.errors[method].WithLabelValues(version).Inc()
	}
}
