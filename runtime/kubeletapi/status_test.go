package kubeletapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

// TestHealth checks the health of the node and of its parts, in the words of the kubelet.
func TestHealth(t *testing.T) {
	agent := &pods{}
	s := serve(t, agent, newRuntime(t))
	for _, path := range []string{"", "/ping", "/log", "/syncloop", "?exclude=log"} {
		s.expect("GET", "/healthz"+path, http.StatusOK, "ok")
	}
	s.expect("GET", "/healthz?verbose&exclude=log&exclude=x", http.StatusOK,
		"[+]ping ok\n[+]log excluded: ok\n[+]syncloop ok\n"+
			"warn: some health checks cannot be excluded: no matches for \"x\"\nhealthz check passed\n")
	agent.mu.Lock()
	agent.sick = errors.New("sync Loop took longer than expected")
	agent.mu.Unlock()
	s.expect("GET", "/healthz", http.StatusInternalServerError,
		"[+]ping ok\n[+]log ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n")
	s.expect("GET", "/healthz/syncloop", http.StatusInternalServerError, "internal server error: sync Loop took longer than expected\n")
	s.expect("GET", "/healthz?exclude=syncloop", http.StatusOK, "ok")
	if code, _ := s.do("GET", "/healthz/other", ""); code != http.StatusNotFound {
		t.Errorf("an unknown check: %d", code)
	}
}

// TestConfig checks the configuration of the node with its kind and version.
func TestConfig(t *testing.T) {
	var values *kubeletconfig.KubeletConfiguration
	s := serve(t, &pods{}, newRuntime(t), func(s *Settings, _ *limits) {
		s.Configuration = func(context.Context) *kubeletconfig.KubeletConfiguration { return values }
	})
	if code, _ := s.do("GET", "/configz", ""); code != http.StatusNotFound {
		t.Errorf("without values: %d", code)
	}
	values = &kubeletconfig.KubeletConfiguration{MaxPods: 7}
	code, text := s.do("GET", "/configz", "")
	var got struct {
		Kubeletconfig kubeletconfig.KubeletConfiguration
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil || code != http.StatusOK {
		t.Fatalf("%d %v %s", code, err, text)
	}
	c := got.Kubeletconfig
	if c.Kind != "KubeletConfiguration" || c.APIVersion != "kubelet.config.k8s.io/v1beta1" || c.MaxPods != 7 {
		t.Errorf("%s", text)
	}
	if values.Kind != "" {
		t.Errorf("the response changes the configuration: %v", values)
	}
}

// TestMeasures checks the paths of metrics and of the summary.
func TestMeasures(t *testing.T) {
	s := serve(t, &pods{}, newRuntime(t))
	for path, want := range map[string]string{
		"/metrics": "agent", "/metrics/": "agent", "/metrics/probes": "probes", "/metrics/resource": "resource",
		"/metrics/cadvisor": "cadvisor",
	} {
		s.expect("GET", path, http.StatusOK, want)
	}
	for path, disks := range map[string]int{"/stats/summary": 2, "/stats/summary?only_cpu_and_memory=true": 0} {
		code, text := s.do("GET", path, "")
		if code != http.StatusOK || !strings.Contains(text, `"nodeName":"n"`) || strings.Count(text, "usedBytes") != disks {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
}

// deadlines is a response that records the time until which it may be read.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.set = append(d.set, at)
	return nil
}

// TestAnswerTime checks that the time to read a response is limited, also that of metrics.
func TestAnswerTime(t *testing.T) {
	s := serve(t, &pods{}, newRuntime(t))
	routes, _ := s.publicRoutes()
	for _, path := range []string{"/metrics", "/metrics/probes", "/metrics/resource", "/metrics/cadvisor", "/stats/summary", "/pods"} {
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		routes.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
		if w.Code != http.StatusOK || len(w.set) != 1 || w.set[0].Before(time.Now()) {
			t.Errorf("%s: %d, deadlines %v", path, w.Code, w.set)
		}
	}
}

// TestPathsAndMethods checks that other paths and methods are refused.
func TestPathsAndMethods(t *testing.T) {
	agent, m, _ := web(t)
	s := serve(t, agent, m)
	for request, want := range map[[2]string]int{
		{"GET", "/"}: http.StatusNotFound, {"GET", "/logs/"}: http.StatusMethodNotAllowed, {"GET", "/containerLogs/ns/web"}: http.StatusNotFound,
		{"POST", "/pods"}: http.StatusMethodNotAllowed, {"GET", "/run/ns/web/app"}: http.StatusMethodNotAllowed,
		{"PUT", "/exec/ns/web/app"}: http.StatusMethodNotAllowed, {"POST", "/containerLogs/ns/web/app"}: http.StatusMethodNotAllowed,
	} {
		if code, text := s.do(request[0], request[1], ""); code != want {
			t.Errorf("%v: %d %q, not %d", request, code, text, want)
		}
	}
}

// counts counts requests and those that have not ended.
type counts struct {
	measures

	mu       sync.Mutex
	all      []string
	inflight int
}

// RequestBegun notes a request.
func (c *counts) RequestBegun(method, path, serverType string, longRunning bool) (ended func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inflight++
	c.all = append(c.all, fmt.Sprint(method, " ", path, " ", serverType, " ", longRunning))
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.inflight--
	}
}

// TestRequestsAreCounted checks the labels of requests. A client cannot add new ones. Refused requests count, too.
func TestRequestsAreCounted(t *testing.T) {
	c := &counts{}
	s := New(nil, nil, Settings{Measures: c, Metrics: c})
	handler := s.counted(http.NotFoundHandler(), "readwrite")
	for _, r := range [][2]string{
		{"GET", "/metrics"},
		{"GET", "/metrics/cadvisor"},
		{"GET", "/metrics/cadvisor/x"},
		{"GET", "/metrics/other"},
		{"POST", "/exec/a/b/c"},
		{"POST", "/portForward/a/b"},
		{"GET", "/stats/summary"},
		{"PURGE", "/a"},
		{"GET", "//pods"},
	} {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), r[0], r[1], nil))
	}
	want := []string{
		"GET metrics readwrite false", "GET metrics/cadvisor readwrite false", "GET metrics/cadvisor readwrite false",
		"GET other readwrite false", "POST exec readwrite true", "POST portForward readwrite false",
		"GET stats readwrite false", "other other readwrite false", "GET other readwrite false",
	}
	if !slices.Equal(c.all, want) || c.inflight != 0 {
		t.Errorf("%q, %d in work", c.all, c.inflight)
	}
	serve(t, &pods{}, newRuntime(t), func(s *Settings, _ *limits) { s.Metrics = c }).do("GET", "/healthz", "")
	if last := c.all[len(c.all)-1]; last != "GET healthz readwrite false" {
		t.Errorf("the server counts %s", last)
	}
}
