package grpcapi

import (
	"context"
	"net"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
)

// Agent provides the pods. runtime/agent implements it.
type Agent interface {
	// Shown returns the pods that the agent keeps, and those that it is deleting.
	Shown(ctx context.Context) ([]*podspec.Desired, error)
	// List returns pods with their status, in the same order. The status of a pod that cannot be observed contains the
	// error. If List returns no pods, it returns an error.
	List(ctx context.Context, pods []*podspec.Desired) ([]*v1.Pod, error)
}

// The kubelet's rate limits for unary calls (pkg/kubelet/apis/pods and podresources: DefaultQPS, DefaultBurstTokens).
const (
	callsPerSecond = 100
	burst          = 10
)

// Serve serves the services that register adds to a listener, until the context ends.
func Serve(
	ctx context.Context, l net.Listener, register func(grpc.ServiceRegistrar), options ...grpc.ServerOption,
) error {
	limit := rate.NewLimiter(callsPerSecond, burst)
	limited := func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, answer grpc.UnaryHandler) (any, error) {
		if !limit.Allow() {
			return nil, status.Error(codes.ResourceExhausted, "rejected by rate limit")
		}
		return answer(ctx, request)
	}
	server := grpc.NewServer(append(options, grpc.UnaryInterceptor(limited))...)
	register(server)
	defer context.AfterFunc(ctx, server.Stop)()
	if err := server.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}
