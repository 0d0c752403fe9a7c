package nodemetrics

import (
	"context"
	"path"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
)

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

// CountPodResources answers a request to the PodResources API, and counts it. It is an interceptor for a gRPC server.
func (m *Metrics) CountPodResources(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, answer grpc.UnaryHandler,
) (any, error) {
	response, err := answer(ctx, request)
	service, method := path.Split(info.FullMethod)
	version, _, _ := strings.Cut(strings.Trim(service, "/"), ".")
	m.podResources.total.WithLabelValues(version).Inc()
	if version != "v1" || m.podResources.requests[method] == nil {
		return response, err
	}
	m.podResources.requests[method].WithLabelValues(version).Inc()
	if err != nil {
		m.podResources.errors[method].WithLabelValues(version).Inc()
	}
	return response, err
}
