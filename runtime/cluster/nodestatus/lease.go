package nodestatus

import (
	"context"
	"errors"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/sleep"
)

// leaseSeconds is the duration of the lease. It is renewed four times in that time (kubelet: nodeLeaseDurationSeconds,
// nodeLeaseRenewIntervalFraction).
const leaseSeconds = 40

// lease is the lease of a node. It is used by one goroutine.
type lease struct {
	*Manager

	// latest is the last version that the API server returned; nil before the first.
	latest *coordinationv1.Lease
}

// keepLease renews the lease of the node until the context ends. The lease then expires (kubelet: its lease
// controller needs client-go's clientset).
func (m *Manager) keepLease(ctx context.Context) {
	utilwait.JitterUntilWithContext(ctx, (&lease{Manager: m}).renew, computeEvery, computeJitter, true)
}

// renew renews the lease. It updates the last known version, and reads the lease only if that fails. Each request is
// made only if the cluster is confirmed; the status reports why it is not.
func (l *lease) renew(ctx context.Context) {
	if l.latest != nil && l.update(ctx) {
		return
	}
	if created := l.ensure(ctx); !created && l.latest != nil {
		l.update(ctx)
	}
}

// update tries to update the lease. A repeated failure closes the connections.
func (l *lease) update(ctx context.Context) (done bool) {
	for try := 0; try < tries && l.latest != nil && ctx.Err() == nil && l.Cluster.Confirm(ctx) == nil; try++ {
		next, err := l.next(l.latest)
		if err == nil {
			put := l.request(l.Heartbeat.Coordination.Put()).Name(l.Name).Body(next)
			next, err = apiclient.Do[coordinationv1.Lease](ctx, put)
		}
		switch {
		case err == nil:
			l.latest = next
			l.noteSent(&l.sent.Lease)
			return true
		case apierrors.IsConflict(err):
			l.ensure(ctx)
		case try > 0:
			l.Heartbeat.CloseAll()
		}
	}
	return false
}

// ensure reads the lease, or creates it if it does not exist. It tries until it succeeds, or the API server does not
// respond or is that of another cluster.
func (l *lease) ensure(ctx context.Context) (created bool) {
	for pause := 2 * firstPause; ctx.Err() == nil && l.Cluster.Confirm(ctx) == nil; pause = min(2*pause, longestPause) {
		found, err := apiclient.Do[coordinationv1.Lease](ctx, l.request(l.Heartbeat.Coordination.Get()).Name(l.Name))
		if created = apierrors.IsNotFound(err); created {
			found, err = l.create(ctx)
		}
		if err == nil {
			if l.latest = found; created {
				l.noteSent(&l.sent.Lease)
			}
			return created
		}
		_ = sleep.For(ctx, pause) // the loop checks the context
	}
	return false
}

// create creates the lease.
func (l *lease) create(ctx context.Context) (*coordinationv1.Lease, error) {
	initial, err := l.next(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: l.Name, Namespace: v1.NamespaceNodeLease},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &l.Name},
	})
	if err != nil {
		return nil, err
	}
	return apiclient.Do[coordinationv1.Lease](ctx, l.request(l.Heartbeat.Coordination.Post()).Body(initial))
}

// next returns a version of the lease that is renewed now.
func (l *lease) next(base *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	renewed := base.DeepCopy()
	renewed.Spec.LeaseDurationSeconds = new(int32)
	*renewed.Spec.LeaseDurationSeconds = leaseSeconds
	renewed.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
	return renewed, l.ownLease(renewed)
}

func (l *lease) request(r *rest.Request) *rest.Request {
	return r.Namespace(v1.NamespaceNodeLease).Resource("leases")
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
