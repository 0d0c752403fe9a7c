package nodestatus

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/rest"

	"github.com/podctl/podctl/runtime/cluster/apiclient"
)

// HeartbeatTimeout limits one request of a heartbeat. A request in a lost connection would otherwise let the lease
// expire. A request that times out is repeated, and changes nothing on this machine (kubelet:
// nodeStatusUpdateFrequency).
const HeartbeatTimeout = 10 * time.Second

// nodes is the resource of Nodes.
const nodes = "nodes"

// Heartbeat is a client with connections of its own, so that the requests of other packages do not delay a heartbeat.
type Heartbeat struct {
	*apiclient.Client

	// CloseAll closes the connections. The next request opens a new one.
	CloseAll func()
}

// NewHeartbeat returns a client for the API server of a configuration, which must have connections of its own. closeAll
// closes them.
func NewHeartbeat(config *rest.Config, closeAll func()) (*Heartbeat, error) {
	own := rest.CopyConfig(config)
	own.Timeout, own.QPS = HeartbeatTimeout, -1
	requests, err := apiclient.New(own)
	if err != nil {
		return nil, fmt.Errorf("client for heartbeats: %w", err)
	}
	return &Heartbeat{Client: requests, CloseAll: closeAll}, nil
}

// patchStatus sends the difference of two versions of a Node as a strategic merge patch of its status, and returns the
// answer.
func patchStatus(ctx context.Context, c *apiclient.Client, before, now *v1.Node) (*v1.Node, error) {
	var node *v1.Node
	patch, err := statusPatch(before, now)
	if err == nil {
		r := c.Core.Patch(types.StrategicMergePatchType).Resource(nodes).Name(now.Name).SubResource("status")
		node, err = apiclient.Do[v1.Node](ctx, r.Body(patch))
	}
	if err == nil {
		err = checkNode(node, now.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("patch the status of the node %s: %w", now.Name, err)
	}
	return node, nil
}

// statusPatch returns the strategic merge patch of the metadata and the status of a Node (kubelet:
// tryUpdateNodeStatus, whose library needs client-go's clientset).
func statusPatch(before, now *v1.Node) ([]byte, error) {
	after := *now
	after.Spec = before.Spec
	moved := len(before.Status.Addresses) > 0 &&
		!equality.Semantic.DeepEqual(before.Status.Addresses, now.Status.Addresses)
	if moved {
		after.Status.Addresses = before.Status.Addresses
	}
	old, err := json.Marshal(before)
	if err != nil {
		return nil, err
	}
	changed, err := json.Marshal(&after)
	if err != nil {
		return nil, err
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(old, changed, v1.Node{})
	if err != nil || !moved {
		return patch, err
	}
	return replaceAddresses(patch, now.Status.Addresses)
}

// replaceAddresses adds all addresses to a patch. The API merges addresses by their type, so a patch of the difference
// would lose one of two addresses with the same type.
func replaceAddresses(patch []byte, addresses []v1.NodeAddress) ([]byte, error) {
	var parts map[string]map[string]any
	if err := json.Unmarshal(patch, &parts); err != nil {
		return nil, err
	}
	all := []any{}
	for _, a := range addresses {
		all = append(all, a)
	}
	if parts["status"] == nil {
		parts["status"] = map[string]any{}
	}
	parts["status"]["addresses"] = append(all, map[string]string{"$patch": "replace"})
	return json.Marshal(parts)
}
