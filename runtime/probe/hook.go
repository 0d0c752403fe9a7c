package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	v1 "k8s.io/api/core/v1"
	httpprobe "k8s.io/kubernetes/pkg/probe/http"
)

// hookAgent is the User-Agent of a lifecycle hook.
const hookAgent = "kube-lifecycle/1.36"

// maxRedirects is the maximum number of redirects that a hook follows on its own host.
const maxRedirects = 10

// HTTPHook sends the request of a lifecycle hook (kubelet: runHTTPHandler). Any response is a success, whatever its
// status. Only a request without a response fails. The context is the only timeout.
func HTTPHook(ctx context.Context, action *v1.HTTPGetAction, t Target) error {
	host, err := t.host(action.Host)
	if err != nil {
		return err
	}
	req, err := httpprobe.NewRequestForHTTPGetAction(action, t.Container, host, "lifecycle")
	if err != nil {
		return fmt.Errorf("building the hook's request: %w", err)
	}
	if !hasHeader(action, "User-Agent") {
		req.Header.Set("User-Agent", hookAgent)
	}
	req = req.WithContext(ctx)
	client := hookClient()
	defer client.CloseIdleConnections()
	reply, err := client.Do(req)
	if isPlainAnswer(err) {
		// If a hook with HTTPS reaches a plain HTTP server, the request is repeated once without credentials.
		plain := req.Clone(ctx)
		plain.URL.Scheme = "http"
		plain.Header.Del("Authorization")
		reply, err = client.Do(plain)
	}
	if err != nil {
		return err
	}
	return reply.Body.Close()
}

func hasHeader(action *v1.HTTPGetAction, name string) bool {
	for _, h := range action.HTTPHeaders {
		if strings.EqualFold(h.Name, name) {
			return true
		}
	}
	return false
}

func hookClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			// As in the kubelet, because pods have their own certificates.
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
			DisableKeepAlives: true,
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if req.URL.Hostname() != via[0].URL.Hostname() {
				return http.ErrUseLastResponse
			}
			if len(via) >= maxRedirects {
				return fmt.Errorf("stopped after %d redirects", maxRedirects)
			}
			return nil
		},
	}
}

func isPlainAnswer(err error) bool {
	if failure := (*url.Error)(nil); errors.As(err, &failure) {
		return strings.Contains(failure.Err.Error(), "server gave HTTP response to HTTPS client")
	}
	return false
}
