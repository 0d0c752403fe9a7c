package nodemetrics

import (
	"context"
	"math"
	"net/http"
	"net/url"
	goruntime "runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/tools/metrics"
)

// Settings configure the metrics of a node. Every field is required.
type Settings struct {
	// Node is the name of the Node, and Version the version of Kubernetes that the node reports.
	Node, Version string
	// Start returns the times of the node's start.
	Start func() Start
	// ClientExpiry and ServerExpiry return when the client certificate and the serving certificate expire. They are nil
	// if podctl does not replace that certificate, and return zero without a certificate.
	ClientExpiry, ServerExpiry func() time.Time
	Now                        func() time.Time
}

// Start has the times of a node's start. Those that are not reached yet are zero.
type Start struct{ Booted, Begun, Connected, Registered, Ready time.Time }

// Metrics are the metrics of a node. It is safe for concurrent use.
type Metrics struct {
	Settings
	registry *prometheus.Registry

	requests  *prometheus.CounterVec
	latencies *prometheus.HistogramVec
	statuses  prometheus.Histogram
	reviews   map[Review]reviewMetrics
	volumes   *prometheus.HistogramVec
	server    serverMetrics

	podResources podResourcesMetrics
}

// Review is a kind of question about a client of the node's server.
type Review string

// The kinds of reviews: about a token, and about a permission.
const (
	Token      Review = "authn"
	Permission Review = "authz"
)

// reviewMetrics are the metrics of one kind of review.
type reviewMetrics struct {
	total   *prometheus.CounterVec
	latency *prometheus.HistogramVec
}

// New returns metrics without values.
func New(s Settings) *Metrics {
	m := &Metrics{
		Settings: s, registry: prometheus.NewRegistry(), reviews: map[Review]reviewMetrics{},
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rest_client_requests_total",
			Help: "Number of HTTP requests, partitioned by status code, method, and host.",
		}, []string{"code", "method", "host"}),
		latencies: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "rest_client_request_duration_seconds",
			Help:    "Request latency in seconds. Broken down by verb, and host.",
			Buckets: []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0},
		}, []string{"verb", "host"}),
		statuses: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "kubelet_pod_status_sync_duration_seconds",
			Help: "Duration in seconds from the detection of a change of a pod's status until the API has it.",
			Buckets: []float64{
				0.010, 0.050, 0.100, 0.500, 1, 5, 10, 20, 30, 45, 60,
			},
		}),
		volumes: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "storage_operation_duration_seconds", Help: "Storage operation duration",
			Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600},
		}, []string{"volume_plugin", "operation_name", "status", "migrated"}),
	}
	for _, kind := range []Review{Token, Permission} {
		name := "apiserver_delegated_" + string(kind) + "_request_"
		m.reviews[kind] = reviewMetrics{
			prometheus.NewCounterVec(prometheus.CounterOpts{
				Name: name + "total", Help: "Number of HTTP requests partitioned by status code.",
			}, []string{"code"}),
			prometheus.NewHistogramVec(prometheus.HistogramOpts{
				Name: name + "duration_seconds", Help: "Request latency in seconds. Broken down by status code.",
				Buckets: []float64{0.25, 0.5, 0.7, 1, 1.5, 3, 5, 10},
			}, []string{"code"}),
		}
		m.registry.MustRegister(m.reviews[kind].total, m.reviews[kind].latency)
	}
	m.registry.MustRegister(m.requests, m.latencies, m.statuses, m.volumes)
	m.addNode()
	m.addCertificates()
	m.server, m.podResources = newServerMetrics(m.registry), newPodResourcesMetrics(m.registry)
	return m
}

// gauge adds a gauge whose value is read with each page.
func (m *Metrics) gauge(name, help string, labels prometheus.Labels, value func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, value))
}

// addNode adds the metrics of the Node and of its start.
func (m *Metrics) addNode() {
	one := func() float64 { return 1 }
	m.gauge("kubelet_node_name", "The node's name. The count is always 1.", prometheus.Labels{"node": m.Node}, one)
	m.gauge("kubernetes_build_info", "A metric with a constant '1' value labeled by the versions of a program.",
		prometheus.Labels{
			"git_version": m.Version, "go_version": goruntime.Version(), "compiler": goruntime.Compiler,
			"platform": goruntime.GOOS + "/" + goruntime.GOARCH,
		}, one)
	for name, part := range map[string]struct {
		help     string
		from, to func(Start) time.Time
	}{
		"pre_kubelet_":       {"before kubelet starts", booted, begun},
		"pre_registration_":  {"before registration", begun, connected},
		"registration_":      {"during registration", connected, registered},
		"post_registration_": {"after registration", registered, ready},
		"":                   {"in total", booted, ready},
	} {
		help := "Duration in seconds of node startup " + part.help + "."
		m.gauge("kubelet_node_startup_"+name+"duration_seconds", help, nil,
			func() float64 {
				start := m.Start()
				if from, to := part.from(start), part.to(start); !from.IsZero() && to.After(from) {
					return to.Sub(from).Seconds()
				}
				return 0
			})
	}
}

func booted(s Start) time.Time     { return s.Booted }
func begun(s Start) time.Time      { return s.Begun }
func connected(s Start) time.Time  { return s.Connected }
func registered(s Start) time.Time { return s.Registered }
func ready(s Start) time.Time      { return s.Ready }

// addCertificates adds the metrics of certificates that podctl replaces.
func (m *Metrics) addCertificates() {
	for name, expiry := range map[string]func() time.Time{"client": m.ClientExpiry, "server": m.ServerExpiry} {
		if expiry == nil {
			continue
		}
		m.gauge("kubelet_certificate_manager_"+name+"_ttl_seconds",
			"Time until the certificate expires, in seconds; +Inf without one.", nil, func() float64 {
				if at := expiry(); !at.IsZero() {
					return math.Trunc(at.Sub(m.Now()).Seconds())
				}
				return math.Inf(1)
			})
	}
}

// Handler serves these metrics and others.
func (m *Metrics) Handler(others prometheus.Gatherer) http.Handler {
	all := prometheus.Gatherers{others, m.registry}
	return promhttp.HandlerFor(all, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// CountRequests counts the requests of all clients of client-go. Only the first call in a process has an effect.
func (m *Metrics) CountRequests() {
	metrics.Register(metrics.RegisterOpts{RequestLatency: latency{m.latencies}, RequestResult: results{m.requests}})
}

// latency counts the durations of requests.
type latency struct{ of *prometheus.HistogramVec }

// Observe counts a request.
func (l latency) Observe(_ context.Context, verb string, u url.URL, took time.Duration) {
	l.of.WithLabelValues(verb, u.Host).Observe(took.Seconds())
}

// results counts the results of requests.
type results struct{ of *prometheus.CounterVec }

// Increment counts a request.
func (r results) Increment(_ context.Context, code, method, host string) {
	r.of.WithLabelValues(code, method, host).Inc()
}

// StatusSent counts a status that the API has now. took is the time since its change.
func (m *Metrics) StatusSent(took time.Duration) { m.statuses.Observe(took.Seconds()) }

// Reviewed counts a review with the code of its response; 0 if there was none.
func (m *Metrics) Reviewed(kind Review, code int, took time.Duration) {
	text := strconv.Itoa(code)
	if code == 0 {
		text = "<error>"
	}
	m.reviews[kind].total.WithLabelValues(text).Inc()
	m.reviews[kind].latency.WithLabelValues(text).Observe(took.Seconds())
}

// VolumeChanged counts work on a volume: the plugin is the kubelet's name for its kind.
func (m *Metrics) VolumeChanged(plugin, operation string, took time.Duration, err error) {
	status := "success"
	if err != nil {
		status = "fail-unknown"
	}
	m.volumes.WithLabelValues(plugin, operation, status, "false").Observe(took.Seconds())
}
