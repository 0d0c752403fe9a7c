package nodemetrics

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/metrics"
)

// TestPodResources checks the metrics of requests to the PodResources API.
func TestPodResources(t *testing.T) {
	m := New(Settings{Start: func() Start { return Start{} }, Now: time.Now})
	m.PodResourcesServed("v1", "List", nil)
	m.PodResourcesServed("v1", "Get", nil)
	m.PodResourcesServed("v1", "Get", errors.New("not found"))
	m.PodResourcesServed("v1alpha1", "List", errors.New("counted only in total"))
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	m.Handler(prometheus.NewRegistry()).ServeHTTP(w, r)
	var lines []string
	for line := range strings.Lines(w.Body.String()) {
		if name, ok := strings.CutPrefix(line, "kubelet_pod_resources_endpoint_"); ok {
			lines = append(lines, strings.TrimSpace(name))
		}
	}
	want := []string{
		`errors_get{server_api_version="v1"} 1`, `requests_get{server_api_version="v1"} 2`,
		`requests_list{server_api_version="v1"} 1`,
		`requests_total{server_api_version="v1"} 3`, `requests_total{server_api_version="v1alpha1"} 1`,
	}
	if !slices.Equal(lines, want) {
		t.Errorf("%q", lines)
	}
}

// TestPage checks the names and values, and that requests of client-go are counted.
func TestPage(t *testing.T) {
	start, expiry := Start{Booted: time.Unix(100, 0), Begun: time.Unix(110, 0)}, time.Time{}
	m := New(Settings{
		Node: "n", Version: "v1.36.3+podctl.1", Start: func() Start { return start },
		ClientExpiry: func() time.Time { return expiry }, Now: func() time.Time { return time.Unix(1000, 0) },
	})
	others := prometheus.NewRegistry()
	others.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "other"}))
	page := func() string {
		w := httptest.NewRecorder()
		m.Handler(others).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		return w.Body.String()
	}
	expect := func(lines ...string) {
		t.Helper()
		text := page()
		for _, line := range lines {
			if !strings.Contains(text, "\n"+line+"\n") {
				t.Errorf("no %q in\n%s", line, text)
			}
		}
	}
	expect("other 0", `kubelet_node_name{node="n"} 1`,
		"kubelet_node_startup_pre_kubelet_duration_seconds 10", "kubelet_node_startup_duration_seconds 0",
		"kubelet_certificate_manager_client_ttl_seconds +Inf", "kubelet_pod_status_sync_duration_seconds_count 0")
	if strings.Contains(page(), "server_ttl") {
		t.Error("a serving certificate that podctl does not replace")
	}
	m.CountRequests()
	metrics.RequestResult.Increment(t.Context(), "200", "GET", "h:1")
	metrics.RequestLatency.Observe(t.Context(), "GET", url.URL{Host: "h:1"}, time.Second)
	m.StatusSent(20 * time.Millisecond)
	m.Reviewed(Token, 201, time.Second)
	m.Reviewed(Permission, 0, time.Second)
	m.VolumeChanged("kubernetes.io/secret", "volume_mount", time.Second, nil)
	m.VolumeChanged("kubernetes.io/secret", "volume_mount", time.Second, errors.New("no"))
	m.RequestBegun("GET", "metrics", "readwrite", false)()
	_ = m.RequestBegun("GET", "exec", "readwrite", true)
	const get = `{long_running="false",method="GET",path="metrics",server_type="readwrite"}`
	expect("kubelet_http_requests_total"+get+" 1", "kubelet_http_inflight_requests"+get+" 0",
		"kubelet_http_requests_duration_seconds_count"+get+" 1",
		`kubelet_http_inflight_requests{long_running="true",method="GET",path="exec",server_type="readwrite"} 1`)
	start.Connected, start.Registered, start.Ready = time.Unix(112, 0), time.Unix(115, 0), time.Unix(120, 0)
	expiry = time.Unix(4600, 5)
	expect(`rest_client_requests_total{code="200",host="h:1",method="GET"} 1`,
		`rest_client_request_duration_seconds_count{host="h:1",verb="GET"} 1`,
		`kubelet_pod_status_sync_duration_seconds_bucket{le="0.05"} 1`,
		`apiserver_delegated_authn_request_total{code="201"} 1`,
		`apiserver_delegated_authz_request_total{code="<error>"} 1`,
		`apiserver_delegated_authz_request_duration_seconds_count{code="<error>"} 1`,
		`storage_operation_duration_seconds_count{migrated="false",operation_name="volume_mount",status="success",`+
			`volume_plugin="kubernetes.io/secret"} 1`,
		`storage_operation_duration_seconds_count{migrated="false",operation_name="volume_mount",status="fail-unknown",`+
			`volume_plugin="kubernetes.io/secret"} 1`,
		"kubelet_node_startup_pre_registration_duration_seconds 2", "kubelet_node_startup_registration_duration_seconds 3",
		"kubelet_node_startup_post_registration_duration_seconds 5", "kubelet_node_startup_duration_seconds 20",
		"kubelet_certificate_manager_client_ttl_seconds 3600")
}
