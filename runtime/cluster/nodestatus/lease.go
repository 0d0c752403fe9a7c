package nodestatus

import (
	"context"
	"errors"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/component-helpers/apimachinery/lease"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// leaseSeconds is the duration of the lease. It is renewed four times in that time (kubelet: nodeLeaseDurationSeconds,
// nodeLeaseRenewIntervalFraction).
const leaseSeconds = 40

// keepLease renews the lease of the node until the context ends. The lease then expires.
func (m *Manager) keepLease(ctx context.Context) {
	c := lease.NewController(clock.RealClock{}, renewals{m.Heartbeat, m.sent.noteLease}, m.Name, leaseSeconds, m.Heartbeat.CloseAll,
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

// renewals is a client that notes each renewal of a lease.
type renewals struct {
	kubernetes.Interface

	note func()
}

// CoordinationV1 returns the client for leases.
func (r renewals) CoordinationV1() coordinationclient.CoordinationV1Interface {
	return renewedLeases{r.Interface.CoordinationV1(), r.note}
}

type renewedLeases struct {
	coordinationclient.CoordinationV1Interface

	note func()
}

// Leases returns the leases of a namespace.
func (r renewedLeases) Leases(namespace string) coordinationclient.LeaseInterface {
	return renewedLease{r.CoordinationV1Interface.Leases(namespace), r.note}
}

type renewedLease struct {
	coordinationclient.LeaseInterface

	note func()
}

// Create creates a lease.
func (r renewedLease) Create(
	ctx context.Context, l *coordinationv1.Lease, o metav1.CreateOptions,
) (*coordinationv1.Lease, error) {
	created, err := r.LeaseInterface.Create(ctx, l, o)
	if err == nil {
		r.note()
	}
	return created, err
}

// Update renews a lease.
func (r renewedLease) Update(
	ctx context.Context, l *coordinationv1.Lease, o metav1.UpdateOptions,
) (*coordinationv1.Lease, error) {
	updated, err := r.LeaseInterface.Update(ctx, l, o)
	if err == nil {
		r.note()
	}
	return updated, err
}
