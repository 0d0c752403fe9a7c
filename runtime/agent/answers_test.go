package agent

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// TestAnswersAtTheEnd checks that an agent still answers after its last pass until Settings.Ending returns, and that no
// pass begins then. The last pass either ends or is cut off by Settings.LastPasses.
func TestAnswersAtTheEnd(t *testing.T) {
	for name, lastPasses := range map[string]time.Duration{"the pass ends": 0, "the pass is cut off": 1} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			proxy := l.behindProxy()
			api, files := newAPIChannel(), newChannel()
			var a *Agent
			var ended bool
			l.lastPasses, l.ending = lastPasses, func() {
				ended = true
				running := inLoop(l, a, func() int { a.workers.WakeAll(a.now()); return len(a.running) })
				if wait := lastPasses == 0; wait != (running == 0) {
					t.Errorf("%d passes run at the end", running)
				}
				if all := states(t, a); len(all) != 2 || all["uid-2"] != "Running" {
					t.Errorf("at the end: %v", all)
				}
				if now := inLoop(l, a, func() int { return len(a.running) }); now > running {
					t.Errorf("%d passes have begun at the end", now-running)
				}
			}
			a, stop := l.runBoth(api, files)
			pods := []*podspec.Desired{l.withUID("uid-1", "i:1"), l.withUID("uid-2", "i:1")}
			api.updates <- sources.Update{Pods: pods}
			l.untilStates(a, "both run", map[types.UID]string{"uid-1": "Running", "uid-2": "Running"})
			proxy.Disturb(runtimetest.Disturbance{Method: "StopContainer", Hang: true})
			api.updates <- sources.Update{Pods: pods, Ending: map[types.UID]int64{"uid-1": 30}}
			l.until("the stop hangs", func() bool { return proxy.Count("StopContainer") == 1 })
			if lastPasses == 0 {
				go func() { <-api.stopped; proxy.Break() }()
			}
			if stop(); !ended {
				t.Error("Settings.Ending was not called")
			}
			if lastPasses > 0 {
				proxy.Break()
				a.settings.LastPasses = 0
				a.drain()
			}
		})
	}
}
