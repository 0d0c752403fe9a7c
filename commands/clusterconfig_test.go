package commands

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/commandstest"
	"github.com/podctl/podctl/commands/program"
	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/runtime/agent/daemon"
)

// TestClusterConfiguration checks that a configuration file sets the agent's flags for a cluster, that the command line
// takes precedence, and that errors name the flag.
func TestClusterConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	written := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	written(`node-labels: disk=ssd
agent:
  kubeconfig: /etc/podctl/kubeconfig
  node-name: n1
  node-ip: [192.0.2.1, "2001:db8::1"]
  register-with-taints: [a=b:NoSchedule, "c:NoExecute"]
  provider-id: p
  cluster-dns: [10.96.0.10, "fd00::a"]
  cluster-domain: cluster.local
  address: 192.0.2.1
  port: 10350
  tls-cert-file: /c
  tls-private-key-file: /k
  authorization-mode: AlwaysAllow
  client-ca-file: /a
  anonymous-auth: true
  read-only-port: 10255
`)
	code, out, errs := callNode(t, nil, "--config", file, "agent", "--node-name", "n2", "--show-configuration")
	var got map[string]string
	if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil {
		t.Fatal(code, err, out, errs)
	}
	for name, want := range map[string]string{
		"kubeconfig": "/etc/podctl/kubeconfig", "node-name": "n2", "node-ip": "[192.0.2.1,2001:db8::1]",
		"register-with-taints": "[a=b:NoSchedule,c:NoExecute]", "provider-id": "p", "cluster-dns": "[10.96.0.10,fd00::a]",
		"cluster-domain": "cluster.local", "address": "192.0.2.1", "port": "10350",
		"tls-cert-file": "/c", "tls-private-key-file": "/k", "authorization-mode": "AlwaysAllow",
		"client-ca-file": "/a", "anonymous-auth": "true", "read-only-port": "10255", "node-labels": "disk=ssd",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	for text, want := range map[string]string{
		"agent: {node-name: n1}":                    "--node-name needs --kubeconfig",
		"agent: {kubeconfig: k, port: many}":        "agent.port: ",
		"agent: {kubeconfig: k, node-ip: [a]}":      "--node-ip a: it is not an IP address",
		"agent: {cluster-dns: [10.96.0.10]}":        "--cluster-dns needs --kubeconfig",
		"agent: {kubeconfig: k, node-names: n}":     `unknown key "agent.node-names"`,
		"agent: {kubeconfig: [k, l]}":               "agent.kubeconfig takes one value",
		"agent: {kubeconfig: k}\nkubeconfig: other": `unknown key "kubeconfig"`,
	} {
		written(text)
		if code, _, errs := call(t, "", "--config", file, "agent"); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%s: %d, %s, want %s", text, code, errs, want)
		}
	}
}

// callNode runs one command line of podctl-node with a runtime that does not answer. checked is the result of the check
// of the files that a cluster needs.
func callNode(t *testing.T, checked error, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	node := &daemon.NodeProgram{Check: func(*daemon.Settings) error { return checked }}
	main := func(ctx context.Context, env *terminal.Env, args []string) int {
		return program.NodeMain(ctx, env, args, node)
	}
	return commandstest.Call(t, main, "", append(args, "--runtime-endpoint", "dns:///none.invalid")...)
}

// TestCheckedConfiguration checks that an agent refuses a configuration with which it would not start: a reload prints
// the error and does not restart the agent. The settings are printed if they are valid, also if a file is not.
func TestCheckedConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	for text, want := range map[string]string{
		"container-log-max-size: abc":                    "--container-log-max-size \"abc\": ",
		"eviction-hard: x":                               "--eviction-hard: ",
		"node-name: n":                                   "--node-name needs --kubeconfig",
		"stop-pods: true, shutdown-grace: 0s":            "--stop-pods needs a --shutdown-grace",
		"listen: host":                                   "--listen host: must be ADDRESS:PORT",
		"sources: [/a, /a]":                              "the source /a is given twice",
		"sources: ['https://%zz']":                       "URL",
		"pod-max-pids: 0":                                "--pod-max-pids 0: ",
		"kubeconfig: k, max-pods: 0":                     "--max-pods 0: ",
		"kubeconfig: k, node-labels: a=-":                "--node-labels a=-: ",
		"listen: '127.0.0.1:99999'":                      "printed, then --listen 127.0.0.1:99999: ",
		"kubeconfig: k, authorization-mode: AlwaysAllow": "printed, then no such kubeconfig",
		"image-gc-high-threshold: 50, max-pods: 5":       "the low threshold of images",
		"url-interval: 0s":                               "--url-interval 0s: ",
		"enforce-node-allocatable: [pods,kube]":          "--enforce-node-allocatable pods,kube: ",
		"kubeconfig: k, tls-cert-file: c":                "belong together",
		"container-log-max-size: 1Mi, listen: ':0'":      "printed, then nothing",
		"sources: [/pods/absent], eviction-hard: ''":     "printed, then nothing",
	} {
		if err := os.WriteFile(file, []byte("agent: {"+text+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, errs := callNode(t, errors.New("no such kubeconfig"), "--config", file, "agent", "--show-configuration")
		fault, shown := strings.CutPrefix(want, "printed, then ")
		if fault == "nothing" {
			fault = ""
		}
		if (code != 0) != (fault != "") || !strings.Contains(errs, fault) || (out != "") != shown {
			t.Errorf("%s: exit code %d, printed %t, %q, want %s", text, code, out != "", errs, want)
		}
	}
}
