package observe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
)

// UIDTakenError reports that two pods have the same UID. A UID names files, cgroups and records of the runtime, so the
// podctl could not distinguish the two pods.
type UIDTakenError struct {
	Pod   model.PodRef
	Owner model.PodRef
}

// Error names both pods and the fix.
func (e *UIDTakenError) Error() string {
	return fmt.Sprintf(
		"pod %s has the uid %q, which is that of pod %s: give it another metadata.uid, or delete pod %s first",
		e.Pod, e.Pod.UID, e.Owner, e.Owner)
}

// checkRecord refuses a pod whose UID belongs to another pod in podctl's record.
func checkRecord(ref model.PodRef, j *state.Checkpoint) error {
	if j.Pod.Name == "" || j.Pod.String() == ref.String() {
		return nil
	}
	return &UIDTakenError{Pod: ref, Owner: model.PodRef{Namespace: j.Pod.Namespace, Name: j.Pod.Name, UID: ref.UID}}
}

// checkLabels refuses a pod whose UID is on a sandbox or container of another pod.
func checkLabels(ref model.PodRef, item labelled) error {
	labels := item.GetLabels()
	owner := model.PodRef{
		Namespace: labels[criconfig.LabelPodNamespace],
		Name:      labels[criconfig.LabelPodName],
		UID:       ref.UID,
	}
	hasUID := labels[criconfig.LabelPodUID] == string(ref.UID)
	if owner.Name == "" || owner == ref || !hasUID || isStaticPodOf(ref, owner, item) {
		return nil
	}
	return &UIDTakenError{Pod: ref, Owner: owner}
}

// isStaticPodOf reports whether a kubelet created a record from the pod's own manifest, as the static pod NAME-NODE
// (kubelet: generatePodName). A pod of the API server with the same UID is another pod. Containers have no source, so
// the check of their sandbox decides.
func isStaticPodOf(ref, owner model.PodRef, item labelled) bool {
	annotations := item.GetAnnotations()
	if criconfig.MadeByPodctl(annotations) {
		return false
	}
	source := annotations[podspec.AnnotationConfigSource]
	if _, isSandbox := item.(*runtimeapi.PodSandbox); isSandbox && source != "file" && source != "http" {
		return false
	}
	return owner.Namespace == ref.Namespace && strings.HasPrefix(owner.Name, ref.Name+"-")
}

// labelled is an item in a list of the runtime, with labels and annotations.
type labelled interface {
	GetLabels() map[string]string
	GetAnnotations() map[string]string
}

// CheckAllLabels returns a *UIDTakenError if one of the records belongs to another pod.
func CheckAllLabels[T labelled](ref model.PodRef, items []T) error {
	for _, item := range items {
		if err := checkLabels(ref, item); err != nil {
			return err
		}
	}
	return nil
}

// AdoptEndpoint allows pods to move to this runtime from the one they were applied to, if the other one no longer has
// them.
func (o *Observer) AdoptEndpoint() { o.adopts = true }

// checkEndpoint refuses a pod that was applied to another runtime, because it would run twice. A runtime that has
// records of the pod is the same one at another address.
func (o *Observer) checkEndpoint(ctx context.Context, ref model.PodRef, s *snapshot.Pod) error {
	from := s.Checkpoint.Endpoint
	if from == "" || from == o.world.Client.Endpoint.Address || len(s.Sandboxes)+len(s.Containers) > 0 {
		return nil
	}
	if !o.adopts {
		return fmt.Errorf("pod %s runs on %s, not on %s: "+
			"name that runtime with --runtime-endpoint, or delete the pod there first; "+
			"if that runtime is gone for good, apply or delete the pod with --adopt-endpoint",
			ref, from, o.world.Client.Endpoint)
	}
	err := nothingAt(ctx, from, ref)
	if err == nil {
		err = noProcesses(o.world.Cgroups, ref, o.host.Node())
	}
	if err != nil {
		return fmt.Errorf("pod %s cannot move from %s to %s: %w", ref, from, o.world.Client.Endpoint.Address, err)
	}
	return nil
}

// oldEndpointTimeout limits the queries to a runtime that is probably gone.
const oldEndpointTimeout = 10 * time.Second

// nothingAt returns an error if a runtime has records of a pod, or listens and does not answer. A runtime that does not
// listen has none.
func nothingAt(ctx context.Context, address string, ref model.PodRef) error {
	endpoint := cri.Endpoint{Address: address, Origin: "the checkpoint"}
	if gone, err := isGone(ctx, endpoint.Socket()); gone || err != nil {
		return err
	}
	client, err := cri.Connect(endpoint, "", oldEndpointTimeout)
	if err != nil {
		return err
	}
	sandboxes, containers, err := list(ctx, client, "its", UIDSelector(ref))
	if err = errors.Join(err, client.Close()); err != nil {
		return fmt.Errorf("it cannot list the sandboxes and containers of the pod: %w", err)
	}
	if count := len(sandboxes) + len(containers); count > 0 {
		return fmt.Errorf("it answers, and has %d sandboxes and containers of the pod: "+
			"delete the pod there first (podctl delete --runtime-endpoint %s)", count, address)
	}
	return nil
}

// isGone reports whether no process listens on a socket.
func isGone(ctx context.Context, socket string) (bool, error) {
	if socket == "" {
		return false, nil // The runtime is queried.
	}
	conn, err := (&net.Dialer{Timeout: oldEndpointTimeout}).DialContext(ctx, "unix", socket)
	switch {
	case err == nil:
		return false, conn.Close()
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ECONNREFUSED), errors.Is(err, unix.ENOTDIR):
		return true, nil
	}
	return false, err
}

// noProcesses returns an error if processes run in a cgroup that the pod may have, with either driver. They continue
// when their runtime is gone.
func noProcesses(groups cgroup.Groups, ref model.PodRef, node criconfig.Node) error {
	for _, systemd := range []bool{false, true} {
		node.SystemdCgroup = systemd
		for _, name := range criconfig.CgroupParents(ref.UID, node) {
			pids, err := groups.Members(name)
			if err != nil {
				return fmt.Errorf("reading the processes of cgroup %s: %w", name, err)
			}
			if len(pids) > 0 {
				return fmt.Errorf("processes of the pod run in cgroup %s (pid %v): "+
					"start that runtime again to delete the pod, or end them", name, pids)
			}
		}
	}
	return nil
}
