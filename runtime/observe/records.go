package observe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/logfile"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/snapshot"
)

// records reads the runtime's records of one pod: its sandboxes, its containers, and unmanaged containers in its
// sandboxes. Each status is queried once, as soon as a list contains it.
//
// If the pod's sandbox is known from the last pass, two lists are enough: the containers of a sandbox are the pod's and
// the unmanaged ones. Otherwise the pod's containers are found by its label, and those of each sandbox by a list of
// their own. That also applies to a pod that is deleted, because none of its containers may be missed.
type records struct {
	observer *Observer
	ref      model.PodRef
	lists    *nodeLists
	group    *errgroup.Group

	mu         sync.Mutex
	seen       map[string]bool
	containers []*snapshot.Container
	sandboxes  []*runtimeapi.PodSandboxStatus
}

func (o *Observer) observeRecords(
	ctx context.Context, ref model.PodRef, s *snapshot.Pod, known string, lists *nodeLists,
) error {
	r := &records{observer: o, ref: ref, lists: lists, seen: map[string]bool{}}
	r.group, ctx = errgroup.WithContext(ctx)
	r.group.Go(func() error { return r.listSandboxes(ctx, known) })
	r.group.Go(func() error { return r.listContainers(ctx, known) })
	if err := r.group.Wait(); err != nil {
		return err
	}
	s.Sandboxes = slices.DeleteFunc(r.sandboxes, func(st *runtimeapi.PodSandboxStatus) bool { return st == nil })
	for _, c := range r.containers {
		if c.Status != nil {
			s.Containers = append(s.Containers, *c)
		}
	}
	return nil
}

// listSandboxes lists the pod's sandboxes, and the contents of those that are not known yet.
func (r *records) listSandboxes(ctx context.Context, known string) error {
	items, err := r.itsSandboxes(ctx)
	if err == nil {
		err = CheckAllLabels(r.ref, items)
	}
	if err != nil {
		return cri.Wrap("listing its sandboxes", err)
	}
	r.sandboxes = make([]*runtimeapi.PodSandboxStatus, len(items))
	lost := known != ""
	for i, item := range items {
		r.group.Go(func() (err error) {
			r.sandboxes[i], err = r.querySandbox(ctx, item)
			return err
		})
		if item.GetId() == known {
			lost = false
			continue
		}
		r.group.Go(func() error { return r.listContainers(ctx, item.GetId()) })
	}
	if lost {
		// The sandbox is gone, but its containers may still exist.
		r.group.Go(func() error { return r.listContainers(ctx, "") })
	}
	return nil
}

// querySandbox returns the status of a sandbox; nil if it has vanished. If the runtime refuses the status of an ended
// sandbox, the entry of the list is used, because the sandbox is replaced anyway. A runtime does so after a restart
// without the sandbox's files.
func (r *records) querySandbox(ctx context.Context, item *runtimeapi.PodSandbox) (*runtimeapi.PodSandboxStatus, error) {
	reply, err := r.observer.world.Client.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{
		PodSandboxId: item.GetId(),
	})
	err = cri.IgnoreNotFound(err)
	if err != nil && cri.IsAnswer(err) && item.GetState() == runtimeapi.PodSandboxState_SANDBOX_NOTREADY {
		return &runtimeapi.PodSandboxStatus{
			Id: item.GetId(), Metadata: item.GetMetadata(), State: item.GetState(), CreatedAt: item.GetCreatedAt(),
			Labels: item.GetLabels(), Annotations: item.GetAnnotations(), RuntimeHandler: item.GetRuntimeHandler(),
		}, nil
	}
	return reply.GetStatus(), cri.Wrap("asking for its sandbox "+model.ShortID(item.GetId()), err)
}

// listContainers lists the containers of a sandbox or, without one, of the pod.
func (r *records) listContainers(ctx context.Context, sandbox string) error {
	items, err := r.containersIn(ctx, sandbox)
	if err == nil {
		err = CheckAllLabels(r.ref, items)
	}
	if err != nil {
		return cri.Wrap("listing its containers", err)
	}
	for _, item := range items {
		if c := r.add(item); c != nil {
			r.group.Go(func() error { return r.query(ctx, c) })
		}
	}
	return nil
}

func (r *records) itsSandboxes(ctx context.Context) ([]*runtimeapi.PodSandbox, error) {
	if r.lists != nil {
		return r.lists.sandboxes[string(r.ref.UID)], nil
	}
	list, err := r.observer.world.Client.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{
		Filter: &runtimeapi.PodSandboxFilter{LabelSelector: UIDSelector(r.ref)},
	})
	return list.GetItems(), err
}

func (r *records) containersIn(ctx context.Context, sandbox string) ([]*runtimeapi.Container, error) {
	if r.lists != nil {
		return r.lists.containers[cmp.Or(sandbox, string(r.ref.UID))], nil
	}
	filter := &runtimeapi.ContainerFilter{PodSandboxId: sandbox}
	if sandbox == "" {
		filter.LabelSelector = UIDSelector(r.ref)
	}
	list, err := r.observer.world.Client.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: filter})
	return list.GetContainers(), err
}

// nodeLists are the sandboxes and containers of all pods, to observe many of them. A runtime needs as long to list
// those of one pod as to list all.
type nodeLists struct {
	// sandboxes are by the UID of their pod, containers by that UID and by their sandbox.
	sandboxes  map[string][]*runtimeapi.PodSandbox
	containers map[string][]*runtimeapi.Container
}

// ManyPods is the number of pods from which all records are listed at once.
const ManyPods = 4

// listFor lists the records of all pods if enough pods are observed; otherwise it returns nil.
func (l *Lister) listFor(ctx context.Context, pods int) (*nodeLists, error) {
	if pods < ManyPods {
		return nil, nil // few pods are listed one by one
	}
	sandboxes, containers, err := list(ctx, l.observer.world.Client, "all", nil)
	if err != nil {
		return nil, err
	}
	lists := &nodeLists{
		sandboxes:  map[string][]*runtimeapi.PodSandbox{},
		containers: map[string][]*runtimeapi.Container{},
	}
	for _, item := range sandboxes {
		uid := item.GetLabels()[criconfig.LabelPodUID]
		lists.sandboxes[uid] = append(lists.sandboxes[uid], item)
	}
	for _, item := range containers {
		uid, sandbox := item.GetLabels()[criconfig.LabelPodUID], item.GetPodSandboxId()
		lists.containers[uid] = append(lists.containers[uid], item)
		lists.containers[sandbox] = append(lists.containers[sandbox], item)
	}
	return lists, nil
}

// add adds a container once. It returns the container if its status must be queried. For an unmanaged one the list is
// enough.
func (r *records) add(item *runtimeapi.Container) *snapshot.Container {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &snapshot.Container{SandboxID: item.GetPodSandboxId(), Status: &runtimeapi.ContainerStatus{
		Id: item.GetId(), Metadata: item.GetMetadata(), State: item.GetState(), CreatedAt: item.GetCreatedAt(),
		Labels: item.GetLabels(), Annotations: item.GetAnnotations(),
	}}
	unmanaged := c.IsUnmanaged()
	if r.seen[item.GetId()] || (!unmanaged && !snapshot.OwnedBy(r.ref, item.GetLabels())) {
		return nil
	}
	r.seen[item.GetId()] = true
	r.containers = append(r.containers, c)
	if unmanaged {
		return nil
	}
	return c
}

// query completes a record with the container's status; nil if it has vanished.
func (r *records) query(ctx context.Context, c *snapshot.Container) error {
	id, name := c.Status.GetId(), c.Status.GetMetadata().GetName()
	reply, err := r.observer.world.Client.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
	c.Status = reply.GetStatus()
	c.TerminationMessage = terminationMessage(ctx, c.Status)
	if ended := r.observer.world.Exits.completed(c.Status); ended != nil {
		// If the end of the log is the message, only the runtime's own report shows that it is complete. A failure
		// that is shown without its message would be final for programs that wait for it.
		if text, ofLog := ownMessage(ended); !ofLog {
			c.Status, c.TerminationMessage = ended, text
		}
	}
	c.LogFull = LogFull(c.Status, r.observer.world.Logs)
	return cri.Wrap(fmt.Sprintf("asking for container %s (%s)", name, model.ShortID(id)), cri.IgnoreNotFound(err))
}

// LogFull reports whether the log of a running container must be rotated.
func LogFull(status *runtimeapi.ContainerStatus, limits logfile.Limits) bool {
	path := status.GetLogPath()
	return status.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING && path != "" && limits.Full(path)
}

// ListContainers lists the containers of a pod in any state.
func (o *Observer) ListContainers(ctx context.Context, ref model.PodRef) ([]*runtimeapi.Container, error) {
	reply, err := o.world.Client.ListContainers(ctx, &runtimeapi.ListContainersRequest{
		Filter: &runtimeapi.ContainerFilter{LabelSelector: UIDSelector(ref)},
	})
	if err == nil {
		err = CheckAllLabels(ref, reply.GetContainers())
	}
	return reply.GetContainers(), cri.Wrap("listing its containers", err)
}

// list lists the sandboxes and containers of a runtime with some labels. The error contains whose.
func list(
	ctx context.Context, client *cri.Client, which string, labels map[string]string,
) (boxes []*runtimeapi.PodSandbox, all []*runtimeapi.Container, err error) {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		filter := &runtimeapi.PodSandboxFilter{LabelSelector: labels}
		reply, err := client.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{Filter: filter})
		boxes = reply.GetItems()
		return cri.Wrap("listing "+which+" sandboxes", err)
	})
	group.Go(func() error {
		filter := &runtimeapi.ContainerFilter{LabelSelector: labels}
		reply, err := client.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: filter})
		all = reply.GetContainers()
		return cri.Wrap("listing "+which+" containers", err)
	})
	return boxes, all, group.Wait()
}

// UIDSelector returns the label selector of a pod's records.
func UIDSelector(ref model.PodRef) map[string]string {
	return map[string]string{criconfig.LabelPodUID: string(ref.UID)}
}
