package statuses

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/runtime/model"
)

// life is a random life of the pod web, with random failures of the API server.
type life struct {
	*cluster

	rand *rand.Rand
	// step counts the changes, which the message of the status shows.
	step  int
	phase v1.PodPhase
	// restarts is the restart count of the container.
	restarts int
}

// text returns the status of the pod here as YAML.
func (l *life) text() string {
	state := "running: {}"
	if l.phase != v1.PodRunning {
		state = "terminated: {exitCode: 1}"
	}
	const format = "{name: app, containerID: 'c://%d', restartCount: %d, state: {%s}}"
	container := fmt.Sprintf(format, l.restarts, l.restarts, state)
	return fmt.Sprintf("{phase: %s, message: m%d, containerStatuses: [%s]}", l.phase, l.step, container)
}

// act makes one random change here or in the API server.
func (l *life) act(client Sender) {
	switch l.rand.IntN(10) {
	case 0, 1, 2, 3:
		l.step++
		if l.phase == v1.PodRunning && l.rand.IntN(3) == 0 {
			l.restarts++
		}
		l.becomes(l.text())
	case 4:
		faults := []fault{
			disconnect,
			hang,
			l.answersNothing,
			html(502),
			refuses(500, "", ""),
			refuses(429, metav1.StatusReasonTooManyRequests, "2"),
		}
		l.set(func() { l.faults = append(l.faults, faults[l.rand.IntN(len(faults))]) })
	case 5:
		l.set(func() { l.broken = disconnect })
	case 6:
		l.set(func() { l.broken = nil })
		l.Wake()
	case 7:
		l.edit("default/web", func(p *v1.Pod) { p.Labels = map[string]string{"step": fmt.Sprint(l.step)} })
	case 8:
		l.set(func() { l.stopped = !l.stopped; l.catchUp() })
	case 9:
		l.end()
		l.start(client)
	}
	l.passes(time.Duration(l.rand.IntN(3000)) * time.Millisecond)
}

// catchUp lets the watch report what it has missed.
func (l *life) catchUp() {
	if l.stopped {
		return
	}
	if p := l.pods["default/web"]; p != nil && p.UID == "u1" {
		l.watched["u1"] = p
	} else {
		delete(l.watched, "u1")
	}
}

// check reports a step backward in the statuses that the API server has stored.
func (l *life) check(seen []v1.PodStatus) {
	for i := 1; i < len(seen); i++ {
		before, after := seen[i-1], seen[i]
		if model.IsOver(&before) && after.Phase != before.Phase {
			l.t.Errorf("the phase goes from %s to %s", before.Phase, after.Phase)
		}
		if stepOf(after.Message) < stepOf(before.Message) {
			l.t.Errorf("the status goes from %s to %s", before.Message, after.Message)
		}
		if len(before.ContainerStatuses) > 0 &&
			after.ContainerStatuses[0].RestartCount < before.ContainerStatuses[0].RestartCount {
			l.t.Errorf("the restart count goes back")
		}
	}
}

func stepOf(message string) (step int) {
	_, _ = fmt.Sscanf(message, "m%d", &step)
	return step
}

// TestRandomLives checks that whatever the API server does, statuses never go back, the newest one arrives, and the pod
// is deleted in the end.
func TestRandomLives(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inBubble(t, func(c *cluster) {
				l := &life{cluster: c, rand: rand.New(rand.NewPCG(seed, 1)), phase: v1.PodRunning}
				client := c.Sender
				var seen []v1.PodStatus
				c.set(func() { c.observe = func(p *v1.Pod) { seen = append(seen, *p.Status.DeepCopy()) } })
				c.becomes(l.text())
				for range 40 {
					l.act(client)
				}
				l.phase, l.step = v1.PodFailed, l.step+1
				c.deleted()
				c.is(l.text(), reclaimed)
				c.Mark("u1")
				for range 10 {
					l.passes(time.Duration(l.rand.IntN(3000)) * time.Millisecond)
				}
				c.set(func() { c.broken, c.faults, c.stopped = nil, nil, false; l.catchUp() })
				c.Wake()
				l.passes(20 * time.Second)
				c.set(l.catchUp)
				l.passes(time.Minute)
				l.check(seen)
				if last := seen[len(seen)-1]; last.Message != fmt.Sprintf("m%d", l.step) || last.Phase != v1.PodFailed {
					t.Errorf("the last status is %s %s of %d", last.Phase, last.Message, l.step)
				}
				if pod := c.pods["default/web"]; pod != nil {
					t.Errorf("the pod is still there: %v", c.log())
				}
				deletes := slices.DeleteFunc(c.log(), func(r string) bool { return r != "DELETE default/web" })
				if n := len(deletes); n > 8 {
					t.Errorf("%d requests to delete it", n)
				}
			})
		})
	}
}
