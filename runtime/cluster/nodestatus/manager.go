package nodestatus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	utilwait "k8s.io/apimachinery/pkg/util/wait"

	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/cluster/apierror"
	"github.com/podctl/podctl/runtime/cluster/listwatch"
	"github.com/podctl/podctl/runtime/cluster/membership"
	"github.com/podctl/podctl/runtime/sleep"
)

// Settings configure a Manager. Every field but Registered is required.
type Settings struct {
	Node

	// Cluster decides whether the API server is that of this machine's cluster, and records the registration.
	Cluster Cluster
	// Client registers and watches the Node. Heartbeat sends statuses and the lease.
	Client    *apiclient.Client
	Heartbeat *Heartbeat
	// Facts returns the facts of this moment, without Now. Record sends an event of the Node. They must not block.
	Facts  func() Facts
	Record func(Event)
	// Random returns numbers in [0, 1).
	Random func() float64
	Log    *slog.Logger
	// Registered is called after each start of the agent, once the Node is registered.
	Registered func()
}

// Cluster is the cluster that this machine belongs to.
type Cluster interface {
	// Confirm returns an error if another cluster answers, or if that cannot be known now.
	Confirm(ctx context.Context) error
	// IsNew reports whether this machine has not registered the node yet.
	IsNew() bool
	// Registered records a registration, and returns the record before; nil if there was none.
	Registered(uid types.UID, bootID string) (before *membership.Record, err error)
}

// Manager keeps the Node and its lease. Wake and Get may be called from any goroutine.
type Manager struct {
	Settings

	copies copies
	wake   chan struct{}
	// mu guards sent.
	mu   sync.Mutex
	sent Sent

	// The goroutine of Run has the following fields.
	pace          pace
	unschedulable bool
	// unrecorded is the uid of the registered Node if it could not be recorded.
	unrecorded types.UID
	// settled is set once readiness was sent, or could not be sent, before the first interval ended.
	settled  bool
	failures apierror.Once
}

// NewManager returns a manager. It sends nothing before Run.
func NewManager(s Settings) *Manager {
	m := &Manager{Settings: s, wake: make(chan struct{}, 1)}
	m.copies.changed = m.Wake
	return m
}

// Wake reports that a condition may have changed. If so, the status is sent at once.
func (m *Manager) Wake() { sleep.Wake(m.wake) }

// Get returns the newest copy of the Node, which must not be changed. It returns nil before the registration, and if
// the Node was deleted.
func (m *Manager) Get() *v1.Node { return m.copies.newest() }

// Run registers the node, and then keeps its status and its lease until the context ends. A Node that is deleted in the
// API server is registered again when the agent starts again, as with a kubelet.
func (m *Manager) Run(ctx context.Context) {
	m.Record(starting())
	m.register(ctx)
	if ctx.Err() != nil {
		return
	}
	var parts sync.WaitGroup
	defer parts.Wait()
	parts.Go(func() { m.watch(ctx) })
	parts.Go(func() { m.keepLease(ctx) })
	m.report(ctx)
}

// watch keeps the copy of the Node.
func (m *Manager) watch(ctx context.Context) {
	log := &listwatch.Log{To: m.Log, What: "the Node"}
	listwatch.New(listwatch.Settings{
		Client: m.Client.Core, Resource: nodes, Object: &v1.Node{}, List: &v1.NodeList{},
		Report: log.Report, Works: log.Works,
		Fields:  fields.OneTermEqualSelector(metav1.ObjectNameField, m.Name),
		Backoff: utilwait.Backoff{Duration: computeEvery / 10, Cap: computeEvery, Steps: 4, Factor: 2, Jitter: 1},
		Confirm: m.Cluster.Confirm,
	}, m.copies.store()).RunWithContext(quiet(ctx))
}

// facts returns the facts of this moment.
func (m *Manager) facts() *Facts {
	f := m.Facts()
	f.Now = time.Now()
	return &f
}

func (m *Manager) record(events ...Event) {
	for _, e := range events {
		m.Record(e)
	}
}

// wakeEvery is the shortest time between two statuses that are sent at once. It limits a dispute with another program
// about a condition.
const wakeEvery = time.Second

// cause is why a status is computed.
type cause int

const (
	// interval is the regular interval: any change is sent, and a status without changes from time to time.
	interval cause = iota
	// woken means that a condition may have changed: only such a change is sent.
	woken
	// fast repeats until the node is ready: only readiness is sent.
	fast
)

// report computes the status again and again, and sends it if it is due.
func (m *Manager) report(ctx context.Context) {
	begun, next, wake := time.Now(), time.Now(), false
	var last, tried time.Time
	for ctx.Err() == nil {
		at, why := next, interval
		if soon := tried.Add(fastEvery); m.becomesReady(begun) && soon.Before(at) {
			at, why = soon, fast
		}
		if soon := last.Add(wakeEvery); wake && soon.Before(at) {
			at, why = soon, woken
		}
		if left := time.Until(at); left > 0 {
			wake = m.rest(ctx, left) || wake
			continue
		}
		if why == interval {
			m.recordAgain()
		}
		early := m.update(ctx, why)
		tried = time.Now()
		if why != fast {
			last, wake = tried, false
		}
		switch {
		case why == interval && early:
			next = tried.Add(fastEvery)
		case why == interval:
			next = tried.Add(pause(m.Random()))
		}
	}
}

// becomesReady reports whether a node that started is not ready yet (kubelet: fastStatusUpdateOnce).
func (m *Manager) becomesReady(begun time.Time) bool {
	node := m.copies.newest()
	return node != nil && !m.settled && time.Since(begun) < fastFor && statusOf(node, v1.NodeReady) != v1.ConditionTrue
}

// rest waits for a time. It reports whether Wake was called.
func (m *Manager) rest(ctx context.Context, d time.Duration) (woken bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-m.wake:
		return true
	}
	return false
}

// tries is how often an update is tried (kubelet: nodeStatusUpdateRetry).
const tries = 5

// update sends the status if it is due, unless it is too early. The first try starts from the watched copy, the others
// from the server's.
func (m *Manager) update(ctx context.Context, why cause) (early bool) {
	facts := m.facts()
	if facts.Early {
		return true
	}
	var err error
	left := tries
	if why == fast {
		left = 1
	}
	for try := 0; try < left && ctx.Err() == nil; try++ {
		if err = m.Cluster.Confirm(ctx); err != nil {
			break
		}
		var base *v1.Node
		if base, err = m.base(ctx, try); err == nil {
			err = m.send(ctx, base, facts, why)
		}
		if err == nil {
			break
		}
		if try > 0 {
			m.Heartbeat.CloseAll()
		}
	}
	m.failures.Warn(ctx, m.Log, "cannot update the status of the node", err, "node", m.Name)
	return false
}

// base returns the version from which a try starts: for the first the newest copy, for the others that of the server.
func (m *Manager) base(ctx context.Context, try int) (*v1.Node, error) {
	if try > 0 {
		node, err := apiclient.Do[v1.Node](ctx, m.Heartbeat.Core.Get().Resource(nodes).Name(m.Name))
		switch {
		case apierror.IsAbsent(err):
			return nil, errDeleted
		case err != nil:
			return nil, fmt.Errorf("read the node: %w", err)
		}
		if err = checkNode(node, m.Name); err != nil {
			return nil, err
		}
		m.copies.answered(node)
		return node, nil
	}
	if node := m.copies.newest(); node != nil {
		return node, nil
	}
	return nil, errDeleted
}

var errDeleted = errors.New("the node was deleted in the API server: start the agent again to register it")

// send sends the status if it is due.
func (m *Manager) send(ctx context.Context, base *v1.Node, facts *Facts, why cause) error {
	if base.Spec.Unschedulable != m.unschedulable {
		m.unschedulable = base.Spec.Unschedulable
		m.record(schedulable(base))
	}
	node := withFacts(base, facts)
	changed := hasChanged(base, node)
	if !m.due(base, node, changed, why) {
		return nil
	}
	m.settled = m.settled || why == fast
	updated, err := patchStatus(ctx, m.Heartbeat.Client, base, node)
	if apierror.IsAbsent(err) {
		return errDeleted
	}
	if err != nil {
		return err
	}
	m.noteSent(&m.sent.Status)
	m.pace = m.pace.Next(facts.Now, changed, m.Random())
	m.copies.answered(updated)
	m.record(eventsOf(base, node)...)
	return nil
}

// due reports whether a status is sent now.
func (m *Manager) due(base, node *v1.Node, changed bool, why cause) bool {
	switch why {
	case fast:
		return statusOf(node, v1.NodeReady) == v1.ConditionTrue
	case woken:
		return conditionsChanged(base, node)
	case interval:
	}
	return changed || m.pace.Due(time.Now())
}
