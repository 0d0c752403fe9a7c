package kubernetes

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// process is a program that runs beside the tests. Its log is shown if a test fails.
type process struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{}
	// err is the error with which it ended.
	err error
}

func start(t *testing.T, log string, cmd *exec.Cmd) *process {
	t.Helper()
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // the process has it
	cmd.Stdout, cmd.Stderr = file, file
	if err = cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, log: log, ended: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() { p.end(t) })
	return p
}

// end interrupts the process and waits for it.
func (p *process) end(t *testing.T) {
	t.Helper()
	if p.cmd == nil {
		return
	}
	p.cmd.Process.Signal(unix.SIGTERM) //nolint:errcheck // it may have ended
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		p.cmd.Process.Kill() //nolint:errcheck // it may have ended
		<-p.ended
	}
	p.cmd = nil
	if t.Failed() {
		p.showLog(t)
	}
}

// kill ends the process at once.
func (p *process) kill() {
	p.cmd.Process.Kill() //nolint:errcheck // it may have ended
	<-p.ended
	p.cmd = nil
}

// runs reports whether the process has not ended by itself.
func (p *process) runs() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// showLog shows the end of the log without informational lines.
func (p *process) showLog(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(p.log)
	var lines []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "I") {
			lines = append(lines, line)
		}
	}
	t.Logf("%s (%v):\n%s", p.log, err, strings.Join(lines[max(0, len(lines)-60):], ""))
}

// alive fails the test if the process has ended by itself.
func (p *process) alive(t *testing.T) {
	t.Helper()
	if !p.runs() {
		t.Fatalf("%s has ended: %v", p.log, p.err)
	}
}

// kubelet is a real kubelet on podctl's containerd. Its pods come from a directory.
type kubelet struct {
	*process

	manifests string
}

const readOnlyPort = "10255"

// kubeletConfig is the configuration of a plain node, with all files below one directory.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: %[1]s/manifests
volumePluginDir: %[1]s/plugins
containerRuntimeEndpoint: unix://%[2]s
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
fileCheckFrequency: 5s
readOnlyPort: %[3]s
makeIPTablesUtilChains: false
evictionHard: {memory.available: 1Mi}
imageGCHighThresholdPercent: 100
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
`

// startKubelet starts the kubelet with the manifests in dir/manifests. api is nil for a standalone kubelet.
func (n *node) startKubelet(t *testing.T, dir string, api *apiServer, flags ...string) *kubelet {
	t.Helper()
	config := filepath.Join(dir, "config.yaml")
	write(t, config, fmt.Sprintf(kubeletConfig, dir, socket, readOnlyPort))
	args := []string{
		"--config", config, "--root-dir", stateDir, "--cert-dir", filepath.Join(dir, "certificates"),
		"--hostname-override", nodeName, "--node-ip", nodeIP, "--v=2",
	}
	if api != nil {
		args = append(args, "--kubeconfig", api.kubeconfig(t, dir))
	}
	args = append(args, flags...)
	k := &kubelet{manifests: filepath.Join(dir, "manifests")}
	k.process = start(t, filepath.Join(dir, "kubelet.log"), exec.Command(setting(t, "KUBELET_BIN"), args...)) //nolint:noctx // a signal ends it
	return k
}

// pods returns the kubelet's pods, or none while it starts.
func (k *kubelet) pods(t *testing.T) []object {
	t.Helper()
	k.alive(t)
	text, err := fetch(t.Context(), "http://127.0.0.1:"+readOnlyPort+"/pods", "")
	if err != nil {
		return nil
	}
	return items(t, text)
}

// fetch returns a document.
func fetch(ctx context.Context, url, token string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	return send(request, token)
}

func send(request *http.Request, token string) ([]byte, error) {
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	reply, err := client().Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s: %s", request.Method, request.URL, reply.Status, text)
	}
	return text, err
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
