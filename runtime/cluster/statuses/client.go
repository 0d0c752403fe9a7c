package statuses

import (
	"context"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/podctl/podctl/runtime/model"
)

// Client is a Sender that uses client-go. It makes each request once: client-go would repeat a refused one for minutes
// with a status that is no longer the newest.
type Client struct{ pods rest.Interface }

// NewClient returns a Sender that makes requests through the client of core/v1.
func NewClient(core rest.Interface) *Client { return &Client{core} }

// Patch changes the status of a pod by a strategic merge patch, and returns the changed pod.
func (c *Client) Patch(ctx context.Context, pod model.PodRef, body []byte) (*v1.Pod, error) {
	changed := &v1.Pod{}
	err := c.to(c.pods.Patch(types.StrategicMergePatchType), pod).SubResource("status").Body(body).Do(ctx).Into(changed)
	if err != nil {
		return nil, err
	}
	return changed, nil
}

// Get reads a pod by its name.
func (c *Client) Get(ctx context.Context, pod model.PodRef) (*v1.Pod, error) {
	found := &v1.Pod{}
	if err := c.to(c.pods.Get(), pod).Do(ctx).Into(found); err != nil {
		return nil, err
	}
	return found, nil
}

// Delete deletes a pod with the grace period 0, if it has this uid. An answer that is not an object of the API is an
// error, because it may come from a proxy.
func (c *Client) Delete(ctx context.Context, pod model.PodRef) error {
	options := &metav1.DeleteOptions{
		GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
	}
	_, err := c.to(c.pods.Delete(), pod).Body(options).Do(ctx).Get()
	return err
}

func (c *Client) to(r *rest.Request, pod model.PodRef) *rest.Request {
	return r.Namespace(pod.Namespace).Resource("pods").Name(pod.Name).MaxRetries(0)
}
