package agent

import (
	"slices"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// live returns a pod of the source with a liveness probe that fails after one negative answer.
func (l *lab) live() *podspec.Desired {
	l.t.Helper()
	text := `{apiVersion: v1, kind: Pod, metadata: {name: one}, spec: {terminationGracePeriodSeconds: 1, containers: [
		{name: a, image: "i:1", livenessProbe: {exec: {command: [live]}, periodSeconds: 1, failureThreshold: 1}}]}}`
	m, err := load.Load(l.t.Context(), input.Reader{Stdin: strings.NewReader(text)}, "-")
	if err != nil || m.Err() != nil {
		l.t.Fatal(err, m.Err())
	}
	m.Pods[0].Owner = "channel"
	return m.Pods[0]
}

// TestLivenessOnASlowRuntime checks that a container is restarted even if the runtime needs longer to answer than the
// liveness probe needs to fail. The agent has run the probe all the time, so its failure is valid.
func TestLivenessOnASlowRuntime(t *testing.T) {
	l := newLab(t)
	proxy := l.behindProxy()
	c := newChannel()
	_, stop := l.run(c)
	defer stop()
	c.updates <- []*podspec.Desired{l.live()}
	l.until("the pod runs", func() bool { return l.running()["one"] != "" })
	first := l.running()["one"]
	l.server.OnExec(func(id string, _ []string) *runtimeapi.ExecSyncResponse {
		code := int32(0)
		if id == first {
			code = 1
		}
		return &runtimeapi.ExecSyncResponse{ExitCode: code}
	})
	for range 1000 {
		proxy.Disturb(runtimetest.Disturbance{Method: "ListContainers", Delay: 1500 * time.Millisecond})
	}
	stopped := func() bool {
		return slices.ContainsFunc(l.server.Calls(), func(call string) bool { return strings.HasPrefix(call, "StopContainer a") })
	}
	l.until("the container is stopped", stopped)
}
