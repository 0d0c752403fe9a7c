package node

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent"
	"github.com/podctl/podctl/runtime/cluster/mirrors"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
)

// mirrorPods keeps the mirror pods of the pods of other sources.
type mirrorPods struct {
	node    *node
	manager *mirrors.Manager

	// mu guards the following fields. known are the uids of the mirror pods. hashes has the newest hash of each pod.
	// alone has the hash of the version of each pod that runs without an earlier one.
	mu     sync.Mutex
	known  map[types.UID]bool
	hashes map[types.UID]hashed
	alone  map[types.UID]string
}

// hashed is the hash of a manifest.
type hashed struct {
	pod  *v1.Pod
	hash string
}

func newMirrorPods(n *node) *mirrorPods {
	m := &mirrorPods{
		node: n, known: map[types.UID]bool{}, hashes: map[types.UID]hashed{}, alone: map[types.UID]string{},
	}
	m.manager = mirrors.New(mirrors.Settings{
		Client: n.client.Core, Read: m.read, Confirm: n.guard.Confirm, Random: rand.Float64, Log: n.member.Log,
	})
	return m
}

// errUnlisted is the error of a request before the pods of the API have been listed.
var errUnlisted = errors.New("the pods of the API server have not been listed")

// read returns the pods of other sources and the mirror pods. Without --mirror-pods, there are no such pods.
func (m *mirrorPods) read(ctx context.Context) (*mirrors.State, error) {
	a := m.node.agent.Load()
	switch {
	case !m.node.source.Listed():
		return nil, errUnlisted
	case a == nil:
		return nil, errStarting
	}
	s := &mirrors.State{Node: m.node.manager.newest(), Name: m.node.NodeName, Complete: true, Now: m.node.member.Now()}
	if m.node.MirrorPods {
		var err error
		// Complete is read first: the pods are then all pods of these sources.
		if s.Complete, err = a.SourcesRead(ctx); err != nil {
			return nil, err
		}
		shown, err := a.ShownPods(ctx)
		if err != nil {
			return nil, err
		}
		s.Pods = m.pods(shown)
	}
	s.Mirrors = m.node.source.Mirrors()
	return s, nil
}

// pods returns the pods of other sources. Pods that the agent does not show any more are forgotten.
func (m *mirrorPods) pods(shown []agent.ShownPod) (pods []mirrors.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	uids := make(map[types.UID]bool, len(shown))
	defer func() {
		maps.DeleteFunc(m.hashes, func(uid types.UID, _ hashed) bool { return !uids[uid] })
		maps.DeleteFunc(m.alone, func(uid types.UID, _ string) bool { return !uids[uid] })
	}()
	for _, p := range shown {
		if p.Desired.FromCluster() {
			continue
		}
		uids[p.Desired.Pod.UID] = true
		hash := m.hash(p.Desired.Pod)
		alone := m.alone[p.Desired.Pod.UID] == hash
		pods = append(pods, mirrors.Pod{Desired: p.Desired, Hash: hash, Alone: alone, Leaving: p.Leaving})
	}
	return pods
}

// hash returns the hash of a pod. The caller holds the lock.
func (m *mirrorPods) hash(pod *v1.Pod) string {
	last := m.hashes[pod.UID]
	if last.pod != pod {
		last = hashed{pod, mirrors.Hash(pod, m.node.NodeName)}
		m.hashes[pod.UID] = last
	}
	return last.hash
}

// of returns the mirror pod of a pod of another source; nil if there is none.
func (m *mirrorPods) of(namespace, name string) *v1.Pod {
	return m.node.source.Mirror(podspec.MirrorName(namespace, name, m.node.NodeName))
}

// apiUID returns the uid in the API of a pod.
func (m *mirrorPods) apiUID(pod model.PodRef) types.UID {
	if mirror := m.of(pod.Namespace, pod.Name); mirror != nil && m.node.source.Get(pod.UID) == nil {
		return mirror.UID
	}
	return pod.UID
}

// handleEvent notes an event of the agent.
func (m *mirrorPods) handleEvent(e *agent.Event) {
	if m.node.source.Get(e.Pod.UID) != nil {
		return // It is a pod of the API server.
	}
	switch {
	case e.Kind == agent.Ended:
		m.mu.Lock()
		delete(m.hashes, e.Pod.UID)
		delete(m.alone, e.Pod.UID)
		m.mu.Unlock()
	case e.Kind == agent.Passed && m.noteAlone(e.Outcome), e.Changed:
	case m.of(e.Pod.Namespace, e.Pod.Name) == nil:
	default:
		return
	}
	m.manager.Wake()
}

// noteAlone notes the version that runs alone after a pass. It reports whether this is another one.
func (m *mirrorPods) noteAlone(o *executor.Outcome) (changed bool) {
	if !runsAlone(o) || o.Desired.FromCluster() {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	uid, hash := o.Desired.Pod.UID, m.hash(o.Desired.Pod)
	changed = m.alone[uid] != hash
	m.alone[uid] = hash
	return changed
}

// runsAlone reports whether no container of an earlier version of a pod runs after a pass: all steps were done, and no
// running container waits for its replacement.
func runsAlone(o *executor.Outcome) bool {
	if o == nil || o.Desired == nil || o.Plan == nil || o.Input == nil || len(o.Failed)+len(o.Skipped) > 0 {
		return false
	}
	for i := range o.Plan.Holds {
		for _, c := range o.Input.Observed.Containers {
			if name := o.Plan.Holds[i].Container; c.State == model.Running && (name == "" || name == c.Name) {
				return false
			}
		}
	}
	return true
}

// changed handles a changed or removed pod of the API. It reports whether the pod is a mirror pod that is new.
func (m *mirrorPods) changed(uid types.UID) (isNew bool) {
	pod := m.node.source.Get(uid)
	is := pod != nil && podspec.IsMirror(pod)
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.known[uid]
	if is {
		m.known[uid] = true
	} else {
		delete(m.known, uid)
	}
	if is || was {
		m.manager.Wake()
	}
	return is && !was
}

// eventPod returns the pod that events of a pod are about; nil if the API has none. Clients find the events of a mirror
// pod by its hash, because for a kubelet that is the uid of the pod.
func (m *mirrorPods) eventPod(ref model.PodRef) *v1.Pod {
	if pod := m.node.source.Get(ref.UID); pod != nil {
		return pod
	}
	mirror := m.of(ref.Namespace, ref.Name)
	if mirror == nil {
		return nil
	}
	pod := *mirror
	pod.UID = types.UID(mirror.Annotations[v1.MirrorPodAnnotationKey])
	return &pod
}

// reported returns the status of a pod in the API, or that of its mirror pod; nil for a pod that is not there.
func (m *mirrorPods) reported(d *podspec.Desired) *v1.PodStatus {
	pod := m.node.source.Get(d.Pod.UID)
	if !d.FromCluster() {
		pod = m.of(d.Pod.Namespace, d.Pod.Name)
	}
	if pod == nil {
		return nil
	}
	return &pod.Status
}

// outdated returns the uids of those of the listed mirror pods that show an earlier version of their pod. Before all is
// known, there are none.
func (m *mirrorPods) outdated(ctx context.Context, listed []*v1.Pod) []types.UID {
	s, err := m.read(ctx)
	if err != nil {
		return nil
	}
	s.Mirrors = slices.DeleteFunc(slices.Clone(listed), func(pod *v1.Pod) bool { return !podspec.IsMirror(pod) })
	return s.Outdated()
}
