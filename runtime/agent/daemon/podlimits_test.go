package daemon

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
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podctl/podctl/runtime/admission"
	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/machine"
	"github.com/podctl/podctl/runtime/model"
)

// limited is a machine whose cgroup of all pods a podLimiter limits.
type limited struct {
	podLimiter

	// mu protects all that a test changes while the podLimiter runs.
	mu       sync.Mutex
	node     criconfig.Node
	settings admission.Settings
	missing  bool
	// down is an error of the runtime, and full that of the cgroup, which uses more memory each time.
	down error
	full *cgroup.InUseError
	// kubelet is set if a kubelet has the same cgroups.
	kubelet bool
	// done lists the limits and events.
	done []string
	text bytes.Buffer
}

func newLimited(memory string) *limited {
	m := &limited{node: criconfig.Node{Allocatable: v1.ResourceList{v1.ResourceMemory: resource.MustParse(memory)}}}
	m.podLimiter = podLimiter{
		facts: func(context.Context) (criconfig.Node, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.node, m.down
		},
		kubelet: func() (machine.Kubelet, bool) {
			m.mu.Lock()
			defer m.mu.Unlock()
			return machine.Kubelet{Process: "kubelet", PID: 7}, m.kubelet
		},
		limits: func(n criconfig.Node) (v1.ResourceList, error) { return m.settings.Limits(n.Allocatable) },
		exists: func(string) bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			return !m.missing
		},
		set: func(name string, tiers []string, r cgroup.Resources) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.full != nil {
				m.full.Used += 1 << 20
				used := *m.full
				return &used
			}
			m.done = append(m.done, fmt.Sprintf("%s+%d=%d", name, len(tiers), *r.Memory))
			return nil
		},
		record: func(_, reason, _ string) { m.done = append(m.done, reason) },
		log:    slog.New(slog.NewTextHandler(&m.text, nil)),
	}
	return m
}

// TestPodLimiter checks that the limits are set at the start, after a change of the machine, and if the cgroup is gone,
// and that a failure is tried again, and logged once.
func TestPodLimiter(t *testing.T) {
	const enforced, failed = "NodeAllocatableEnforced", "FailedNodeAllocatableEnforcement"
	for name, c := range map[string]struct {
		begin, change func(*limited)
		want          []string
	}{
		"once": {nil, nil, []string{"/kubepods+2=1000", enforced}},
		"the cgroup is gone": {
			nil, func(m *limited) { m.missing = true }, []string{"/kubepods+2=1000", enforced, "/kubepods+2=1000", enforced},
		},
		"more memory": {
			nil,
			func(m *limited) { m.node.Allocatable = v1.ResourceList{v1.ResourceMemory: resource.MustParse("2000")} },
			[]string{"/kubepods+2=1000", enforced, "/kubepods+2=2000", enforced},
		},
		"reserved memory": {
			func(m *limited) {
				m.settings = admission.Settings{
					Enforce: true, Reserved: v1.ResourceList{v1.ResourceMemory: resource.MustParse("400")},
				}
			},
			nil,
			[]string{"/kubepods+2=600", enforced},
		},
		"all is reserved": {
			func(m *limited) {
				m.settings = admission.Settings{
					Enforce: true, Reserved: v1.ResourceList{v1.ResourceMemory: resource.MustParse("1000")},
				}
			},
			nil,
			[]string{failed},
		},
		"systemd": {
			func(m *limited) { m.node.SystemdCgroup = true }, nil, []string{"/kubepods.slice+2=1000", enforced},
		},
		"the runtime answers later": {
			func(m *limited) { m.down = errors.New("down") },
			func(m *limited) { m.down = nil },
			[]string{"/kubepods+2=1000", enforced},
		},
		"a kubelet": {func(m *limited) { m.kubelet = true }, nil, nil},
		"a kubelet for some time": {
			nil, func(m *limited) { m.kubelet = true }, []string{"/kubepods+2=1000", enforced},
		},
		"a kubelet, and then none": {
			func(m *limited) { m.kubelet = true },
			func(m *limited) { m.kubelet = false },
			[]string{"/kubepods+2=1000", enforced},
		},
		"too much is used": {
			func(m *limited) { m.full = &cgroup.InUseError{Used: 2000, Limit: 1000} },
			func(m *limited) { m.full = nil },
			[]string{failed, "/kubepods+2=1000", enforced},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newLimited("1000")
				if c.begin != nil {
					c.begin(m)
				}
				ctx, cancel := context.WithCancel(t.Context())
				go m.run(ctx)
				time.Sleep(15 * time.Second)
				synctest.Wait()
				if c.change != nil {
					m.mu.Lock()
					c.change(m)
					m.mu.Unlock()
				}
				time.Sleep(limitPeriod)
				synctest.Wait()
				cancel()
				if !slices.Equal(m.done, c.want) {
					t.Errorf("%q", m.done)
				}
				if lines := strings.Count(m.text.String(), "WARN"); lines > 1 {
					t.Errorf("%d lines\n%s", lines, m.text.String())
				}
			})
		})
	}
}

// TestLimitsOfPods checks that unknown memory is no limit, and that the number of tasks is known.
func TestLimitsOfPods(t *testing.T) {
	limits, err := limitsOfPods(&admission.Settings{}, criconfig.Node{Allocatable: v1.ResourceList{v1.ResourceMemory: {}}})
	tasks := limits[model.ResourcePIDs]
	if _, known := limits[v1.ResourceMemory]; err != nil || known || tasks.Sign() <= 0 {
		t.Errorf("%v %v", limits, err)
	}
}
