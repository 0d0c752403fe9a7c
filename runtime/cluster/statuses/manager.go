package statuses

import (
	"context"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/sleep"
)

// Shown is a pod of the API server that the agent keeps.
type Shown struct {
	// Desired is the version that the last pass applied. Its metadata has the uid and the generation.
	Desired *podspec.Desired
	// MayRun reports that a container of the pod may run although its status shows none, because a pass may start one.
	// The terminal phase is sent only after that (kubelet: PodCouldHaveRunningContainers).
	MayRun bool
	// Reclaimed reports that the pod has ended for good, and that its volumes and its cgroup are removed (kubelet:
	// podIsFinished). Only then podctl sends DELETE.
	Reclaimed bool
}

// Pods are the pods of the agent.
type Pods interface {
	// Shown returns all pods of the API server that the agent keeps.
	Shown(ctx context.Context) ([]Shown, error)
	// List returns pods with their current status. A pod that could not be observed has the phase Unknown or is
	// missing.
	List(ctx context.Context, pods []*podspec.Desired) ([]*v1.Pod, error)
}

// Copies are the watched copies of the pods in the API. They must not be changed. It must not block.
type Copies interface {
	// Get returns the newest watched copy of a pod; nil if the API has none.
	Get(uid types.UID) *v1.Pod
	// Listed reports whether the list of pods has been read. Until then a missing copy means nothing.
	Listed() bool
}

// Sender makes requests to the API server, each once. A pod with the same name and another uid is a conflict.
type Sender interface {
	// Patch changes the status of a pod by a strategic merge patch, and returns the changed pod.
	Patch(ctx context.Context, pod model.PodRef, body []byte) (*v1.Pod, error)
	// Get reads a pod by its name. The answer may have another uid.
	Get(ctx context.Context, pod model.PodRef) (*v1.Pod, error)
	// Delete deletes a pod with the grace period 0, if it has this uid.
	Delete(ctx context.Context, pod model.PodRef) error
}

// Settings are the settings of a Manager. Every field is required.
type Settings struct {
	Pods   Pods
	Copies Copies
	Sender Sender
	// Confirm is called before each request. Its error is that of the request, which is not made.
	Confirm func(ctx context.Context) error
	// Sent is notified of each status that the API has now, with the time since its change. It must not block.
	Sent func(took time.Duration)
	Log  *slog.Logger
}

// Manager sends statuses. Its methods may be called from any goroutine, and none blocks except Run.
type Manager struct {
	Settings

	// mu guards the following fields, and signal reports that they have changed. marked has the pods that must be
	// observed, and when.
	mu      sync.Mutex
	marked  map[types.UID]time.Time
	changed map[types.UID]bool
	woken   bool
	summary Summary
	signal  chan struct{}
}

// Summary is the state of a Manager.
type Summary struct {
	// Unsent are the uids of the pods whose newest status the API may not have.
	Unsent []types.UID
	// Settled is set if nothing is to be observed or sent.
	Settled bool
	// LastSent is the time of the last successful request; zero before the first.
	LastSent time.Time
	// Failure is the last failure of a request for one of the Unsent pods; empty if there is none.
	Failure string
}

// New returns a manager. It sends nothing before Run.
func New(s Settings) *Manager {
	return &Manager{
		Settings: s, marked: map[types.UID]time.Time{}, changed: map[types.UID]bool{}, signal: make(chan struct{}, 1),
	}
}

// Mark reports that the status of a pod may have changed on this machine.
func (m *Manager) Mark(uid types.UID) { m.mark(uid, observeSoon) }

// MarkLater is like Mark for a change that others soon follow. It is observed together with them, if they are fast.
func (m *Manager) MarkLater(uid types.UID) { m.mark(uid, observeLater) }

func (m *Manager) mark(uid types.UID, delay time.Duration) {
	at := time.Now().Add(delay)
	m.note(func() {
		if before, is := m.marked[uid]; !is || at.Before(before) {
			m.marked[uid] = at
		}
	})
}

// Changed reports that the watched copy of a pod has changed.
func (m *Manager) Changed(uid types.UID) { m.note(func() { m.changed[uid] = true }) }

// Wake reports that the API server responds again, and that the list of pods is current. All pending statuses are sent
// at once.
func (m *Manager) Wake() { m.note(func() { m.woken = true }) }

// Summary returns the state of the manager.
func (m *Manager) Summary() Summary {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.summary
	s.Settled = s.Settled && len(m.marked)+len(m.changed) == 0 && !m.woken
	return s
}

func (m *Manager) note(change func()) {
	m.mu.Lock()
	change()
	m.mu.Unlock()
	sleep.Wake(m.signal)
}

// Run sends statuses until the context ends, and then the last ones for at most 1 s.
func (m *Manager) Run(ctx context.Context) {
	l := newLoop(m)
	for l.wait(ctx, l.next()) {
		l.act(ctx)
	}
	l.finish(context.WithoutCancel(ctx))
}
