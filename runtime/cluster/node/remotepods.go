package node

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec/quote"
	"github.com/podctl/podctl/runtime/agent/api"
	"github.com/podctl/podctl/runtime/model"
)

// remotePods returns the pods of the node in the API server, for users.
type remotePods struct{ node *node }

// listPatience limits the request for the pods. If the API server is slower, Pods returns the watched copies.
const listPatience = 5 * time.Second

// Pods returns the pods of this node in the API server, or the watched copies and why there are no newer ones.
func (r *remotePods) Pods(ctx context.Context) *api.ClusterPods {
	n := r.node
	p := &api.ClusterPods{
		APIVersion: model.APIVersion, Kind: "ClusterPods",
		Node: n.NodeName, AsOf: n.member.Now(), Items: []v1.Pod{},
		Unsent: n.statuses.Summary().Unsent, MirrorHashes: n.mirrors.manifestHashes(),
	}
	list, err := r.list(ctx)
	if err != nil {
		p.Stale, p.AsOf, list = quote.OneLine(err.Error()), n.source.AsOf(), n.source.All()
	}
	for _, pod := range list {
		p.Items = append(p.Items, *pod)
	}
	return p
}

func (r *remotePods) list(ctx context.Context) ([]*v1.Pod, error) {
	limited, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	if err := r.node.guard.Confirm(limited); err != nil {
		return nil, err
	}
	return r.node.source.List(limited)
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
