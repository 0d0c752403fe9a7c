package certificates

import (
	"context"
	"crypto/tls"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedv1 "k8s.io/client-go/kubernetes/typed/certificates/v1"
	typedv1beta1 "k8s.io/client-go/kubernetes/typed/certificates/v1beta1"
	"k8s.io/client-go/rest"
)

// clientset has the clients that the library uses. The others are nil, so that they are not linked.
type clientset struct {
	kubernetes.Interface

	current typedv1.CertificatesV1Interface
	old     typedv1beta1.CertificatesV1beta1Interface
}

// CertificatesV1 returns the client of certificates.k8s.io/v1.
func (c *clientset) CertificatesV1() typedv1.CertificatesV1Interface { return c.current }

// CertificatesV1beta1 returns the client that the library tries after an error of the other one.
func (c *clientset) CertificatesV1beta1() typedv1beta1.CertificatesV1beta1Interface { return c.old }

// client returns the client for the next request. current is nil if there is no valid certificate.
func (r *Rotation) client(current *tls.Certificate) (kubernetes.Interface, error) {
	set, err := r.newClient(current)
	if err != nil {
		r.failed("requesting a certificate", err)
		return nil, err
	}
	return set, nil
}

func (r *Rotation) newClient(current *tls.Certificate) (kubernetes.Interface, error) {
	if err := r.checkSpace(); err != nil {
		return nil, err
	}
	config, err := r.Config(current)
	if err != nil {
		return nil, err
	}
	connections, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	now, err := typedv1.NewForConfigAndClient(config, connections)
	if err != nil {
		return nil, err
	}
	old, err := typedv1beta1.NewForConfigAndClient(config, connections)
	return &clientset{current: &group{now, r}, old: old}, err
}

// group notices the requests of the library and their answers.
type group struct {
	typedv1.CertificatesV1Interface

	rotation *Rotation
}

// CertificateSigningRequests returns the client of requests for certificates.
func (g *group) CertificateSigningRequests() typedv1.CertificateSigningRequestInterface {
	return &requests{g.CertificatesV1Interface.CertificateSigningRequests(), g.rotation}
}

type requests struct {
	typedv1.CertificateSigningRequestInterface

	rotation *Rotation
}

// Create sends a request.
func (q *requests) Create(
	ctx context.Context, csr *certificatesv1.CertificateSigningRequest, o metav1.CreateOptions,
) (*certificatesv1.CertificateSigningRequest, error) {
	made, err := q.CertificateSigningRequestInterface.Create(ctx, csr, o)
	if err != nil {
		q.rotation.failed("requesting a certificate", err)
		return nil, err
	}
	q.rotation.requested(made)
	return made, nil
}

// List reads the state of a request.
func (q *requests) List(
	ctx context.Context, o metav1.ListOptions,
) (*certificatesv1.CertificateSigningRequestList, error) {
	list, err := q.CertificateSigningRequestInterface.List(ctx, o)
	if err != nil {
		if ctx.Err() == nil {
			q.rotation.failed("waiting for a certificate", err)
		}
		return nil, err
	}
	for i := range list.Items {
		q.rotation.answered(&list.Items[i])
	}
	return list, nil
}

// Watch watches the state of a request.
func (q *requests) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	events, err := q.CertificateSigningRequestInterface.Watch(ctx, o)
	if err != nil {
		return nil, err
	}
	return observe(events, func(e watch.Event) {
		if csr, is := e.Object.(*certificatesv1.CertificateSigningRequest); is && e.Type != watch.Deleted {
			q.rotation.answered(csr)
		}
	}), nil
}

// observe calls a function for each event of a watch before it passes the event on. (A watch of watch.Filter leaves a
// goroutine if it is stopped before its end.)
func observe(from watch.Interface, see func(watch.Event)) watch.Interface {
	events := make(chan watch.Event)
	to := watch.NewProxyWatcher(events)
	go func() {
		defer close(events)
		defer from.Stop()
		for {
			select {
			case e, more := <-from.ResultChan():
				if !more {
					return
				}
				see(e)
				select {
				case events <- e:
				case <-to.StopChan():
					return
				}
			case <-to.StopChan():
				return
			}
		}
	}()
	return to
}

// answerOf returns whether a request was approved, and why it will not be signed.
func answerOf(csr *certificatesv1.CertificateSigningRequest) (approved bool, refusal error) {
	for _, c := range csr.Status.Conditions {
		switch c.Type {
		case certificatesv1.CertificateApproved:
			approved = true
		case certificatesv1.CertificateDenied:
			return false, fmt.Errorf("the request was denied: %s: %s", c.Reason, c.Message)
		case certificatesv1.CertificateFailed:
			return false, fmt.Errorf("signing failed: %s: %s", c.Reason, c.Message)
		}
	}
	return approved, nil
}
