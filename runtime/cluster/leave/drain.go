package leave

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/cluster/apierror"
	"github.com/podctl/podctl/runtime/sleep"
)

// Intervals of the requests (kubectl: drain.Helper).
const (
	listEvery  = time.Second
	retryEvery = 5 * time.Second
)

// Leaver takes a node out of its cluster.
type Leaver struct {
	Client *apiclient.Client
	// Node is the name of the Node.
	Node string
	Options
	// Note prints a step or a delay.
	Note func(format string, args ...any)

	// noted has the last note about each pod.
	noted map[types.UID]string
}

// ErrForbidden reports that the credentials do not allow to delete the Node. Those of a node never do.
var ErrForbidden = errors.New("these credentials may not delete the Node")

// Drain makes the Node unschedulable, evicts its pods and waits until they have ended. Mirror pods and pods of
// DaemonSets stay. A Node that does not exist is not an error.
func (l *Leaver) Drain(ctx context.Context) error {
	if err := l.cordon(ctx); err != nil {
		return err
	}
	return l.endPods(ctx, func(pods []v1.Pod) ([]v1.Pod, error) { return choose(pods, l.Options) }, l.evict)
}

// RemoveNode deletes the Node, and then all pods that are still bound to it, except mirror pods, which end with their
// owner. It waits until the pods have ended. It returns ErrForbidden if the credentials do not allow that.
func (l *Leaver) RemoveNode(ctx context.Context) error {
	node, err := apiclient.Do[v1.Node](ctx, l.node(l.Client.Core.Get()))
	if err == nil {
		err = apiclient.Delete(ctx, l.node(l.Client.Core.Delete()), node.UID, nil)
		if apierrors.IsForbidden(err) {
			return fmt.Errorf("the node is drained, but %w: run `kubectl delete node %s`, "+
				"and then `podctl agent leave` again, or use --kubeconfig with the file of an administrator: %s",
				ErrForbidden, l.Node, apierror.Text(err))
		}
	}
	if err != nil && !apierror.IsAbsent(err) {
		return wrap("deleting the Node", err)
	}
	l.Note("the Node %s is deleted", l.Node)
	return l.endPods(ctx, func(pods []v1.Pod) ([]v1.Pod, error) { return remaining(pods), nil }, l.delete)
}

// RemoveLease deletes the lease of the node. No agent may renew it any longer.
func (l *Leaver) RemoveLease(ctx context.Context) error {
	request := func(r *rest.Request) *rest.Request {
		return r.Namespace(v1.NamespaceNodeLease).Resource("leases").Name(l.Node)
	}
	lease, err := apiclient.Do[coordinationv1.Lease](ctx, request(l.Client.Coordination.Get()))
	if err == nil {
		err = apiclient.Delete(ctx, request(l.Client.Coordination.Delete()), lease.UID, nil)
	}
	if err != nil && !apierror.IsAbsent(err) {
		return wrap("deleting the lease", err)
	}
	return nil
}

// cordon makes the Node unschedulable.
func (l *Leaver) cordon(ctx context.Context) error {
	node, err := apiclient.Do[v1.Node](ctx, l.node(l.Client.Core.Get()))
	switch {
	case apierror.IsAbsent(err) || err == nil && node.Spec.Unschedulable:
		return nil
	case err != nil:
		return wrap("reading the Node", err)
	}
	patch := []byte(`{"spec":{"unschedulable":true}}`)
	_, err = apiclient.Do[v1.Node](ctx, l.node(l.Client.Core.Patch(types.StrategicMergePatchType)).Body(patch))
	if err != nil {
		return wrap("cordoning the Node", err)
	}
	l.Note("the Node %s is cordoned", l.Node)
	return nil
}

// endPods ends the chosen pods and waits until they are gone. It calls choose after each list, because pods can be
// bound in the meantime.
func (l *Leaver) endPods(
	ctx context.Context, choose func([]v1.Pod) ([]v1.Pod, error), end func(context.Context, *v1.Pod) error,
) error {
	due := map[types.UID]time.Time{}
	l.noted = map[types.UID]string{}
	for {
		list, err := apiclient.Do[v1.PodList](ctx, l.pods())
		if apierror.IsRefusal(err) {
			return wrap("listing the pods of the node", err)
		}
		if err == nil {
			// A server that ignores the selector returns pods of other nodes.
			onNode := slices.DeleteFunc(list.Items, func(pod v1.Pod) bool { return pod.Spec.NodeName != l.Node })
			pods, refusal := choose(onNode)
			if refusal != nil || len(pods) == 0 {
				return refusal
			}
			if err = l.endDue(ctx, pods, due, end); err != nil {
				return err
			}
		}
		if err = sleep.For(ctx, listEvery); err != nil {
			return err
		}
	}
}

// endDue ends the pods whose next try is due.
func (l *Leaver) endDue(
	ctx context.Context, pods []v1.Pod, due map[types.UID]time.Time, end func(context.Context, *v1.Pod) error,
) error {
	for i := range pods {
		pod := &pods[i]
		name := pod.Namespace + "/" + pod.Name
		if pod.DeletionTimestamp != nil {
			l.noteOnce(pod.UID, "waiting for the end of "+name)
			continue
		}
		if time.Now().Before(due[pod.UID]) {
			continue
		}
		due[pod.UID] = time.Now().Add(retryEvery)
		switch err := end(ctx, pod); {
		case err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err):
			// It ends, or another pod has its name.
		case apierror.IsRefusal(err):
			return wrap("ending the pod "+name, err)
		default:
			// A disruption budget does not allow it yet, or the server does not respond.
			l.noteOnce(pod.UID, fmt.Sprintf("%s cannot be ended yet: %s", name, apierror.Text(err)))
		}
	}
	return nil
}

func (l *Leaver) noteOnce(uid types.UID, text string) {
	if l.noted[uid] != text {
		l.noted[uid] = text
		l.Note("%s", text)
	}
}

// evict evicts a pod. The API server refuses it while a PodDisruptionBudget does not allow it.
func (l *Leaver) evict(ctx context.Context, pod *v1.Pod) error {
	text, err := json.Marshal(&policyv1.Eviction{
		TypeMeta:      metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "Eviction"},
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: apiclient.DeleteOptions(pod.UID, l.Grace),
	})
	if err != nil {
		return err
	}
	return pathOf(l.Client.Core.Post(), pod).SubResource("eviction").
		SetHeader("Content-Type", "application/json").Body(text).Do(ctx).Error()
}

// delete deletes a pod.
func (l *Leaver) delete(ctx context.Context, pod *v1.Pod) error {
	return apiclient.Delete(ctx, pathOf(l.Client.Core.Delete(), pod), pod.UID, l.Grace)
}

func (l *Leaver) node(r *rest.Request) *rest.Request {
	return r.Resource("nodes").Name(l.Node).MaxRetries(0)
}

func (l *Leaver) pods() *rest.Request {
	selector := fields.OneTermEqualSelector("spec.nodeName", l.Node).String()
	return l.Client.Core.Get().Resource("pods").Param("fieldSelector", selector).MaxRetries(0)
}

func pathOf(r *rest.Request, pod *v1.Pod) *rest.Request {
	return r.Namespace(pod.Namespace).Resource("pods").Name(pod.Name).MaxRetries(0)
}

func wrap(what string, err error) error {
	return fmt.Errorf("%s: %s", what, apierror.Text(err))
}
