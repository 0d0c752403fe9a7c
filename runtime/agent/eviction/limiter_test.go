package eviction

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/runtime/model"
)

// limitLab simulates the pods of a Limiter. It runs in a bubble of synctest.
type limitLab struct {
	// mu guards the other fields.
	mu   sync.Mutex
	pods []*v1.Pod
	// used is the usage of each pod's volume v0 in KiB. slow is how long its measurement takes. fail is its error.
	used map[types.UID]int64
	slow map[types.UID]time.Duration
	fail map[types.UID]error
	// checked and evicted list what was done, with the time since the start.
	checked, evicted []string
	began            time.Time
	log              bytes.Buffer
	refuses          bool
}

func newLimitLab() *limitLab {
	return &limitLab{
		used: map[types.UID]int64{}, slow: map[types.UID]time.Duration{}, fail: map[types.UID]error{}, began: time.Now(),
	}
}

// pod adds a pod whose volume has this sizeLimit.
func (l *limitLab) pod(name, limit string) *v1.Pod {
	pod := limitedPod(nil, []string{limit})
	pod.Name, pod.UID = name, types.UID(name)
	l.pods = append(l.pods, pod)
	return pod
}

// after changes the lab after some time.
func (l *limitLab) after(d time.Duration, change func()) {
	time.AfterFunc(d, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		change()
	})
}

func (l *limitLab) at(uid types.UID) string { return fmt.Sprintf("%s %s", uid, time.Since(l.began)) }

func (l *limitLab) measure(ctx context.Context, pod *v1.Pod) (*Usage, error) {
	l.mu.Lock()
	l.checked = append(l.checked, l.at(pod.UID))
	slow := time.After(l.slow[pod.UID])
	l.mu.Unlock()
	select {
	case <-slow:
	case <-ctx.Done():
		return &Usage{}, ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	used := Disk{Bytes: l.used[pod.UID] << 10}
	return &Usage{Volumes: []VolumeUsage{{Name: "v0", Disk: used, Local: true}}}, l.fail[pod.UID]
}

func (l *limitLab) Active(context.Context) []*v1.Pod {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.pods)
}

func (l *limitLab) Evict(_ context.Context, uid types.UID, why *model.Eviction) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuses {
		return errors.New("busy")
	}
	l.evicted = append(l.evicted, l.at(uid)+" "+why.Signal)
	l.pods = slices.DeleteFunc(l.pods, func(p *v1.Pod) bool { return p.UID == uid })
	return nil
}

func (l *limitLab) Pressure([]v1.NodeConditionType) {}

// run runs a Limiter for a while.
func (l *limitLab) run(t *testing.T, lasts time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	limiter := NewLimiter(l.measure, time.Now, slog.New(slog.NewTextHandler(&l.log, nil)))
	go limiter.Run(ctx, l)
	time.Sleep(lasts)
	synctest.Wait()
	cancel()
	synctest.Wait()
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// TestLimiter checks that limited pods are measured every ten seconds, and evicted once they exceed a limit. Pods
// without limits and critical pods are not measured.
func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimitLab()
		l.pod("free", "")
		l.pod("critical", "1").Spec.Priority = new(int32(2_000_000_000))
		l.pod("a", "10Ki")
		l.used["a"], l.used["critical"] = 10, 10
		l.after(15*time.Second, func() { l.used["a"] = 11 })
		l.run(t, 35*time.Second)
		expect(t, "checked", l.checked, "a 0s", "a 10s", "a 20s")
		expect(t, "evicted", l.evicted, "a 20s emptydirfs.limit")
	})
}

// TestSlowChecks checks that a slow check delays no other pod, and that pauses follow it in proportion.
func TestSlowChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimitLab()
		l.pod("slow", "10Ki")
		l.slow["slow"] = 12500 * time.Millisecond
		l.after(5*time.Second, func() { l.pod("fast", "10Ki"); l.used["fast"] = 11 })
		l.run(t, 131*time.Second)
		expect(t, "checked", l.checked, "slow 0s", "fast 10s", "slow 2m10s")
		expect(t, "evicted", l.evicted, "fast 10s emptydirfs.limit")
	})
}

// TestFailedChecks checks that an error is logged when it changes, that known usage counts also with an error, and that an
// eviction that fails is tried again.
func TestFailedChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimitLab()
		l.pod("a", "10Ki")
		l.fail["a"] = errors.New("no runtime")
		l.after(25*time.Second, func() { l.used["a"], l.refuses = 11, true })
		l.after(45*time.Second, func() { l.refuses = false })
		l.run(t, 55*time.Second)
		expect(t, "evicted", l.evicted, "a 50s emptydirfs.limit")
		text := l.log.String()
		if strings.Count(text, "\n") != 3 || !strings.Contains(text, "evicting the pod: busy") {
			t.Error(text)
		}
	})
}

// TestLimiterEnds checks that the end of the context ends a check that waits.
func TestLimiterEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimitLab()
		l.pod("slow", "10Ki")
		l.slow["slow"], l.used["slow"] = time.Hour, 11
		l.run(t, time.Second)
		expect(t, "evicted", l.evicted)
	})
}
