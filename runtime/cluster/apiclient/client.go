package apiclient

import (
	"context"
	"errors"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// groups returns the fields of a Client with their API groups. A subresource can have the type of another group:
// a token that is requested for a ServiceAccount is in authentication.k8s.io.
func (c *Client) groups() []group {
	return []group{
		{&c.Core, v1.SchemeGroupVersion, v1.AddToScheme},
		{&c.Coordination, coordinationv1.SchemeGroupVersion, coordinationv1.AddToScheme},
		{&c.Node, nodev1.SchemeGroupVersion, nodev1.AddToScheme},
		{&c.Certificates, certificatesv1.SchemeGroupVersion, certificatesv1.AddToScheme},
		{&c.Bundles, certificatesv1beta1.SchemeGroupVersion, certificatesv1beta1.AddToScheme},
		{&c.Authentication, authenticationv1.SchemeGroupVersion, authenticationv1.AddToScheme},
		{&c.Authorization, authorizationv1.SchemeGroupVersion, authorizationv1.AddToScheme},
	}
}

// group is an API group, the field of its client, and the function that registers its types.
type group struct {
	client  *rest.Interface
	version schema.GroupVersion
	types   func(*runtime.Scheme) error
}

// Client has the clients of API groups. They share their connections and their limit of requests.
type Client struct {
	// Core is core/v1, Coordination coordination.k8s.io/v1, and Node node.k8s.io/v1.
	Core, Coordination, Node rest.Interface
	// Certificates is certificates.k8s.io/v1, and Bundles certificates.k8s.io/v1beta1, which has the bundles of trust
	// anchors.
	Certificates, Bundles rest.Interface
	// Authentication is authentication.k8s.io/v1, and Authorization authorization.k8s.io/v1.
	Authentication, Authorization rest.Interface
}

// New returns a client. It sends nothing. The configuration is copied.
func New(config *rest.Config) (*Client, error) {
	c, scheme := &Client{}, runtime.NewScheme()
	for _, g := range c.groups() {
		utilruntime.Must(g.types(scheme))
	}
	shared := rest.CopyConfig(config)
	shared.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	if shared.UserAgent == "" {
		shared.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	if shared.RateLimiter == nil && shared.QPS > 0 {
		shared.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(shared.QPS, shared.Burst)
	}
	connections, err := rest.HTTPClientFor(shared)
	if err != nil {
		return nil, err
	}
	for _, g := range c.groups() {
		own := rest.CopyConfig(shared)
		own.GroupVersion, own.APIPath = &g.version, "/apis"
		if g.version.Group == "" {
			own.APIPath = "/api"
		}
		if *g.client, err = rest.RESTClientForConfigAndClient(own, connections); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Delete deletes the object of a request if it has a uid. grace is its grace period in seconds; if nil, its own
// applies. A response that is not an object of the API is an error, because it may come from a proxy.
func Delete(ctx context.Context, r *rest.Request, uid types.UID, grace *int64) error {
	_, err := r.Body(DeleteOptions(uid, grace)).Do(ctx).Get()
	return err
}

// DeleteOptions returns the options of a deletion of an object with a uid.
func DeleteOptions(uid types.UID, grace *int64) *metav1.DeleteOptions {
	return &metav1.DeleteOptions{GracePeriodSeconds: grace, Preconditions: metav1.NewUIDPreconditions(string(uid))}
}

// Object is a pointer to an object of the API.
type Object[T any] interface {
	*T
	runtime.Object
}

// Do makes a request and returns the object of the response. A response with another type, and a list with only a part
// of its objects, which no request asks for, are errors.
func Do[T any, P Object[T]](ctx context.Context, r *rest.Request) (*T, error) {
	answer, err := r.Do(ctx).Get()
	if err != nil {
		return nil, err
	}
	found, is := answer.(P)
	if !is {
		return nil, fmt.Errorf("the API server answers with %T instead of %T", answer, found)
	}
	if list, is := answer.(metav1.ListInterface); is && list.GetContinue() != "" {
		return nil, errors.New("the API server answers with a part of a list")
	}
	return found, nil
}
