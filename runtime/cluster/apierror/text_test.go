package apierror

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// requested returns the error of a request, as client-go returns it. try is part of its URL, as the timeout of a watch
// is.
func requested(try int, err error) error {
	return fmt.Errorf("failed to list: %w", &url.Error{
		Op: "Get", URL: fmt.Sprintf("https://user:secret@api.test:6443/api/v1/pods?timeoutSeconds=%d", try), Err: err,
	})
}

// network returns an error of a connection from a port that differs with each try.
func network(try int) error {
	return &net.OpError{
		Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: 40000 + try}, Addr: &net.TCPAddr{Port: 6443},
		Err: os.NewSyscallError("read", syscall.ECONNRESET),
	}
}

// expired returns the error of a certificate that is checked at a time that differs with each try.
func expired(try int) error {
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return x509.CertificateInvalidError{
		Cert: &x509.Certificate{NotBefore: from, NotAfter: from.AddDate(0, 1, 0)}, Reason: x509.Expired,
		Detail: fmt.Sprintf("current time %d is after", try),
	}
}

func status(code int, body string) error {
	return apierrors.NewGenericServerResponse(code, "get", schema.GroupResource{Resource: "pods"}, "web", body, 0, true)
}

// TestText checks that a text reports what happened and what to do, is the same for each try, and has no secrets and no
// second line.
func TestText(t *testing.T) {
	pods := schema.GroupKind{Kind: "Pod"}
	for name, c := range map[string]struct {
		err  func(try int) error
		want string
	}{
		"client certificate": {
			func(try int) error {
				return requested(try, &net.OpError{Op: "remote error", Source: &net.TCPAddr{Port: try}, Err: tls.AlertError(45)})
			},
			"does not accept the client certificate of the kubeconfig (tls: expired certificate): renew it",
		},
		"refused": {
			func(try int) error { return requested(try, network(try)) },
			"https://api.test:6443: read: read: connection reset by peer: check that the API server runs",
		},
		"expired certificate": {
			func(try int) error { return requested(try, expired(try)) },
			"valid from 2026-01-01T00:00:00Z to 2026-02-01T00:00:00Z only: renew it",
		},
		"unknown authority": {
			func(try int) error { return requested(try, x509.UnknownAuthorityError{}) }, "check certificate-authority",
		},
		"name server": {
			func(try int) error {
				failure := fmt.Sprintf("read udp 192.0.2.1:%d->192.0.2.2:53: i/o timeout", 40000+try)
				return requested(try, &net.OpError{Op: "dial", Err: &net.DNSError{Err: failure, Name: "api.test", IsTimeout: true}})
			},
			"cannot find the address of api.test (no answer of the name server): check the server in the kubeconfig",
		},
		"no answer": {
			func(try int) error { return requested(try, context.DeadlineExceeded) }, "no answer in time",
		},
		"page": {
			func(try int) error { return requested(try, &PageError{Type: "text/html", Status: "200 OK"}) },
			"is a page (text/html, 200 OK) and not an object of the API: check the server in the kubeconfig",
		},
		"unauthorized":      {func(int) error { return status(401, "") }, "does not accept the credentials"},
		"forbidden":         {func(int) error { return status(403, "no\nline") }, "check the permissions of the user"},
		"too many requests": {func(int) error { return status(429, "wait") }, "too many requests (429)"},
		"failure":           {func(int) error { return status(500, "") }, "has failed (500)"},
		"invalid": {
			func(int) error {
				return apierrors.NewInvalid(pods, "web", field.ErrorList{field.Invalid(field.NewPath("status", "x"), "secret", "no")})
			},
			"refuses the fields status.x",
		},
		"long": {func(int) error { return apierrors.NewBadRequest(strings.Repeat("é", 5000)) }, "…"},
	} {
		text := Text(c.err(1))
		if !strings.Contains(text, c.want) || strings.Contains(text, "secret") || strings.Contains(text, "\n") || len(text) > 1000 {
			t.Errorf("%s: %s", name, text)
		}
		if again := Text(c.err(2)); again != text {
			t.Errorf("%s: %s, and at the next try %s", name, text, again)
		}
	}
	if Text(nil) != "" {
		t.Error("no error has a text")
	}
}

// TestIsFromAPI checks that the page of a proxy is not the answer of an API server.
func TestIsFromAPI(t *testing.T) {
	if IsFromAPI(status(404, "<html>")) || IsFromAPI(errors.New("x")) || IsFromAPI(nil) {
		t.Error("a page is an answer")
	}
	if !IsFromAPI(apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "web")) {
		t.Error("an object that is not found is no answer")
	}
}

// TestIsRefusal checks which requests can succeed later.
func TestIsRefusal(t *testing.T) {
	for code, want := range map[int]bool{400: true, 403: true, 404: true, 429: false, 500: false, 503: false} {
		if got := IsRefusal(fmt.Errorf("x: %w", status(code, ""))); got != want {
			t.Errorf("%d: %v", code, got)
		}
	}
	if IsRefusal(nil) || IsRefusal(errors.New("x")) {
		t.Error("no response is a refusal")
	}
}
