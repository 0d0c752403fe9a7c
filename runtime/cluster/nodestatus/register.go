package nodestatus

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/sleep"
)

// The pause between two tries of a registration, which doubles (kubelet: registerWithAPIServer).
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 7 * time.Second
)

// patchFirst limits the first update of a Node that exists. The limit doubles with each update that it ends, up to
// patchLongest, so that a slow server has its time.
const patchFirst, patchLongest = HeartbeatTimeout, time.Hour

// register registers the node. It tries until it succeeds or the context ends.
func (m *Manager) register(ctx context.Context) {
	limit := patchFirst
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, longestPause) {
		var node *v1.Node
		err := m.Cluster.Confirm(ctx)
		if err == nil {
			node, err = m.tryRegister(ctx, limit)
		}
		if errors.Is(err, context.DeadlineExceeded) {
			limit = min(2*limit, patchLongest)
		}
		if m.failures.Warn(ctx, m.Log, "cannot register the node", err, "node", m.Name); err == nil {
			m.registered(node)
			return
		}
		_ = sleep.For(ctx, pause) // the loop checks the context
	}
}

// tryRegister creates the Node, or updates the existing one, and returns it (kubelet: tryRegisterWithAPIServer).
// limit is that of the update.
func (m *Manager) tryRegister(ctx context.Context, limit time.Duration) (*v1.Node, error) {
	facts := m.facts()
	initial := newNode(&m.Node, facts)
	created, err := apiclient.Do[v1.Node](ctx, m.Client.Core.Post().Resource(nodes).Body(initial))
	if err == nil {
		err = checkNode(created, m.Name)
	}
	if err == nil {
		m.record(eventsOf(&v1.Node{}, initial)...)
		return created, nil
	}
	// A server may forbid creation although the Node exists.
	if !apierrors.IsAlreadyExists(err) && !apierrors.IsForbidden(err) {
		return nil, err
	}
	existing, getErr := apiclient.Do[v1.Node](ctx, m.Client.Core.Get().Resource(nodes).Name(m.Name))
	if getErr == nil {
		getErr = checkNode(existing, m.Name)
	}
	switch {
	case getErr != nil && apierrors.IsForbidden(err):
		return nil, err // It explains more than that the Node is not there.
	case getErr != nil:
		return nil, getErr
	}
	node, changed := reconcile(initial, existing)
	if m.Cluster.IsNew() {
		changed = resetDevices(&node.Status) || changed
	}
	if !changed {
		return existing, nil
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return patchStatus(limited, m.Client, existing, node)
}

// checkNode returns an error if an answer is not this Node, such as an empty object of a proxy.
func checkNode(node *v1.Node, name string) error {
	if node.UID == "" || node.Name != name {
		return errors.New("the API server answers without the node")
	}
	return nil
}

// registered records a registration. If that fails, recordAgain tries again.
func (m *Manager) registered(node *v1.Node) {
	m.copies.answered(node)
	before, err := m.Cluster.Registered(node.UID, m.facts().Machine.BootID)
	switch {
	case err != nil:
		m.unrecorded = node.UID
		m.Log.Error("the registration of the node is not recorded", "error", err.Error())
	case before != nil && before.UID != "" && before.UID != node.UID:
		m.Log.Warn("the node was deleted in the API server, and is registered again", "node", m.Name)
	default:
		m.Log.Info("registered", "node", m.Name)
	}
	if m.Registered != nil {
		m.Registered()
	}
}

// recordAgain records the registration if that has failed, for example because the disk was full. Without the record,
// the next start of the agent would wait for the API server, and any cluster would be the right one.
func (m *Manager) recordAgain() {
	if m.unrecorded == "" {
		return
	}
	if _, err := m.Cluster.Registered(m.unrecorded, m.facts().Machine.BootID); err == nil {
		m.unrecorded = ""
		m.Log.Info("the registration of the node is recorded")
	}
}
