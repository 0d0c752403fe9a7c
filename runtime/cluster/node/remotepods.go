package node

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec/quote"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/cluster/guard"
	"github.com/podctl/podctl/runtime/cluster/pods"
	"github.com/podctl/podctl/runtime/cluster/statuses"
	"github.com/podctl/podctl/runtime/model"
)

// remotePods compares what this node has with the API server.
type remotePods struct {
	name     string
	guard    *guard.Guard
	source   *pods.Source
	statuses *statuses.Manager
	mirrors  *mirrorPods
	now      func() time.Time
}

// listPatience limits the list for a user. If the API server is slower, the watched copies are shown, and the reason.
const listPatience = 5 * time.Second

// Pods returns the pods of this node in the API server, or the watched copies and why there are no newer ones.
func (r *remotePods) Pods(ctx context.Context) *api.ClusterPods {
	p := &api.ClusterPods{
		APIVersion: model.APIVersion, Kind: "ClusterPods", Node: r.name, ListedAt: r.now(), Items: []v1.Pod{},
		Unsent: r.statuses.Unsent(), MirrorHashes: r.mirrors.manifestHashes(),
	}
	list, err := r.list(ctx)
	if err != nil {
		p.Stale, p.ListedAt, list = quote.OneLine(err.Error()), r.source.ListedAt(), r.source.All()
	}
	for _, pod := range list {
		p.Items = append(p.Items, *pod)
	}
	return p
}

func (r *remotePods) list(ctx context.Context) ([]*v1.Pod, error) {
	limited, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	if err := r.guard.Confirm(limited); err != nil {
		return nil, err
	}
	return r.source.List(limited)
}

// manifestHashes returns the hashes of the newest manifests by the uids of their pods.
func (m *mirrorPods) manifestHashes() map[types.UID]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	hashes := make(map[types.UID]string, len(m.hashes))
	for uid, h := range m.hashes {
		hashes[uid] = h.hash
	}
	return hashes
}
