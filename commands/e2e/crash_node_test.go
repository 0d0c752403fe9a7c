package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/runtime/cluster/apitest"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// The crash matrix with an agent that is a node of a cluster: the API server has the pods. The agent is also killed
// before and after each change that it makes there, and the answer to each change is lost once.

// nodeCrashes returns the crashes of nodes. The API server allows no other edits.
func nodeCrashes() map[string]crash {
	all, shapes := map[string]crash{}, runtimetest.Shapes()
	for _, name := range []string{
		"two containers", "sidecar", "hooks", "volumes", "replace", "replace with a hook", "replace, Never", "completion",
		"delete", "delete with hooks",
	} {
		all["node: "+name] = crash{Shape: shapes[name], args: append(nodeArgs(), "SOURCE"), agent: true, api: true}
	}
	return all
}

// nodeArgs are the arguments of an agent that is a node.
func nodeArgs() []string {
	return []string{
		"agent", "--eviction=false", "--kubeconfig", "KUBECONFIG", "--node-name", "n1", "--node-ip", "192.0.2.10",
		"--port", "PORT",
	}
}

// apiLab is the API server of a lab. A nil one is that of an agent without a cluster.
type apiLab struct {
	server *apitest.Cluster
	web    *httptest.Server
	// port is the port of the node's server.
	port int
}

// prepareCluster starts the API server, and lets an agent create the initial state. raw are answers in place of those
// of the server; it may be nil.
func (l *crashLab) prepareCluster(raw func(*http.Request) http.HandlerFunc) {
	l.t.Helper()
	l.cluster = &apiLab{server: apitest.NewCluster(), port: unusedPort(l.t)}
	l.cluster.server.Raw = raw
	l.cluster.web = httptest.NewServer(l.cluster.server)
	l.write("kubeconfig", fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, l.cluster.web.URL))
	if err := os.MkdirAll(l.source(), 0o700); err != nil {
		l.t.Fatal(err)
	}
	if l.crash.Before != "" {
		l.cluster.server.Put(apiPod(l.t, l.crash.Before))
		l.again()
	}
	if l.crash.After != "" {
		l.cluster.server.Put(apiPod(l.t, l.crash.After))
	} else {
		l.cluster.server.End("default", "web", 30)
	}
	l.cluster.server.Calls()
}

// apiPod returns a pod as an API server has it after its creation.
func apiPod(t *testing.T, manifest string) *v1.Pod {
	t.Helper()
	pod := podspectest.Desired(t, manifest).Pod.DeepCopy()
	pod.Spec.NodeName, pod.Status.Phase = "n1", v1.PodPending
	return pod
}

func unusedPort(t *testing.T) int {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(context.WithoutCancel(t.Context()), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()                     //nolint:errcheck // it was only used to find the port
	return l.Addr().(*net.TCPAddr).Port // it listens on TCP
}

// points returns the points before and after each change that the agent makes in the API server, and those whose answer
// is lost.
func (a *apiLab) points() []point {
	if a == nil {
		return nil
	}
	var points []point
	count := map[string]int{}
	for _, call := range a.server.Calls() {
		if strings.HasSuffix(call, " events") || strings.HasSuffix(call, " leases") {
			continue // Their number depends on the time.
		}
		count[call]++
		nth := count[call]
		add := func(when string, disturb func(kill func()) apitest.Disturbance) {
			points = append(points, point{fmt.Sprintf("%s %s %d", when, call, nth), func(l *crashLab) bool {
				return l.killed(func(kill func()) { l.cluster.server.Disturb(disturb(kill)) })
			}})
		}
		add("before", func(kill func()) apitest.Disturbance { return apitest.Disturbance{Call: call, Nth: nth, Before: kill} })
		add("after", func(kill func()) apitest.Disturbance { return apitest.Disturbance{Call: call, Nth: nth, After: kill} })
		points = append(points, point{fmt.Sprintf("lost %s %d", call, nth), func(l *crashLab) bool {
			var lost atomic.Bool
			l.cluster.server.Disturb(apitest.Disturbance{Call: call, Nth: nth, After: func() { lost.Store(true) }, Lose: true})
			l.again()
			return lost.Load()
		}})
	}
	return sample(points, nodePointsTried)
}

// nodePointsTried is the number of changes in the API server per shape in a normal run of the tests.
const nodePointsTried = 6

// state describes the pods of the API server.
func (a *apiLab) state() (lines []string) {
	if a == nil {
		return nil
	}
	for _, pod := range a.server.Pods() {
		line := fmt.Sprintf("api pod %s %s generation %d", pod.Name, pod.Status.Phase, pod.Status.ObservedGeneration)
		for i := range pod.Status.ContainerStatuses {
			c := &pod.Status.ContainerStatuses[i]
			line += fmt.Sprintf(", %s %s ready %t", c.Name, c.Image, c.Ready)
		}
		lines = append(lines, line)
	}
	return lines
}

func (a *apiLab) calm() {
	if a != nil {
		a.server.Calm()
	}
}

func (a *apiLab) close() {
	if a != nil {
		a.web.CloseClientConnections()
		a.web.Close()
	}
}
