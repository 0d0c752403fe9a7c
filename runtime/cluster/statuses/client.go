package statuses

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/model"
)

// Client is a Sender that uses client-go. It makes each request once: client-go would repeat a refused one for minutes
// with a status that is no longer the newest.
type Client struct{ pods rest.Interface }

// NewClient returns a Sender that makes requests through the client of core/v1.
func NewClient(core rest.Interface) *Client { return &Client{core} }

// Patch changes the status of a pod by a strategic merge patch, and returns the changed pod.
func (c *Client) Patch(ctx context.Context, pod model.PodRef, body []byte) (*v1.Pod, error) {
	r := c.to(c.pods.Patch(types.StrategicMergePatchType), pod).SubResource("status").Body(body)
	return apiclient.Do[v1.Pod](ctx, r)
}

// Get reads a pod by its name.
func (c *Client) Get(ctx context.Context, pod model.PodRef) (*v1.Pod, error) {
	return apiclient.Do[v1.Pod](ctx, c.to(c.pods.Get(), pod))
}

// Delete deletes a pod with the grace period 0, if it has this uid.
func (c *Client) Delete(ctx context.Context, pod model.PodRef) error {
	return apiclient.Delete(ctx, c.to(c.pods.Delete(), pod), pod.UID, new(int64))
}

func (c *Client) to(r *rest.Request, pod model.PodRef) *rest.Request {
	return r.Namespace(pod.Namespace).Resource("pods").Name(pod.Name).MaxRetries(0)
}
