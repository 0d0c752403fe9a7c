package commands

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	code, out, errs := call(t, "", "--config", file, "agent", "--node-name", "n2", "--show-configuration")
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
