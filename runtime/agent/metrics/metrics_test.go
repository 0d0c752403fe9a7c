package metrics

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/model"
)

// page returns the metrics as they are served.
func page(m *Metrics) string {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/metrics", http.NoBody))
	return w.Body.String()
}

var web = model.PodRef{Namespace: "default", Name: "web", UID: "1"}

// full returns metrics with a value of each kind.
func full(look CountFunc) *Metrics {
	m := New(look)
	m.Wanted(Wanted{2, 1}, Wanted{3, 3}, 1)
	m.Pass("create", time.Second)
	m.PodRuns(time.Second)
	m.Relisted(time.Unix(1000, 0), time.Millisecond)
	m.Called("RunPodSandbox", time.Second, errors.New("no"))
	m.PodStarted(errors.New("no"))
	m.ContainerStarted("init_container", "RunContainerError")
	m.UserPodStarted(nil)
	m.UserPodStarted(errors.New("no"))
	m.Pulled(20<<20, time.Second)
	m.Probed(web, "a", model.Readiness, model.ProbeSuccess, time.Second)
	m.Probed(web, "a", model.Liveness, model.ProbeFailure, time.Second)
	return m
}

func two(context.Context) (int, map[string]int, error) { return 2, map[string]int{"running": 4}, nil }

// TestNames checks that the metrics have the names and labels of a kubelet, and no others.
func TestNames(t *testing.T) {
	text := page(full(two))
	var names []string
	for _, match := range regexp.MustCompile(`(?m)^# TYPE (\S+ \w+)$`).FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(match[1], "go_") && !strings.HasPrefix(match[1], "process_") {
			names = append(names, match[1])
		}
	}
	want := []string{
		"kubelet_active_pods gauge",
		"kubelet_containers_per_pod_count histogram",
		"kubelet_desired_pods gauge",
		"kubelet_image_pull_duration_seconds histogram",
		"kubelet_pleg_last_seen_seconds gauge",
		"kubelet_pleg_relist_duration_seconds histogram",
		"kubelet_pod_start_duration_seconds histogram",
		"kubelet_pod_watch_events_dropped_total counter",
		"kubelet_pod_worker_duration_seconds histogram",
		"kubelet_running_containers gauge",
		"kubelet_running_pods gauge",
		"kubelet_runtime_operations_duration_seconds histogram",
		"kubelet_runtime_operations_errors_total counter",
		"kubelet_runtime_operations_total counter",
		"kubelet_started_containers_errors_total counter",
		"kubelet_started_containers_total counter",
		"kubelet_started_pods_errors_total counter",
		"kubelet_started_pods_total counter",
		"kubelet_started_user_namespaced_pods_errors_total counter",
		"kubelet_started_user_namespaced_pods_total counter",
		"podctl_agent_source_problems gauge",
		"prober_probe_duration_seconds histogram",
		"prober_probe_total counter",
	}
	if !slices.Equal(names, want) {
		t.Errorf("the metrics are\n%s", strings.Join(names, "\n"))
	}
	for _, line := range []string{
		`kubelet_active_pods{static=""} 1`,
		`kubelet_desired_pods{static=""} 2`,
		`kubelet_desired_pods{static="true"} 3`,
		`kubelet_image_pull_duration_seconds_bucket{image_size_in_bytes="10MB-100MB",le="1"} 1`,
		`kubelet_pleg_last_seen_seconds 1000`,
		`kubelet_pod_worker_duration_seconds_count{operation_type="create"} 1`,
		`kubelet_running_containers{container_state="running"} 4`,
		`kubelet_running_pods 2`,
		`kubelet_runtime_operations_total{operation_type="run_podsandbox"} 1`,
		`kubelet_runtime_operations_errors_total{operation_type="run_podsandbox"} 1`,
		`kubelet_started_containers_errors_total{code="RunContainerError",container_type="init_container"} 1`,
		`kubelet_started_user_namespaced_pods_errors_total 1`,
		`kubelet_started_user_namespaced_pods_total 2`,
		`prober_probe_total{container="a",namespace="default",pod="web",pod_uid="1",probe_type="Readiness",result="successful"} 1`,
		`prober_probe_total{container="a",namespace="default",pod="web",pod_uid="1",probe_type="Liveness",result="failed"} 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("there is no %s", line)
		}
	}
	if strings.Contains(text, `probe_duration_seconds_count{container="a",namespace="default",pod="web",probe_type="Liveness"}`) {
		t.Error("a failure is timed, which a kubelet does not do")
	}
	if !strings.Contains(text, "process_resident_memory_bytes ") || !strings.Contains(text, "go_goroutines ") {
		t.Error("there is nothing about the process")
	}
}

// TestMetricsOfDeletedPods checks that such pods have no metrics any more, and that others keep theirs.
func TestMetricsOfDeletedPods(t *testing.T) {
	m := full(two)
	other := model.PodRef{Namespace: "default", Name: "other", UID: "2"}
	m.Probed(other, "a", model.Startup, model.ProbeUnknown, time.Second)
	m.Forget(web)
	if text := page(m); strings.Contains(text, `pod="web"`) || strings.Count(text, `pod="other"`) < 2 {
		t.Errorf("after the end of web:\n%s", text)
	}
}

// TestUnresponsiveRuntime checks that the other metrics are served if the runtime does not answer.
func TestUnresponsiveRuntime(t *testing.T) {
	text := page(full(func(context.Context) (int, map[string]int, error) { return 0, nil, errors.New("silence") }))
	if strings.Contains(text, "kubelet_running_pods ") || !strings.Contains(text, "kubelet_desired_pods{") {
		t.Errorf("without a runtime:\n%s", text)
	}
}

// TestOperations checks that methods of the CRI get the kubelet's names.
func TestOperations(t *testing.T) {
	for method, want := range map[string]string{
		"Version":                   "version",
		"PodSandboxStatus":          "podsandbox_status",
		"ListPodSandbox":            "list_podsandbox",
		"StopPodSandbox":            "stop_podsandbox",
		"UpdateContainerResources":  "update_container",
		"UpdatePodSandboxResources": "update_podsandbox_resources",
		"ReopenContainerLog":        "reopen_container_log",
		"ExecSync":                  "exec_sync",
		"ImageFsInfo":               "image_fs_info",
		"PullImage":                 "pull_image",
		"GetContainerEvents":        "get_container_events",
		"PortForward":               "port_forward",
	} {
		if got := operationOf(method); got != want {
			t.Errorf("%s: %s, want %s", method, got, want)
		}
	}
	for size, want := range map[uint64]string{0: "0-10MB", 10 << 20: "10MB-100MB", 1<<30 - 1: "500MB-1GB", 100 << 30: "GT100GB"} {
		if got := sizeOf(size); got != want {
			t.Errorf("%d bytes: %s, want %s", size, got, want)
		}
	}
}

// TestRejections checks that a rejection is counted with the kubelet's label (kubelet: admissionRejectionReasons). A
// kubelet knows no label for taints, affinity and ports.
func TestRejections(t *testing.T) {
	for reason, want := range map[model.Reason]string{
		model.OutOf(v1.ResourceCPU):    "OutOfcpu",
		model.OutOf("example.com/gpu"): "OutOfExtendedResources",
		model.Evicted:                  "Evicted",
		model.UnexpectedAdmissionError: "UnexpectedAdmissionError",
		model.PodFeatureUnsupported:    "PodFeatureUnsupported",
		model.NodeShutdown:             "NodeShutdown",
		model.TaintToleration:          "Other",
		model.NodeAffinity:             "Other",
		model.UnsupportedPodFeature:    "Other",
	} {
		m := New(two)
		m.Rejected(string(reason))
		if line := `kubelet_admission_rejections_total{reason="` + want + `"} 1`; !strings.Contains(page(m), line+"\n") {
			t.Errorf("%s: there is no %s", reason, line)
		}
	}
}
