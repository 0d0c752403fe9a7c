//go:build e2e

package e2e

import (
	"errors"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// serviced has a Deployment whose pods can be made unready and return their names, its Services, and a client.
const serviced = `apiVersion: v1
kind: Service
metadata: {name: served}
spec:
  type: NodePort
  selector: {app: served}
  ports: [{port: 80, targetPort: http, nodePort: 31234}]
---
apiVersion: v1
kind: Service
metadata: {name: peers}
spec: {clusterIP: None, selector: {app: served}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: served}
spec:
  replicas: 2
  selector: {matchLabels: {app: served}}
  template:
    metadata: {labels: {app: served}}
    spec:
      terminationGracePeriodSeconds: 1
      volumes: [{name: me, downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}]
      containers:
      - name: app
        image: registry.local/podctl/demo:1
        args: [serve, --http, ":8080", --greeting, /me/name]
        ports: [{name: http, containerPort: 8080}]
        volumeMounts: [{name: me, mountPath: /me}]
        readinessProbe: {httpGet: {port: http, path: /readyz}, periodSeconds: 1, failureThreshold: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: app, image: "registry.local/podctl/demo:1", args: [sleep]}]
`

// client is a pod that sends requests to others.
type client struct{ *machine }

// get returns the response to a request of the client. It is empty after an error.
func (c client) get(t *testing.T, url string) string {
	t.Helper()
	return strings.TrimSpace(c.run(t, "exec", "client", "--", "/demo", "get", url).stdout)
}

// answers counts the servers that answer a number of requests of the client.
func (c client) answers(t *testing.T, url string, times int) map[string]int {
	t.Helper()
	who := map[string]int{}
	for range times {
		who[c.get(t, url)]++
	}
	return who
}

// switched makes a pod ready or unready.
func (c client) switched(t *testing.T, pod, state string) {
	t.Helper()
	ip := strings.TrimSpace(c.must(t, "get", pod, "-o", "jsonpath={.status.podIP}").stdout)
	if _, err := asked(t, http.MethodPost, "http://"+ip+":8080/switch/readyz/"+state); err != nil {
		t.Fatal(err)
	}
}

// asked returns the response to a request of the node.
func asked(t *testing.T, method, url string) (string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := (&http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(answer.Body)
	return string(text), errors.Join(err, answer.Body.Close())
}

// testServices: pods find a Service by its names and reach all its ready pods, including themselves, at its port and at
// the port of the node. Headless names resolve to pods. Pods that are not ready receive no traffic. Without a ready
// pod, connections are refused.
func testServices(t *testing.T, m *machine) {
	file, c := write(t, serviced), client{m}
	m.must(t, "apply", "--wait", "--timeout", "1m", file)
	if who := c.answers(t, "http://served", 16); who["served-0"] == 0 || who["served-1"] == 0 || len(who) != 2 {
		t.Errorf("answered by %v", who)
	}
	for _, url := range []string{
		"http://served.default", "http://served.default.svc.cluster.local", "http://peers:8080",
		"http://peers.default.svc:8080",
	} {
		if who := c.get(t, url); !strings.HasPrefix(who, "served-") {
			t.Errorf("%s is answered by %q", url, who)
		}
	}
	for range 8 {
		r := m.run(t, "exec", "served-0", "--", "/demo", "get", "http://served")
		if !strings.HasPrefix(r.stdout, "served-") {
			t.Fatalf("a pod cannot connect to its own Service: %s%s", r.stdout, r.stderr)
		}
	}
	if who, err := asked(t, http.MethodGet, "http://127.0.0.1:31234"); !strings.HasPrefix(who, "served-") {
		t.Errorf("127.0.0.1:31234 answers %q: %v", who, err)
	}
	r := m.must(t, "exec", "client", "--", "/demo", "print")
	if !strings.Contains(r.stdout, "SERVED_SERVICE_HOST=10.96.") {
		t.Errorf("the client has no variable of the Service:\n%s", r.stdout)
	}
	m.must(t, "apply", "--proxy-mode", "none", file)
	if after := rulesOf(t); strings.Contains(after, "31234") {
		t.Errorf("rules exist with --proxy-mode none:\n%s", after)
	}
	m.must(t, "apply", file)
	if after := rulesOf(t); !strings.Contains(after, "31234") {
		t.Errorf("no rules without --proxy-mode none:\n%s", after)
	}
	table := rulesOf(t)
	c.switched(t, "served-0", "off")
	m.run(t, "probe", "served-0")
	if who := c.answers(t, "http://served", 8); who["served-1"] != 8 {
		t.Errorf("with an unready pod: answered by %v", who)
	}
	c.switched(t, "served-1", "off")
	m.run(t, "probe", "served-1")
	if r := m.run(t, "exec", "client", "--", "/demo", "get", "http://served"); r.code == 0 ||
		!strings.Contains(r.stderr+r.stdout, "refused") {
		t.Errorf("without a ready pod: %s%s", r.stdout, r.stderr)
	}
	if r := m.must(t, "get", "service/served", "-o", "jsonpath={.spec.ports[0].nodePort}"); r.stdout != "31234" {
		t.Errorf("node port %s", r.stdout)
	}
	m.must(t, "delete", "-f", file)
	if after := rulesOf(t); strings.Contains(after, "31234") || !strings.Contains(table, "31234") {
		t.Errorf("before:\n%s\nafter the deletion:\n%s", table, after)
	}
}

// rulesOf returns the kernel rules of podctl.
func rulesOf(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "nft", "list", "ruleset").Output()
	if err != nil {
		t.Fatal("nft list ruleset: ", err)
	}
	return string(out)
}

// testAgentServices: with an agent, the traffic of a Service follows readiness, deaths, scaling and lost rules
// automatically.
func testAgentServices(t *testing.T, m *machine) {
	file, c := write(t, serviced), client{m}
	a := startAgent(t, m, t.TempDir())
	m.must(t, "apply", "--wait", "--timeout", "1m", file)
	only := func(pod string) bool {
		who := c.answers(t, "http://served", 6)
		return who[pod] == 6
	}
	c.switched(t, "served-0", "off")
	until(t, "served-0 gets no traffic", func() bool { return only("served-1") })
	c.switched(t, "served-0", "on")
	until(t, "served-0 gets traffic again", func() bool { return c.get(t, "http://served") == "served-0" })
	m.must(t, "scale", "--replicas=1", "deployment/served")
	until(t, "served-1 gets no traffic", func() bool { return only("served-0") })
	hosts := m.must(t, "exec", "client", "--", "/demo", "read", "/etc/hosts").stdout
	if strings.Count(hosts, "\tpeers\n") != 1 {
		t.Errorf("names that resolve to pods:\n%s", hosts)
	}
	ids := m.ids(t, "served-0")
	m.must(t, "restart", "served-0")
	until(t, "it is reached after its restart",
		func() bool { return only("served-0") && m.ids(t, "served-0")["app"] != ids["app"] })
	a.stop(t)
	a = startAgent(t, m, a.dir)
	until(t, "the next agent routes traffic", func() bool { return only("served-0") })
	m.must(t, "delete", "-f", file)
	until(t, "nothing is left", func() bool { return m.must(t, "get", "-A", "-o", "name").stdout == "" })
	a.stop(t)
	if r := m.must(t, "get", "services", "-o", "name"); r.stdout != "" {
		t.Errorf("left: %s", r.stdout)
	}
}
