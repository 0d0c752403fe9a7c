package node

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent"
	"github.com/podctl/podctl/runtime/cluster/statuses"
)

// shownPods are the pods whose status is sent: those of the API server, and others with a mirror pod.
type shownPods struct {
	node    *node
	mirrors *mirrorPods
	lister  agent.Lister
	// health adds the health of the devices of a pod to its status.
	health func(pod types.UID, s *v1.PodStatus)
	// mu guards shows: the pods of other sources, by the uids of their mirror pods.
	mu    sync.Mutex
	shows map[types.UID]*podspec.Desired
}

var _ statuses.Pods = (*shownPods)(nil)

// Shown returns the pods that the agent keeps, and the rejected ones, which the agent does not get.
func (s *shownPods) Shown(ctx context.Context) ([]statuses.Shown, error) {
	a := s.node.agent.Load()
	if a == nil {
		return nil, errStarting
	}
	all, err := a.ShownPods(ctx)
	if err != nil {
		return nil, err
	}
	shown := s.translate(all)
	for _, r := range s.node.source.Rejected() {
		shown = append(shown, statuses.Shown{Desired: podspec.New(r.Pod, podspec.OwnerAPI, r.Pod.UID), Reclaimed: true})
	}
	return shown, nil
}

// translate returns pods as the API knows them. A pod of another source without a mirror pod is left out. A mirror pod
// gets no final phase while its pod is being deleted, because the pod may be wanted again.
func (s *shownPods) translate(all []agent.ShownPod) (shown []statuses.Shown) {
	shows := map[types.UID]*podspec.Desired{}
	for _, p := range all {
		one := statuses.Shown{Desired: p.Desired, MayRun: p.MayRun, Reclaimed: p.Reclaimed}
		if !p.Desired.FromCluster() {
			mirror := s.mirrors.of(p.Desired.Pod.Namespace, p.Desired.Pod.Name)
			if mirror == nil || shows[mirror.UID] != nil {
				continue
			}
			shows[mirror.UID] = p.Desired
			one = statuses.Shown{Desired: mirrored(mirror), MayRun: p.MayRun || p.Leaving}
		}
		shown = append(shown, one)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shows = shows
	return shown
}

// mirrored returns the names of a mirror pod as a pod of the API server. It has no generation.
func mirrored(mirror *v1.Pod) *podspec.Desired {
	names := metav1.ObjectMeta{Namespace: mirror.Namespace, Name: mirror.Name, UID: mirror.UID}
	return podspec.New(&v1.Pod{ObjectMeta: names}, podspec.OwnerAPI, mirror.UID)
}

// List returns pods with their status. A mirror pod has the status of its pod, with the addresses of the Node.
func (s *shownPods) List(ctx context.Context, all []*podspec.Desired) ([]*v1.Pod, error) {
	refused, mirrors := map[types.UID]*v1.Pod{}, map[types.UID]types.UID{}
	for _, r := range s.node.source.Rejected() {
		refused[r.Pod.UID] = r.Status()
	}
	s.mu.Lock()
	shows := s.shows
	s.mu.Unlock()
	var kept []*podspec.Desired
	var found []*v1.Pod
	for _, d := range all {
		uid := d.Pod.UID
		if pod := refused[uid]; pod != nil {
			found = append(found, pod)
			continue
		}
		if behind := shows[uid]; behind != nil {
			d = behind
			mirrors[behind.Pod.UID] = uid
		}
		kept = append(kept, d)
	}
	if len(kept) == 0 {
		return found, nil
	}
	listed, err := s.lister.List(ctx, kept)
	for _, pod := range listed {
		s.health(pod.UID, &pod.Status)
		if uid := mirrors[pod.UID]; uid != "" {
			pod = s.asMirror(pod, uid)
		}
		found = append(found, pod)
	}
	return found, err
}

// asMirror returns a pod of another source with the uid of its mirror pod and the addresses of the Node.
func (s *shownPods) asMirror(pod *v1.Pod, uid types.UID) *v1.Pod {
	shown := *pod
	shown.UID = uid
	if shown.Status.HostIP != "" {
		shown.Status.HostIPs = nil
		for _, ip := range texts(s.node.NodeIPs) {
			shown.Status.HostIPs = append(shown.Status.HostIPs, v1.HostIP{IP: ip})
		}
		shown.Status.HostIP = shown.Status.HostIPs[0].IP
	}
	return &shown
}
