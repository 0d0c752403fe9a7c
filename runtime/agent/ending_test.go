package agent

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/shutdown"
	"github.com/podctl/podctl/runtime/agent/sources"
)

// closed reports whether a channel is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// makes adds a pod to a source, and waits until it runs.
func (l *life) makes(name, uid string) {
	l.t.Helper()
	l.wants["one"][name] = l.manifest("one", name, uid, 1)
	l.sendUpdate("one")
	l.sendUpdate("two")
	l.rest(0)
	if l.runs(l.wants["one"][name].Pod.UID) == nil {
		l.t.Fatal("the container does not run")
	}
}

// deliverAll delivers all pending mail to the agent's loop.
func (l *life) deliverAll() {
	for len(l.mail) > 0 {
		l.deliver()
	}
}

// TestShutdownWaitsForDeletions checks that a shutdown waits for pods that are being deleted, and not for those that
// would be recreated afterwards.
func TestShutdownWaitsForDeletions(t *testing.T) {
	for name, again := range map[string]bool{"gone": false, "applied again": true} {
		t.Run(name, func(t *testing.T) {
			l := newStill(t)
			l.makes("a", "a1")
			d := l.wants["one"]["a"]
			delete(l.wants["one"], "a")
			l.sendUpdate("one")
			l.deliverAll()
			if again {
				l.wants["one"]["a"] = d
				l.sendUpdate("one")
				l.deliverAll()
			}
			done := l.agent.stopper.begin(shutdown.Settings{Within: 30 * time.Second})
			l.wake = l.agent.begin(l.ctx)
			if closed(done) {
				t.Fatal("the shutdown continues while a container runs")
			}
			l.rest(time.Second)
			if !closed(done) || l.runs("a1") != nil {
				t.Errorf("after the deletion: done %t, running %+v", closed(done), l.runs("a1"))
			}
			l.agent.stopper.cancel()
			l.rest(time.Second)
			if runs := l.runs("a1") != nil; runs != again {
				t.Errorf("pod runs after the shutdown was canceled: %t", runs)
			}
		})
	}
}

// TestShutdownIgnoresDeletedPods checks a pod that a user has deleted and whose pass finds that while the
// shutdown begins.
func TestShutdownIgnoresDeletedPods(t *testing.T) {
	l := newStill(t)
	l.makes("a", "a1")
	l.removes(l.runs("a1")).do()
	l.deliverAll()
	delete(l.pods, "a1")
	for len(l.tasks) > 0 {
		l.run(l.tasks[0])
	}
	done := l.agent.stopper.begin(shutdown.Settings{Within: 30 * time.Second})
	l.wake = l.agent.begin(l.ctx)
	l.rest(2 * time.Second)
	if !closed(done) {
		t.Error("the shutdown waits for a deleted pod")
	}
}

// TestShutdownOfANode checks that a shutdown with the rules of a kubelet ends pods of the API server as Failed, and
// rejects those that arrive meanwhile. They do not run after it is canceled, or with the next agent. Others do.
func TestShutdownOfANode(t *testing.T) {
	l := newLab(t)
	api, files := newAPIChannel(), newChannel()
	a, stop := l.runBoth(api, files)
	one, two, file := l.withUID("uid-1", "i:1"), l.withUID("uid-2", "i:1"), l.manifest("web", "i:1")
	files.updates <- []*podspec.Desired{file}
	api.updates <- sources.Update{Pods: []*podspec.Desired{one}}
	l.untilStates(a, "both run", map[types.UID]string{file.Pod.UID: "Running", "uid-1": "Running"})
	if err := a.StopPods(t.Context(), shutdown.Settings{Within: 30 * time.Second, Fail: true}); err != nil {
		t.Fatal(err)
	}
	if now := l.running(); len(now) > 0 {
		t.Errorf("pods run after the shutdown: %v", now)
	}
	both := []*podspec.Desired{one, two}
	api.updates <- sources.Update{Pods: both}
	failed := func(d *podspec.Desired) string {
		pods, err := a.List(t.Context(), []*podspec.Desired{d})
		if err != nil {
			t.Fatal(err)
		}
		s := pods[0].Status
		text := fmt.Sprintf("%s %s: %s", s.Phase, s.Reason, s.Message)
		for _, c := range s.Conditions {
			if c.Type == v1.DisruptionTarget {
				text += " " + c.Reason
			}
		}
		return text
	}
	want := map[*podspec.Desired]string{
		one: "Failed Terminated: Pod was terminated in response to imminent node shutdown. TerminationByKubelet",
		two: "Failed NodeShutdown: Pod was rejected: Pod was rejected as the node is shutting down.",
	}
	check := func(when string) {
		t.Helper()
		for d, text := range want {
			got := ""
			l.until(when, func() bool { got = failed(d); return got == text })
		}
	}
	check("during the shutdown")
	a.ResumePods(t.Context())
	l.until("the pod of the file runs", func() bool { return len(l.running()) == 1 })
	check("after the shutdown")
	stop()
	a, stop = l.runBoth(api, files)
	files.updates <- []*podspec.Desired{file}
	api.updates <- sources.Update{Pods: both}
	check("with the next agent")
	if now := l.running(); len(now) != 1 {
		t.Errorf("with the next agent: %v", now)
	}
	stop()
}
