package apierror

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/podctl/podctl/podspec/quote"
)

// textMax limits a text, and the part of it that a server wrote, in bytes.
const textMax = 500

const inKubeconfig = "the server in the kubeconfig"

// PageError reports an answer that no API server gives: a page of a proxy or of another server.
type PageError struct {
	// Type is the media type of the answer, Status its status line.
	Type, Status string
}

// Error returns the text of the error.
func (e *PageError) Error() string {
	return fmt.Sprintf("the answer is a page (%s, %s) and not an object of the API: check the server in the "+
		"kubeconfig, and the proxies before it", e.Type, e.Status)
}

// Text returns the text of an error for the log. It is empty for nil.
func Text(err error) string {
	if err == nil {
		return ""
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return cut(statusText(status.Status()))
	}
	where := ""
	if requested := (*url.Error)(nil); errors.As(err, &requested) {
		// Its own text has the whole URL, with parameters that differ from one try to the next.
		if u, parseErr := url.Parse(requested.URL); parseErr == nil {
			where = u.Scheme + "://" + u.Host + ": "
		}
	}
	return cut(where + transportText(err))
}

// cut returns at most textMax bytes of a text, on one line and without the numbers of HTTP/2 streams.
func cut(text string) string {
	text = withoutStreams(text)
	if len(text) > textMax {
		text = strings.ToValidUTF8(text[:textMax], "") + "…"
	}
	return quote.OneLine(text)
}

// withoutStreams removes the numbers of HTTP/2 streams, which differ from one try to the next.
func withoutStreams(text string) string {
	const mark = "stream ID "
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, mark)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString("stream")
		text = strings.TrimLeft(after, "0123456789")
	}
}

// transportText describes an error of a request without an answer of the API.
func transportText(err error) string {
	var (
		network *net.OpError
		name    *net.DNSError
		alert   tls.AlertError
		page    *PageError
	)
	switch {
	case errors.As(err, &page):
		return page.Error()
	case runtime.IsMissingKind(err), runtime.IsMissingVersion(err), runtime.IsNotRegisteredError(err):
		return "the answer is not an object of the API (" + err.Error() + "): check " + inKubeconfig
	case errors.As(err, &alert):
		return "the server does not accept the client certificate of the kubeconfig (" + alert.Error() + "): renew it"
	case certificateText(err) != "":
		return certificateText(err)
	case errors.As(err, &name):
		return "cannot find the address of " + name.Name + " (" + nameText(name) + "): check " + inKubeconfig
	case errors.As(err, &network):
		// Its own text has the port of this machine, which differs from one try to the next.
		return network.Op + ": " + network.Err.Error() +
			": check that the API server runs and that this machine reaches it"
	}
	if requested := (*url.Error)(nil); errors.As(err, &requested) {
		err = requested.Err
	}
	if isTimeout(err) {
		return "no answer in time"
	}
	return err.Error()
}

// isTimeout reports whether an error is, or wraps, one that reports a timeout.
func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// nameText describes the failure of a name server. The error's own text may have the port of this machine.
func nameText(err *net.DNSError) string {
	switch {
	case err.IsNotFound:
		return "no such host"
	case err.IsTimeout:
		return "no answer of the name server"
	}
	return "the name server has failed"
}

// certificateText describes a serving certificate that cannot be verified. It is empty for other errors.
func certificateText(err error) string {
	var (
		invalid x509.CertificateInvalidError
		unknown x509.UnknownAuthorityError
		host    x509.HostnameError
	)
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil:
		// Its own text has the current time.
		return fmt.Sprintf("the certificate of the server is valid from %s to %s only: renew it, or set the clock",
			invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339))
	case errors.As(err, &unknown):
		return "an unknown authority has signed the certificate of the server: check certificate-authority and " +
			inKubeconfig
	case errors.As(err, &host):
		return host.Error() + ": check " + inKubeconfig
	}
	return ""
}

// statusText describes an answer that refuses a request.
func statusText(s metav1.Status) string {
	message := cut(s.Message)
	switch {
	case s.Reason == metav1.StatusReasonInvalid:
		// The message repeats the values.
		return "the API server refuses the fields " + fieldsOf(s.Details)
	case s.Code == http.StatusUnauthorized:
		return "the API server does not accept the credentials of the kubeconfig (401 " + message + "): renew them"
	case s.Code == http.StatusForbidden:
		return "the API server forbids it (403): " + message + ": check the permissions of the user of the kubeconfig"
	case s.Code == http.StatusTooManyRequests:
		return "the API server has too many requests (429), and podctl tries again: " + message
	case s.Code >= http.StatusInternalServerError:
		return fmt.Sprintf("the API server has failed (%d), and podctl tries again: %s", s.Code, message)
	}
	return fmt.Sprintf("the API server refuses it (%d %s): %s", s.Code, s.Reason, message)
}

// fieldsOf returns the fields of an invalid object without their values.
func fieldsOf(details *metav1.StatusDetails) string {
	fields := ""
	if details == nil {
		return fields
	}
	for i := range details.Causes {
		if i > 0 {
			fields += ", "
		}
		if fields += details.Causes[i].Field; len(fields) > textMax {
			break
		}
	}
	return fields
}

// IsFromAPI reports whether an error is an answer of an API server, with its status object. A proxy and a server that
// starts answer with the same codes, but without one.
func IsFromAPI(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// IsAbsent reports whether the API server has no such object. A proxy also responds with 404.
func IsAbsent(err error) bool { return apierrors.IsNotFound(err) && IsFromAPI(err) }

// IsRefusal reports whether a server has refused a request, so that the same request would fail again. If the server
// has a failure or is busy, the request can succeed later.
func IsRefusal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code < http.StatusInternalServerError && code != http.StatusTooManyRequests
}
