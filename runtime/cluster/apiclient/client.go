package apiclient

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// codecs returns the codecs for the types of the groups of a Client. A response can also be a Status, which is in
// core/v1.
func codecs() runtime.NegotiatedSerializer {
	scheme := runtime.NewScheme()
	utilruntime.Must(v1.AddToScheme(scheme))
	utilruntime.Must(coordinationv1.AddToScheme(scheme))
	// The request for a token is a subresource in core/v1.
	utilruntime.Must(authenticationv1.AddToScheme(scheme))
	return serializer.NewCodecFactory(scheme).WithoutConversion()
}

// Client has the clients of API groups. They share their connections and their limit of requests.
type Client struct {
	// Core is core/v1, and Coordination is coordination.k8s.io/v1.
	Core, Coordination rest.Interface
}

// New returns a client. It sends nothing. The configuration is copied.
func New(config *rest.Config) (*Client, error) {
	shared := rest.CopyConfig(config)
	shared.NegotiatedSerializer = codecs()
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
	group := func(path string, version schema.GroupVersion) (rest.Interface, error) {
		own := rest.CopyConfig(shared)
		own.APIPath, own.GroupVersion = path, &version
		return rest.RESTClientForConfigAndClient(own, connections)
	}
	c := &Client{}
	if c.Core, err = group("/api", v1.SchemeGroupVersion); err != nil {
		return nil, err
	}
	if c.Coordination, err = group("/apis", coordinationv1.SchemeGroupVersion); err != nil {
		return nil, err
	}
	return c, nil
}

// Object is a pointer to an object of the API.
type Object[T any] interface {
	*T
	runtime.Object
}

// Do makes a request and returns the object of the response. A response with another type is an error.
func Do[T any, P Object[T]](ctx context.Context, r *rest.Request) (*T, error) {
	answer, err := r.Do(ctx).Get()
	if err != nil {
		return nil, err
	}
	found, is := answer.(P)
	if !is {
		return nil, fmt.Errorf("the API server answers with %T instead of %T", answer, found)
	}
	return found, nil
}
