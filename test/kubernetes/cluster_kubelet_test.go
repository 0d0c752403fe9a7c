package kubernetes

import (
	"crypto/x509"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// clusterKubelet is the configuration of a kubelet of this cluster: the directory of its files, and the socket.
const clusterKubelet = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: %[1]s/manifests
containerRuntimeEndpoint: unix://%[2]s
authentication: {x509: {clientCAFile: %[1]s/ca.crt}}
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
rotateCertificates: true
serverTLSBootstrap: true
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
evictionHard: {memory.available: 1Mi}
imageGCHighThresholdPercent: 100
`

// testKubelet lets a kubelet take over the node with its kubeconfig and certificates, and podctl take it back. No
// container ends.
func (c *cluster) testKubelet(t *testing.T) {
	user, c := c, c.in(t, "kubelet")
	c.must(t, "create", "configmap", "settings", "--from-literal", "text=first")
	c.apply(t, "rotation.yaml")
	c.ready(t, "reader")
	before := user.node.records(t)
	requested := len(c.signingRequests(t))
	c.agent.end(t)

	kubelet := c.startKubelet(t)
	c.awaitNode(t, kubelet, `^v[\d.]+$`)
	sameRuns(t, before, user.node.records(t))
	c.testFiles(t)
	cert := c.leaf(t, clientPair, x509.ExtKeyUsageClientAuth)
	until(t, func() string { return c.oldCredentials(t, cert) })
	kubelet.end(t)

	c.startAgent(t)
	c.awaitNode(t, c.agent, `^v[\d.]+\+podctl`)
	sameRuns(t, before, user.node.records(t))
	c.testFiles(t)
	if n := len(c.signingRequests(t)) - requested; n > 4 {
		t.Errorf("%d certificates were requested", n) // a few become old
	}
}

// startKubelet starts a kubelet in place of podctl.
func (c *cluster) startKubelet(t *testing.T) *process {
	t.Helper()
	config := c.path("kubelet.yaml")
	write(t, config, fmt.Sprintf(clusterKubelet, c.dir, containerdSocket))
	cmd := exec.Command(setting(t, "KUBELET_BIN"), //nolint:noctx // a signal ends it
		"--config", config, "--kubeconfig", c.path("node.conf"), "--root-dir", stateDir,
		"--cert-dir", filepath.Dir(clientPair), "--hostname-override", nodeName, "--node-ip", nodeIP, "--v=2")
	return start(c.t, filepath.Join(c.logs, "kubelet.log"), cmd)
}

// awaitVersion waits until the Node is ready and its version matches a pattern.
func (c *cluster) awaitVersion(t *testing.T, program *process, pattern string) {
	t.Helper()
	until(t, func() string {
		program.alive(t)
		r := c.call(t, "", "get", "node", nodeName, "-o",
			`jsonpath={.status.nodeInfo.kubeletVersion} {.status.conditions[?(@.type=="Ready")].status}`)
		version, ready, _ := strings.Cut(r.stdout, " ")
		if !regexp.MustCompile(pattern).MatchString(version) || ready != "True" {
			return "the node: " + r.stdout + r.stderr
		}
		return ""
	})
}

// awaitNode also waits until the server of the node answers.
func (c *cluster) awaitNode(t *testing.T, program *process, pattern string) {
	t.Helper()
	c.awaitVersion(t, program, pattern)
	until(t, func() string {
		program.alive(t)
		if r := c.call(t, "", "exec", "reader", "--", "cat", "/settings/text"); r.stdout != "first" {
			return r.stdout + r.stderr
		}
		return ""
	})
}
