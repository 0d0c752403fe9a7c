package references

import (
	"errors"
	"net"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/podctl/podctl/runtime/cluster/apierror"
)

// reasonOf returns the reason why the API server did not send an object, for messages. It leaves out errors of
// decoders, which may repeat a part of a Secret.
func reasonOf(err error) string {
	rejected, status, network := apierror.RejectedError{}, apierrors.APIStatus(nil), net.Error(nil)
	switch {
	case errors.As(err, &rejected):
		return rejected.Reason
	case errors.As(err, &status), errors.As(err, new(*url.Error)), errors.As(err, &network),
		errors.As(err, new(*apierror.PageError)):
		return apierror.Text(err)
	}
	return "the answer cannot be decoded"
}
