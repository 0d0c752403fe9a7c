package kubeletapi

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSystemLogs checks which files are served, and that links, pipes and other directories are not.
func TestSystemLogs(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(outside, "secret"): "secret", filepath.Join(dir, "syslog"): "line\n", filepath.Join(dir, "app/a.log"): "a\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"out": filepath.Join(outside, "secret"), "up": "../" + filepath.Base(outside) + "/secret", "dir": outside, "in": "app/a.log",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		writeErrors(serveSystemLogs(dir))(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return w
	}
	for path, want := range map[string]string{
		"/logs/syslog": "line\n", "/logs/app/a.log": "a\n", "/logs/in": "a\n", "/logs/app/": `<a href="a.log">`,
		"/logs/": `<a href="app/">`,
	} {
		if w := get(path); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	for _, path := range []string{"/logs/out", "/logs/up", "/logs/dir/secret", "/logs/pipe", "/logs/absent"} {
		if w := get(path); w.Code < http.StatusBadRequest || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if w := get("/logs/../" + filepath.Base(outside) + "/secret"); w.Code == http.StatusOK {
		t.Errorf("another directory: %s", w.Body)
	}
}

// TestSystemLogsDisabled checks the response of a kubelet.
func TestSystemLogsDisabled(t *testing.T) {
	mux := http.NewServeMux()
	(&Server{}).systemLogRoutes(mux, nil)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/logs/syslog", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Body.String() != "logs endpoint is disabled.\n" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}
