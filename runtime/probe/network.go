package probe

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	kprobe "k8s.io/kubernetes/pkg/probe"
	grpcprobe "k8s.io/kubernetes/pkg/probe/grpc"
	httpprobe "k8s.io/kubernetes/pkg/probe/http"
	tcpprobe "k8s.io/kubernetes/pkg/probe/tcp"
	"k8s.io/utils/ptr"
)

// userAgent is the User-Agent of a probe: that of the kubelet whose behavior podctl has.
const userAgent = "kube-probe/1.36"

// httpProber sends all HTTP probes. It does not reuse connections.
//
//nolint:gochecknoglobals // created once, when it is needed
var httpProber = sync.OnceValue(func() httpprobe.Prober { return httpprobe.New(false) })

// httpCheck sends a GET request. It follows redirects to the same host, does not verify TLS, and does not use proxies.
func httpCheck(action *v1.HTTPGetAction, t Target) (check, error) {
	host, err := t.host(action.Host)
	if err != nil {
		return unreachable("http-get", err), nil
	}
	req, err := httpprobe.NewRequestForHTTPGetAction(action, t.Container, host, "probe")
	if err != nil {
		return check{handler: "http-get"}, err
	}
	if !hasHeader(action, "User-Agent") {
		req.Header.Set("User-Agent", userAgent)
	}
	return check{
		handler: "http-get " + req.URL.Redacted(),
		run: func(ctx context.Context, timeout time.Duration) answer {
			return newAnswer(httpProber().Probe(req.WithContext(ctx), timeout))
		},
	}, nil
}

// tcpCheck opens a connection and closes it.
func tcpCheck(action *v1.TCPSocketAction, t Target) (check, error) {
	port, err := kprobe.ResolveContainerPort(action.Port, t.Container)
	if err != nil {
		return check{handler: "tcp"}, err
	}
	host, err := t.host(action.Host)
	if err != nil {
		return unreachable("tcp", err), nil
	}
	return check{
		handler: "tcp " + net.JoinHostPort(host, strconv.Itoa(port)),
		run: func(_ context.Context, timeout time.Duration) answer {
			return newAnswer(tcpprobe.New().Probe(host, port, timeout))
		},
	}, nil
}

// grpcCheck calls the gRPC health service.
func grpcCheck(action *v1.GRPCAction, t Target) check {
	host, err := t.host("")
	if err != nil {
		return unreachable("grpc", err)
	}
	service := ptr.Deref(action.Service, "")
	address := net.JoinHostPort(host, strconv.Itoa(int(action.Port)))
	return check{
		handler: fmt.Sprintf("grpc %s %s", address, service),
		run: func(_ context.Context, timeout time.Duration) answer {
			return newAnswer(grpcprobe.New().Probe(host, service, int(action.Port), timeout))
		},
	}
}
