package shutdown

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// pod returns a pod with a UID, a grace period, and a priority as a class or a number.
func pod(uid, class string, priority, grace int64) *v1.Pod {
	p := &v1.Pod{}
	p.UID, p.Spec.PriorityClassName, p.Spec.TerminationGracePeriodSeconds = types.UID(uid), class, &grace
	if class == "" {
		p.Spec.Priority = new(int32(priority))
	}
	return p
}

// life runs a shutdown in which each pod ends some seconds after its stop, and returns the events with their times.
func life(settings Settings, pods []*v1.Pod, takes map[types.UID]time.Duration) string {
	now := time.Unix(1_700_000_000, 0)
	began := now
	s := New(now, settings, pods)
	ends := map[types.UID]time.Time{}
	runs := func(uid types.UID) bool { return ends[uid].IsZero() || now.Before(ends[uid]) }
	var stops []string
	for {
		stop, wake, done := s.Next(now, runs)
		for _, one := range stop {
			ends[one.UID] = now.Add(takes[one.UID])
			stops = append(stops, fmt.Sprintf("%.0f: %s %ds", now.Sub(began).Seconds(), one.UID, one.Grace))
		}
		if done {
			return strings.Join(append(stops, fmt.Sprintf("%.0f: done", now.Sub(began).Seconds())), ", ")
		}
		for _, end := range ends {
			if end.After(now) && end.Before(wake) {
				wake = end
			}
		}
		now = wake
	}
}

// TestOrder checks that lower priorities end first, each with its share of the time, and that unused time goes to the
// others (kubelet: TestManager, Test_groupByPriority of nodeshutdown).
func TestOrder(t *testing.T) {
	for _, c := range []struct {
		name   string
		within time.Duration
		pods   []*v1.Pod
		takes  map[types.UID]time.Duration
		want   string
	}{
		{"no pods", 30 * time.Second, nil, nil, "0: done"},
		{"one", 30 * time.Second, []*v1.Pod{pod("a", "", 0, 10)}, map[types.UID]time.Duration{"a": 3 * time.Second}, "0: a 10s, 3: done"},
		{
			"its own time is longer",
			20 * time.Second,
			[]*v1.Pod{pod("a", "", 0, 300)},
			map[types.UID]time.Duration{"a": 25 * time.Second},
			"0: a 20s, 20: done",
		},
		{
			"two of one priority and a critical one", 30 * time.Second,
			[]*v1.Pod{pod("node", "system-node-critical", 0, 60), pod("a", "", 5, 60), pod("b", "", 5, 2)},
			map[types.UID]time.Duration{"a": 5 * time.Second, "b": time.Second, "node": time.Second},
			"0: a 15s, 0: b 2s, 5: node 25s, 6: done",
		},
		{
			"one that does not end takes no more than its share", 30 * time.Second,
			[]*v1.Pod{pod("c", "system-cluster-critical", 0, 60), pod("a", "", -10, 60), pod("b", "", 0, 60)},
			map[types.UID]time.Duration{"a": time.Hour, "b": time.Hour, "c": time.Hour},
			"0: a 10s, 10: b 10s, 20: c 10s, 30: done",
		},
		{
			"less time than priorities", time.Second,
			[]*v1.Pod{pod("a", "", 0, 60), pod("b", "", 1, 60)},
			map[types.UID]time.Duration{"a": time.Hour, "b": time.Hour},
			"0: a 1s, 1: b 1s, 2: done",
		},
	} {
		if got := life(Settings{Within: c.within}, c.pods, c.takes); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// TestClasses checks the shutdown of a kubelet: all other pods have the first part of the time, and critical pods the
// rest, but the first part ends early (kubelet: Test_migrateConfig, Test_groupByPriority of nodeshutdown).
func TestClasses(t *testing.T) {
	pods := []*v1.Pod{
		pod("node", "system-node-critical", 0, 60), pod("high", "", 1_999_999_999, 60), pod("low", "", -10, 5),
		pod("cluster", "system-cluster-critical", 0, 60),
	}
	all := map[types.UID]time.Duration{"node": time.Hour, "high": time.Hour, "low": time.Hour, "cluster": time.Hour}
	fast := map[types.UID]time.Duration{"node": time.Second, "high": time.Second, "low": time.Second, "cluster": time.Second}
	settings := Settings{Within: 30 * time.Second, Fail: true, Critical: 10 * time.Second}
	for _, c := range []struct {
		name     string
		settings Settings
		pods     []*v1.Pod
		takes    map[types.UID]time.Duration
		want     string
	}{
		{"slow", settings, pods, all, "0: high 20s, 0: low 5s, 20: node 10s, 20: cluster 10s, 30: done"},
		{"fast", settings, pods, fast, "0: high 20s, 0: low 5s, 1: node 10s, 1: cluster 10s, 2: done"},
		{"critical only", settings, pods[:1], all, "0: node 10s, 10: done"},
		{
			"no time for critical pods",
			Settings{Within: 30 * time.Second, Fail: true},
			pods, all,
			"0: high 30s, 0: low 5s, 30: node 1s, 30: cluster 1s, 31: done",
		},
	} {
		if got := life(c.settings, c.pods, c.takes); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}
