package kubernetes

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	serverURL = "https://127.0.0.1:6443"
	token     = "podctl-kubernetes"
)

// apiServer is etcd and the API server.
type apiServer struct{ *process }

// client trusts every certificate, because all its servers are in the network of the tests.
func client() *http.Client {
	return &http.Client{
		Timeout:   time.Minute,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, // see above
	}
}

func (n *node) startServer(t *testing.T) *apiServer {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(n.services, "-test.run", "TestServices", "-test.timeout", "0") //nolint:noctx // a signal ends it
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "KUBERNETES_SERVER="+serverURL, "KUBERNETES_TOKEN="+token)
	s := &apiServer{start(t, filepath.Join(dir, "services.log"), cmd)}
	until(t, func() string {
		s.alive(t)
		if text, err := fetch(t.Context(), serverURL+"/readyz", token); err != nil || string(text) != "ok" {
			return fmt.Sprintf("the API server is not ready: %s %v", text, err)
		}
		return ""
	})
	return s
}

// kubeconfig writes the file with which a kubelet finds the server.
func (s *apiServer) kubeconfig(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "kubeconfig")
	write(t, path, fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "%s", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: %s}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, serverURL, token))
	return path
}

// startAgent makes podctl the node. It reads no pods from files.
func (n *node) startAgent(t *testing.T, api *apiServer, logs string, flags ...string) *process {
	t.Helper()
	dir := t.TempDir()
	manifests := filepath.Join(dir, "manifests")
	if err := os.Mkdir(manifests, 0o755); err != nil {
		t.Fatal(err)
	}
	args := append([]string{
		"agent", "--kubeconfig", api.kubeconfig(t, dir), "--node-name", nodeName, "--node-ip", nodeIP,
		"--authorization-mode", "AlwaysAllow", manifests,
	}, flags...)
	return start(t, filepath.Join(logs, "agent.log"), exec.Command(n.podctl, args...)) //nolint:noctx // a signal ends it
}

// makeNamespace creates a namespace, which mirror pods need.
func (s *apiServer) makeNamespace(t *testing.T, name string) {
	t.Helper()
	s.request(t, http.MethodPost, "/api/v1/namespaces",
		fmt.Sprintf(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": %q}}`, name))
}

// request makes a successful request with a JSON document.
func (s *apiServer) request(t *testing.T, method, path, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, serverURL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if _, err = send(request, token); err != nil {
		t.Fatal(err)
	}
}

// pods returns the mirror pods.
func (s *apiServer) pods(t *testing.T) []object {
	t.Helper()
	s.alive(t)
	text, err := fetch(t.Context(), serverURL+"/api/v1/pods", token)
	if err != nil {
		t.Fatal(err)
	}
	return items(t, text)
}

// awaitNode waits until the node is ready. It fails if the node's program ends.
func (s *apiServer) awaitNode(t *testing.T, program *process) {
	t.Helper()
	until(t, func() string {
		program.alive(t)
		if ready := s.nodeReady(t); ready != "True" {
			return fmt.Sprintf("condition Ready of the node is %q", ready)
		}
		return ""
	})
}

// nodeReady returns the Ready condition of the node at the server.
func (s *apiServer) nodeReady(t *testing.T) string {
	t.Helper()
	text, err := fetch(t.Context(), serverURL+"/api/v1/nodes", token)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range items(t, text) {
		return o.condition("Ready")
	}
	return ""
}
