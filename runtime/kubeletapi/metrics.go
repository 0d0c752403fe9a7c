package kubeletapi

import (
	"context"
	"net/http"
	"strings"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Measures serves what the node, its pods and containers use. *stats.Meter implements it.
type Measures interface {
	// Summary returns the document of /stats/summary, and CPUAndMemory the same without the files of pods. They must
	// not be changed.
	Summary(ctx context.Context) (*statsapi.Summary, error)
	CPUAndMemory(ctx context.Context) (*statsapi.Summary, error)
	// ResourceMetrics and ContainerMetrics serve /metrics/resource and /metrics/cadvisor.
	ResourceMetrics() http.Handler
	ContainerMetrics() http.Handler
}

// Metrics serves the metrics of the agent and of the node.
type Metrics interface {
	// OthersHandler serves /metrics, and ProbesHandler serves /metrics/probes.
	OthersHandler() http.Handler
	ProbesHandler() http.Handler
	// RequestBegun counts a request by its labels. The result must be called at the end of the request. The labels have
	// a limited number of values. serverType is readwrite, or readonly for the port without access control.
	RequestBegun(method, path, serverType string, longRunning bool) (ended func())
}

// bucketsOf returns the method and the first part of the path of a request, or the first two below /metrics. Those that
// a kubelet does not serve are "other" (kubelet: getMetricMethodBucket, getMetricBucket).
func bucketsOf(r *http.Request) (method, path string) {
	const other = "other"
	method = other
	switch r.Method {
	case http.MethodOptions, http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete,
		http.MethodTrace, http.MethodConnect:
		method = r.Method
	}
	parts := strings.SplitN(strings.TrimPrefix(r.URL.Path, "/"), "/", 3)
	path = parts[0]
	if path == "metrics" && len(parts) > 1 {
		path += "/" + parts[1]
	}
	switch path {
	case "healthz", "pods", "stats", "metrics", "metrics/cadvisor", "metrics/probes", "metrics/resource", "run", "exec",
		"attach", "portForward", "containerLogs", "configz", "runningpods", "checkpoint", "pprof", "logs", "debug":
		return method, path
	}
	return method, other
}

// isLongRunning reports whether the requests of a path count as streams. A kubelet does not count portForward (kubelet:
// isLongRunningRequest).
func isLongRunning(path string) bool { return path == "exec" || path == "attach" || path == "debug" }

// counted returns a handler that counts its requests.
func (s *Server) counted(h http.Handler, serverType string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method, path := bucketsOf(r)
		defer s.Metrics.RequestBegun(method, path, serverType, isLongRunning(path))()
		h.ServeHTTP(w, r)
	})
}

// measureRoutes adds the paths of metrics and statistics.
func (s *Server) measureRoutes(mux *http.ServeMux) {
	for path, h := range map[string]http.Handler{
		"/metrics": s.Metrics.OthersHandler(), "/metrics/{$}": s.Metrics.OthersHandler(),
		"/metrics/probes":   s.Metrics.ProbesHandler(),
		"/metrics/resource": s.Measures.ResourceMetrics(), "/metrics/cadvisor": s.Measures.ContainerMetrics(),
	} {
		mux.Handle("GET "+path, timed(h))
	}
	mux.HandleFunc("GET /stats/summary", writeErrors(s.serveSummary))
}

// timed limits the time that a client may take to read a response. It begins with the first byte, because measuring
// takes some before.
func timed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(&timedWriter{ResponseWriter: w}, r)
	})
}

type timedWriter struct {
	http.ResponseWriter
	begun bool
}

// Write writes a part of the response.
func (w *timedWriter) Write(p []byte) (int, error) {
	if !w.begun {
		w.begun = true
		beginReading(w.ResponseWriter)
	}
	return w.ResponseWriter.Write(p)
}

// serveSummary serves the summary. only_cpu_and_memory leaves out all that is slow to measure (kubelet:
// GetCPUAndMemoryStats).
func (s *Server) serveSummary(w http.ResponseWriter, r *http.Request) error {
	if r.URL.Query().Get("only_cpu_and_memory") != "true" {
		summary, err := s.Measures.Summary(r.Context())
		if err != nil {
			return err
		}
		return writeJSON(w, summary)
	}
	summary, err := s.Measures.CPUAndMemory(r.Context())
	if err != nil {
		return err
	}
	return writeJSON(w, onlyCPUAndMemory(summary))
}

// onlyCPUAndMemory returns a part of a summary (kubelet: GetCPUAndMemoryStats).
func onlyCPUAndMemory(s *statsapi.Summary) *statsapi.Summary {
	short := &statsapi.Summary{Node: statsapi.NodeStats{
		NodeName: s.Node.NodeName, StartTime: s.Node.StartTime, SystemContainers: s.Node.SystemContainers,
		CPU: s.Node.CPU, Memory: s.Node.Memory, Swap: s.Node.Swap,
	}}
	for i := range s.Pods {
		pod := &s.Pods[i]
		part := statsapi.PodStats{
			PodRef: pod.PodRef, StartTime: pod.StartTime, CPU: pod.CPU, Memory: pod.Memory, Swap: pod.Swap,
		}
		for j := range pod.Containers {
			one := pod.Containers[j]
			one.Rootfs, one.Logs = nil, nil
			part.Containers = append(part.Containers, one)
		}
		short.Pods = append(short.Pods, part)
	}
	return short
}
