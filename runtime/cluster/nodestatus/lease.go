package nodestatus

import (
	"context"
	"errors"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/apimachinery/lease"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// leaseSeconds is the duration of the lease. It is renewed four times in that time (kubelet: nodeLeaseDurationSeconds,
// nodeLeaseRenewIntervalFraction).
const leaseSeconds = 40

// keepLease renews the lease of the node until the context ends. The lease then expires.
func (m *Manager) keepLease(ctx context.Context) {
	c := lease.NewController(clock.RealClock{}, m.Heartbeat, m.Name, leaseSeconds, m.Heartbeat.CloseAll,
		computeEvery, m.Name, v1.NamespaceNodeLease, m.ownLease)
	c.Run(quiet(ctx))
}

// quiet returns a context for libraries that would log each failure of a request. The state of the connection shows
// them.
func quiet(ctx context.Context) context.Context { return klog.NewContext(ctx, klog.New(nil)) }

// ownLease sets the Node as the owner of a lease (kubelet: SetNodeOwnerFunc).
func (m *Manager) ownLease(l *coordinationv1.Lease) error {
	if len(l.OwnerReferences) > 0 {
		return nil
	}
	node := m.copies.newest()
	if node == nil {
		return errors.New("the node is not registered")
	}
	l.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: m.Name, UID: node.UID}}
	return nil
}
