package kubernetes

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	// signingDuration is how long certificates of nodes last. The controllers let them begin five minutes in the past,
	// and a node replaces them at 70 to 90 % of that time, which is 2.7 to 4.9 minutes after it has them.
	signingDuration = "6m"

	clientPair  = stateDir + "/pki/kubelet-client-current.pem"
	servingPair = stateDir + "/pki/kubelet-server-current.pem"

	bootstrapUser  = "system:bootstrap:abcdef"
	bootstrapToken = "abcdef.0123456789abcdef"

	clientSigner  = "kubernetes.io/kube-apiserver-client-kubelet"
	servingSigner = "kubernetes.io/kubelet-serving"
)

// join starts podctl agent with a token only, as `kubeadm join` does with a kubelet. The API server accepts it only
// with the certificate that it then requests, and knows the node's server by the certificate that a user approves.
func (c *cluster) join(t *testing.T) {
	t.Helper()
	until(t, func() string { return c.call(t, "", "get", "namespace", "kube-system").stderr })
	c.apply(t, "join.yaml")
	bootstrap := c.path("bootstrap.conf")
	write(t, bootstrap, fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: u, user: {token: %s}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, cmp.Or(c.agentServer, clusterURL), c.path("ca.crt"), bootstrapToken))
	c.approveServing(t)
	c.startNode(t,
		"--bootstrap-kubeconfig", bootstrap, "--client-ca-file", c.path("ca.crt"), "--rotate-server-certificates")
}

// approveServing approves what the node requests for its server, as a user does, until the test ends.
func (c *cluster) approveServing(t *testing.T) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(time.Second); t.Context().Err() == nil; <-tick.C {
			for _, r := range c.signingRequests(t) {
				if name, found := strings.CutSuffix(r, " "+servingSigner+" "+nodeUser+" "); found {
					_ = c.command(t, "certificate", "approve", name).Run() // it tries again
				}
			}
		}
	}()
	t.Cleanup(func() { <-done })
}

// signingRequests returns the name, the signer and the user of each request for a certificate, and why it was approved.
// There are none if the API server does not respond.
func (c *cluster) signingRequests(t *testing.T) []string {
	t.Helper()
	text, err := c.command(t, "get", "certificatesigningrequests", "-o", "jsonpath={range .items[*]}"+
		`{.metadata.name} {.spec.signerName} {.spec.username} {.status.conditions[*].reason}{"\n"}{end}`).Output()
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// expectRequest checks that a certificate was requested by a user, and how it was approved.
func (c *cluster) expectRequest(t *testing.T, signer, user, reason string) {
	t.Helper()
	end := strings.Join([]string{"", signer, user, reason}, " ")
	until(t, func() string {
		all := c.signingRequests(t)
		if slices.ContainsFunc(all, func(r string) bool { return strings.HasSuffix(r, end) }) {
			return ""
		}
		return fmt.Sprintf("no request ends with %q:\n%s", end, strings.Join(all, "\n"))
	})
}

// testCertificates checks how the node got its certificates, and that its files are those of a kubelet.
func (c *cluster) testCertificates(t *testing.T) {
	c.expectRequest(t, clientSigner, bootstrapUser, "AutoApproved")
	c.expectRequest(t, servingSigner, nodeUser, "KubectlApprove")
	const subject = "CN=" + nodeUser + ",O=system:nodes"
	if got := c.leaf(t, clientPair, x509.ExtKeyUsageClientAuth).Subject.String(); got != subject {
		t.Errorf("client certificate for %s", got)
	}
	serving := c.leaf(t, servingPair, x509.ExtKeyUsageServerAuth)
	got := fmt.Sprint(serving.Subject, serving.DNSNames, serving.IPAddresses)
	if got != subject+" ["+nodeName+"] ["+nodeIP+"]" {
		t.Errorf("serving certificate for %s", got)
	}
	c.testFiles(t)
	for _, r := range c.requests(t, bootstrapUser) {
		if r.ObjectRef.Resource != "certificatesigningrequests" {
			t.Errorf("with the token: %s %s", r.Verb, r.RequestURI)
		}
	}
	status := c.node.must(t, "agent", "status").stdout
	for _, line := range []string{`client certificate .*` + subject, `serving certificate .*` + subject} {
		if !regexp.MustCompile(line).MatchString(status) {
			t.Errorf("%s is not in\n%s", line, status)
		}
	}
}

// testFiles checks the names, targets and modes of the files with keys.
func (c *cluster) testFiles(t *testing.T) {
	t.Helper()
	config := read(t, c.path("node.conf"))
	for _, line := range []string{"client-certificate: " + clientPair, "client-key: " + clientPair} {
		if !strings.Contains(config, line) || strings.Contains(config, bootstrapToken) {
			t.Errorf("%s is not in\n%s", line, config)
		}
	}
	if info, err := os.Stat(c.path("node.conf")); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	files, err := os.ReadDir(filepath.Dir(clientPair))
	if err != nil {
		t.Fatal(err)
	}
	kubelet := regexp.MustCompile(`^kubelet-(client|server)-\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d\.pem$`)
	for _, f := range files {
		path := filepath.Join(filepath.Dir(clientPair), f.Name())
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		target, _ := os.Readlink(path)
		switch current := path == clientPair || path == servingPair; {
		case current && !kubelet.MatchString(filepath.Base(target)):
			t.Errorf("%s leads to %q", path, target)
		case !current && (info.Mode() != 0o600 || !kubelet.MatchString(f.Name())):
			t.Errorf("%s: %s", path, info.Mode())
		}
	}
}

// leaf returns the certificate of a file with its key, which the authority of the cluster has signed for a use.
func (c *cluster) leaf(t *testing.T, path string, use x509.ExtKeyUsage) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(path, path)
	if err == nil {
		_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: c.roots(t), KeyUsages: []x509.ExtKeyUsage{use}})
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return pair.Leaf
}

// roots returns the authority of the cluster.
func (c *cluster) roots(t *testing.T) *x509.CertPool {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(read(t, c.path("ca.crt"))))
	return roots
}

// testRotation checks that the node replaces both certificates while pods run, and that neither streams of users nor
// its own watches notice.
func (c *cluster) testRotation(t *testing.T) {
	user, c := c, c.in(t, "rotation")
	c.must(t, "create", "configmap", "settings", "--from-literal", "text=first")
	c.apply(t, "rotation.yaml")
	c.ready(t, "reader")
	before := user.node.records(t).live()
	client := c.leaf(t, clientPair, x509.ExtKeyUsageClientAuth)
	serving := c.leaf(t, servingPair, x509.ExtKeyUsageServerAuth)
	logs := startSession(t, c.command(t, "logs", "-f", "reader"))
	logs.expect(t, "first\n", 1)
	shell := startTerminal(t, c.command(t, "exec", "-it", "reader", "--", "cat"))
	shell.send(t, "one\n")
	shell.expect(t, "one\r\n", 2) // the terminal and cat

	next := c.renewed(t, clientPair, client, x509.ExtKeyUsageClientAuth)
	c.renewed(t, servingPair, serving, x509.ExtKeyUsageServerAuth)
	c.expectRequest(t, clientSigner, nodeUser, "AutoApproved")
	c.testFiles(t)
	c.must(t, "patch", "configmap", "settings", "-p", `{"data": {"text": "second"}}`)
	logs.expect(t, "second\n", 1)
	shell.send(t, "two\n")
	shell.expect(t, "two\r\n", 2)
	c.must(t, "run", "later", "--image", webImage)
	c.ready(t, "later")
	after := user.node.records(t)
	for id, what := range before {
		if after[id] != what {
			t.Errorf("%s %.12s: now %q", what, id, after[id])
		}
	}
	until(t, func() string { return c.oldCredentials(t, next) })
}

// renewed waits until a file has another certificate. That takes until the one before expires at most.
func (c *cluster) renewed(t *testing.T, path string, before *x509.Certificate, use x509.ExtKeyUsage) *x509.Certificate {
	t.Helper()
	for {
		if now := c.leaf(t, path, use); !now.Equal(before) {
			return now
		}
		c.agent.alive(t)
		if time.Now().After(before.NotAfter.Add(patience)) {
			t.Fatalf("%s was not replaced\n%s", path, c.node.run(t, "agent", "status").stdout)
		}
		time.Sleep(time.Second)
	}
}
