package nodestatus

import (
	"context"
	"fmt"
	"net"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
	nodeutil "k8s.io/component-helpers/node/util"
)

// heartbeatTimeout limits one request of a heartbeat. A request in a lost connection would otherwise let the lease
// expire. A request that times out is repeated, and changes nothing on this machine (kubelet:
// nodeStatusUpdateFrequency).
const heartbeatTimeout = 10 * time.Second

// Heartbeat is a client with connections of its own, so that the requests of other packages do not delay a heartbeat.
type Heartbeat struct {
	kubernetes.Interface

	// CloseAll closes the connections. The next request opens a new one.
	CloseAll func()
}

// NewHeartbeat returns a client for the API server of a configuration.
func NewHeartbeat(config *rest.Config) (*Heartbeat, error) {
	own := rest.CopyConfig(config)
	dial := own.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: heartbeatTimeout, KeepAlive: heartbeatTimeout}).DialContext
	}
	dialer := connrotation.NewDialer(dial)
	own.Timeout, own.QPS, own.Dial = heartbeatTimeout, -1, dialer.DialContext
	set, err := kubernetes.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("client for heartbeats: %w", err)
	}
	return &Heartbeat{Interface: set, CloseAll: dialer.CloseAll}, nil
}

// patchStatus sends the difference of two versions of a Node as a strategic merge patch of its status, and returns the
// answer.
func (h *Heartbeat) patchStatus(ctx context.Context, before, now *v1.Node) (*v1.Node, error) {
	var failure error
	api := patcher{CoreV1Interface: h.CoreV1()}
	api.patch = func(name string, kind types.PatchType, body []byte, subresources ...string) (*v1.Node, error) {
		node, err := h.CoreV1().Nodes().Patch(ctx, name, kind, body, metav1.PatchOptions{}, subresources...)
		failure = err
		return node, err
	}
	node, _, err := nodeutil.PatchNodeStatus(api, types.NodeName(now.Name), before, now)
	if failure != nil {
		// The error of the library contains the whole patch.
		err = failure
	}
	if err == nil {
		err = checkNode(node, now.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("patch the status of the node %s: %w", now.Name, err)
	}
	return node, nil
}

// patcher sends the patches of component-helpers with a context, because those have none.
type patcher struct {
	corev1.CoreV1Interface

	patch func(name string, kind types.PatchType, body []byte, subresources ...string) (*v1.Node, error)
}

// Nodes returns the interface through which the library sends the patch.
func (p patcher) Nodes() corev1.NodeInterface { return patchedNodes{p.CoreV1Interface.Nodes(), p} }

type patchedNodes struct {
	corev1.NodeInterface

	patcher patcher
}

// Patch sends a patch.
//
//nolint:revive // the arguments are those of the interface
func (n patchedNodes) Patch(
	_ context.Context, name string, kind types.PatchType, body []byte, _ metav1.PatchOptions, subresources ...string,
) (*v1.Node, error) {
	return n.patcher.patch(name, kind, body, subresources...)
}
