package api

import (
	"context"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ClusterPods are the pods of a node in the API server.
type ClusterPods struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Node is the name of the Node.
	Node string `json:"node"`
	// Stale is why the API server did not return the pods; empty if it did. If not, Items are the copies of the watch.
	Stale string `json:"stale,omitempty"`
	// AsOf is the time of the pods: when the API server sent a list, or anything in the watch, last.
	AsOf  time.Time `json:"asOf,omitzero"`
	Items []v1.Pod  `json:"items"`
	// Unsent are the uids, in the API, of the pods whose newest status the API may not have.
	Unsent []types.UID `json:"unsent,omitempty"`
	// NoMirrors reports that pods of other sources have no mirror pods (--mirror-pods=false).
	NoMirrors bool `json:"noMirrors,omitempty"`
	// OldMirrors are the uids of the mirror pods that show an earlier version of their pod.
	OldMirrors []types.UID `json:"oldMirrors,omitempty"`
}

// ClusterPods returns the pods of the node in the API server. The error of an agent that is not a node says so.
func (c Client) ClusterPods(ctx context.Context) (*ClusterPods, error) {
	var pods ClusterPods
	return &pods, c.call(ctx, http.MethodGet, "/cluster/pods", &pods)
}
