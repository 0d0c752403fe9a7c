package metrics

import (
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/podctl/podctl/runtime/model"
)

// Metrics are the metrics of one agent. All methods are safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	shown    *recent

	desired        *prometheus.GaugeVec
	active         *prometheus.GaugeVec
	problems       prometheus.Gauge
	podStart       prometheus.Histogram
	podWorker      *prometheus.HistogramVec
	perPod         prometheus.Histogram
	relist         prometheus.Histogram
	lastSeen       prometheus.Gauge
	operations     *prometheus.CounterVec
	operationFails *prometheus.CounterVec
	operationTimes *prometheus.HistogramVec
	pods           prometheus.Counter
	podFails       prometheus.Counter
	userPods       prometheus.Counter
	userPodFails   prometheus.Counter
	containers     *prometheus.CounterVec
	containerFails *prometheus.CounterVec
	imagePull      *prometheus.HistogramVec
	rejections     *prometheus.CounterVec
	evictions      *prometheus.CounterVec
	preemptions    *prometheus.CounterVec
	probes         *prometheus.CounterVec
	probeTimes     *prometheus.HistogramVec
	watchDrops     prometheus.Counter
}

// kubelet is the prefix of most names, prober that of the metrics of probes.
const kubelet, prober = "kubelet", "prober"

// podStartBuckets are the kubelet's.
func podStartBuckets() []float64 {
	return []float64{
		0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600,
		900, 1200, 1800, 2700, 3600,
	}
}

// imagePullBuckets are the kubelet's.
func imagePullBuckets() []float64 {
	return []float64{1, 5, 10, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600}
}

// New returns the metrics of an agent. It calls look to count running pods and containers each time the metrics are
// read.
func New(look CountFunc) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.addAgent()
	m.addPods()
	m.addRuntime()
	m.addProbes()
	m.registry.MustRegister(
		newRunning(look),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.shown = &recent{from: m.registry, now: time.Now}
	return m
}

// addAgent adds the metrics of sources, admission and watches.
func (m *Metrics) addAgent() {
	m.desired = gauges("desired_pods",
		"The number of pods the agent is being instructed to run. "+
			"static is true if the pod is not from the API server.",
		"static")
	m.active = gauges("active_pods",
		"The number of pods the agent considers active and which are being considered when admitting new pods. "+
			"static is true if the pod is not from the API server.",
		"static")
	m.problems = prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: "podctl", Subsystem: "agent", Name: "source_problems",
		Help: "Number of problems of sources and between them.",
	})
	m.rejections = counters("admission_rejections_total",
		"Cumulative number pod admission rejections by the agent.", "reason")
	m.watchDrops = counter("pod_watch_events_dropped_total", "Cumulative number of pod watch events dropped.")
	m.registry.MustRegister(m.desired, m.active, m.problems, m.rejections, m.watchDrops)
}

// addPods adds the metrics of the agent's work on pods and containers.
func (m *Metrics) addPods() {
	m.podStart = histogram("pod_start_duration_seconds",
		"Duration in seconds from the agent seeing a pod for the first time to the pod starting to run",
		podStartBuckets())
	m.podWorker = histograms("pod_worker_duration_seconds",
		"Duration in seconds to sync a single pod. Broken down by operation type: create, update, sync or kill",
		prometheus.DefBuckets, "operation_type")
	m.perPod = histogram("containers_per_pod_count",
		"The number of containers per pod.", prometheus.ExponentialBuckets(1, 2, 5))
	m.pods = counter("started_pods_total", "Cumulative number of pods started")
	m.podFails = counter("started_pods_errors_total", "Cumulative number of errors when starting pods")
	m.userPods = counter("started_user_namespaced_pods_total",
		"Cumulative number of pods with user namespaces started")
	m.userPodFails = counter("started_user_namespaced_pods_errors_total",
		"Cumulative number of errors when starting pods with user namespaces")
	m.containers = counters("started_containers_total",
		"Cumulative number of containers started", "container_type")
	m.containerFails = counters("started_containers_errors_total",
		"Cumulative number of errors when starting containers", "container_type", "code")
	m.evictions = counters("evictions",
		"Cumulative number of pod evictions by eviction signal", "eviction_signal")
	m.preemptions = counters("preemptions",
		"Cumulative number of pod preemptions by preemption resource", "preemption_signal")
	m.registry.MustRegister(m.podStart, m.podWorker, m.perPod, m.pods, m.podFails, m.userPods, m.userPodFails,
		m.containers, m.containerFails, m.evictions, m.preemptions)
}

// addRuntime adds the metrics of calls to the runtime.
func (m *Metrics) addRuntime() {
	m.relist = histogram("pleg_relist_duration_seconds",
		"Duration in seconds for relisting pods in PLEG.", prometheus.DefBuckets)
	m.lastSeen = prometheus.NewGauge(prometheus.GaugeOpts{
		Subsystem: kubelet, Name: "pleg_last_seen_seconds",
		Help: "Timestamp in seconds when PLEG was last seen active.",
	})
	m.operations = counters("runtime_operations_total",
		"Cumulative number of runtime operations by operation type.", "operation_type")
	m.operationFails = counters("runtime_operations_errors_total",
		"Cumulative number of runtime operation errors by operation type.", "operation_type")
	m.operationTimes = histograms("runtime_operations_duration_seconds",
		"Duration in seconds of runtime operations. Broken down by operation type.",
		prometheus.ExponentialBuckets(.005, 2.5, 14), "operation_type")
	m.imagePull = histograms("image_pull_duration_seconds",
		"Duration in seconds to pull an image.", imagePullBuckets(), "image_size_in_bytes")
	m.registry.MustRegister(m.relist, m.lastSeen, m.operations, m.operationFails, m.operationTimes, m.imagePull)
}

func (m *Metrics) addProbes() {
	m.probes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Subsystem: prober, Name: "probe_total",
		Help: "Cumulative number of a liveness, readiness or startup probe for a container by result.",
	}, []string{"probe_type", "result", "container", "pod", "namespace", "pod_uid"})
	m.probeTimes = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Subsystem: prober, Name: "probe_duration_seconds",
		Help: "Duration in seconds for a probe response.",
	}, []string{"probe_type", "container", "pod", "namespace"})
	m.registry.MustRegister(m.probes, m.probeTimes)
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Subsystem: kubelet, Name: name, Help: help})
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Subsystem: kubelet, Name: name, Help: help}, labels)
}

func gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Subsystem: kubelet, Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	opts := prometheus.HistogramOpts{Subsystem: kubelet, Name: name, Help: help, Buckets: buckets}
	return prometheus.NewHistogram(opts)
}

func histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	opts := prometheus.HistogramOpts{Subsystem: kubelet, Name: name, Help: help, Buckets: buckets}
	return prometheus.NewHistogramVec(opts, labels)
}

// Handler serves the metrics. Values that cannot be read are left out. Requests within a second get the same values, so
// that many of them cost no more than one.
func (m *Metrics) Handler() http.Handler { return serve(m.shown) }

// ProbesHandler serves the metrics of probes only. A kubelet has them under another path than all others.
func (m *Metrics) ProbesHandler() http.Handler { return serve(selected(m.shown, isProbeMetric)) }

// Others gathers all metrics but those of probes.
func (m *Metrics) Others() prometheus.Gatherer {
	return selected(m.shown, func(name string) bool { return !strings.HasPrefix(name, prober+"_") })
}

// isProbeMetric reports whether a metric is one of probes or the start of the process.
func isProbeMetric(name string) bool {
	return strings.HasPrefix(name, prober+"_") || name == "process_start_time_seconds"
}

// selected gathers the metrics with the wanted names.
func selected(from prometheus.Gatherer, wanted func(name string) bool) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := from.Gather()
		return slices.DeleteFunc(slices.Clone(families), func(f *dto.MetricFamily) bool {
			return !wanted(f.GetName())
		}), err
	})
}

func serve(from prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(from, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// Wanted counts the wanted pods.
type Wanted struct{ Desired, Active int }

// Wanted sets the number of wanted pods of the API server and of other sources, and of the problems of the sources
// (kubelet: HandlePodCleanups).
func (m *Metrics) Wanted(fromAPI, static Wanted, problems int) {
	for label, count := range map[string]Wanted{"": fromAPI, "true": static} {
		m.desired.WithLabelValues(label).Set(float64(count.Desired))
		m.active.WithLabelValues(label).Set(float64(count.Active))
	}
	m.problems.Set(float64(problems))
}

// Pass records a pass over a pod. The operation is create, update, sync or kill.
func (m *Metrics) Pass(operation string, took time.Duration) {
	m.podWorker.WithLabelValues(operation).Observe(took.Seconds())
}

// PodBegins records the number of regular containers of a pod that gets its first pass (kubelet: startPodSync).
func (m *Metrics) PodBegins(containers int) { m.perPod.Observe(float64(containers)) }

// PodRuns records the time from when a pod was first seen to when it ran.
func (m *Metrics) PodRuns(took time.Duration) { m.podStart.Observe(took.Seconds()) }

// WatchDropped records a watch of pods that was ended because it read too slowly.
func (m *Metrics) WatchDropped() { m.watchDrops.Inc() }

// Relisted records a list of all containers.
func (m *Metrics) Relisted(at time.Time, took time.Duration) {
	m.relist.Observe(took.Seconds())
	m.lastSeen.Set(float64(at.Unix()))
}

// Called records a call to the runtime.
func (m *Metrics) Called(method string, took time.Duration, err error) {
	operation := operationOf(method)
	m.operations.WithLabelValues(operation).Inc()
	m.operationTimes.WithLabelValues(operation).Observe(took.Seconds())
	if err != nil {
		m.operationFails.WithLabelValues(operation).Inc()
	}
}

// operationOf returns the kubelet's name for a method of the CRI (pkg/kubelet/kuberuntime/instrumented_services.go).
func operationOf(method string) string {
	if method == "UpdateContainerResources" {
		return "update_container"
	}
	var b strings.Builder
	for i, r := range strings.ReplaceAll(method, "PodSandbox", "Podsandbox") {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// PodStarted records the creation of a sandbox, or its failure.
func (m *Metrics) PodStarted(err error) {
	m.pods.Inc()
	if err != nil {
		m.podFails.Inc()
	}
}

// UserPodStarted records a pass that created the sandbox of a pod with its own user namespace, and the failures of that
// pass (kubelet: SyncPod).
func (m *Metrics) UserPodStarted(err error) {
	m.userPods.Inc()
	if err != nil {
		m.userPodFails.Inc()
	}
}

// ContainerStarted records the start of a container, or the reason of its failure. The kind is container,
// init_container or ephemeral_container.
func (m *Metrics) ContainerStarted(kind, failure string) {
	m.containers.WithLabelValues(kind).Inc()
	if failure != "" {
		m.containerFails.WithLabelValues(kind, failure).Inc()
	}
}

// Pulled records the pull of an image. The size is in bytes.
func (m *Metrics) Pulled(size uint64, took time.Duration) {
	m.imagePull.WithLabelValues(sizeOf(size)).Observe(took.Seconds())
}

// Rejected records a pod that was not admitted.
func (m *Metrics) Rejected(reason string) { m.rejections.WithLabelValues(rejectionOf(reason)).Inc() }

// Evicted records a pod that was evicted because a resource ran out, or preempted because a critical pod needs one.
func (m *Metrics) Evicted(why *model.Eviction) {
	counter := m.evictions
	if why.Preempted {
		counter = m.preemptions
	}
	counter.WithLabelValues(why.Signal).Inc()
}

// rejectionOf returns the kubelet's label for the reason of a rejection (recordAdmissionRejection).
func rejectionOf(reason string) string {
	switch reason {
	case "OutOfcpu", "OutOfmemory", "OutOfephemeral-storage", "OutOfpods", "SysctlForbidden", "AppArmor", "Evicted",
		"PodOSNotSupported", "PodOSSelectorNodeLabelDoesNotMatch", "SupplementalGroupsPolicyNotSupported",
		"UnexpectedAdmissionError", "PodFeatureUnsupported", "NodeShutdown":
		return reason
	}
	if strings.HasPrefix(reason, "OutOf") {
		return "OutOfExtendedResources"
	}
	return "Other"
}

// sizeOf returns the kubelet's label for the size of an image in bytes (metrics.GetImageSizeBucket).
func sizeOf(size uint64) string {
	const mb, gb = 1 << 20, 1 << 30
	for _, b := range []struct {
		below uint64
		label string
	}{
		{10 * mb, "0-10MB"},
		{100 * mb, "10MB-100MB"},
		{500 * mb, "100MB-500MB"},
		{gb, "500MB-1GB"},
		{5 * gb, "1GB-5GB"},
		{10 * gb, "5GB-10GB"},
		{20 * gb, "10GB-20GB"},
		{30 * gb, "20GB-30GB"},
		{40 * gb, "30GB-40GB"},
		{60 * gb, "40GB-60GB"},
		{100 * gb, "60GB-100GB"},
	} {
		if size < b.below {
			return b.label
		}
	}
	return "GT100GB"
}
