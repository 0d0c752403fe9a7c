package podsapi

import (
	"cmp"
	"context"
	"net"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/grpcapi"
)

// Server serves the pods of an agent.
type Server struct {
	podsv1alpha1.UnimplementedPodsServer
	agent   grpcapi.Agent
	watches watches
}

// New returns a server. It calls dropped for each watch that it ends because the client reads too slowly.
func New(agent grpcapi.Agent, dropped func()) *Server {
	return &Server{agent: agent, watches: watches{agent: agent, dropped: dropped, wakeup: make(chan struct{}, 1)}}
}

// Serve serves a listener until the context ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	go s.watches.run(ctx)
	return grpcapi.Serve(ctx, l, func(r grpc.ServiceRegistrar) { podsv1alpha1.RegisterPodsServer(r, s) })
}

// ListPods lists all pods by UID.
func (s *Server) ListPods(
	ctx context.Context, _ *podsv1alpha1.ListPodsRequest,
) (*podsv1alpha1.ListPodsResponse, error) {
	shown, err := s.agent.Shown(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	slices.SortStableFunc(shown, byUID)
	pods, err := encode(ctx, s.agent, shown)
	return &podsv1alpha1.ListPodsResponse{Pods: pods}, err
}

// GetPod returns one pod by its UID.
func (s *Server) GetPod(
	ctx context.Context, request *podsv1alpha1.GetPodRequest,
) (*podsv1alpha1.GetPodResponse, error) {
	shown, err := s.agent.Shown(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	i := slices.IndexFunc(shown, func(d *podspec.Desired) bool { return string(d.Pod.UID) == request.GetPodUID() })
	if i < 0 {
		return nil, status.Errorf(codes.NotFound, "pod with UID %s not found", request.GetPodUID())
	}
	pods, err := encode(ctx, s.agent, shown[i:i+1])
	if err != nil {
		return nil, err
	}
	return &podsv1alpha1.GetPodResponse{Pod: pods[0]}, nil
}

// WatchPods sends all pods, the end of the initial list, and then each change.
func (s *Server) WatchPods(_ *podsv1alpha1.WatchPodsRequest, stream podsv1alpha1.Pods_WatchPodsServer) error {
	w := s.watches.add()
	defer s.watches.remove(w)
	for {
		select {
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		case events, open := <-w.queue:
			if !open {
				return w.end
			}
			for _, e := range events {
				if err := stream.Send(e); err != nil {
					return err
				}
			}
		}
	}
}

func byUID(a, b *podspec.Desired) int { return cmp.Compare(a.Pod.UID, b.Pod.UID) }

// encode adds the status to pods and encodes them for the API.
func encode(ctx context.Context, agent grpcapi.Agent, shown []*podspec.Desired) ([][]byte, error) {
	if len(shown) == 0 {
		return nil, nil
	}
	pods, err := agent.List(ctx, shown)
	if pods == nil && err != nil {
		return nil, unavailable(err)
	}
	encoded := make([][]byte, 0, len(pods))
	for _, p := range pods {
		data, err := p.Marshal()
		if err != nil {
			return nil, status.Errorf(codes.Internal, "pod %s/%s: %v", p.Namespace, p.Name, err)
		}
		encoded = append(encoded, data)
	}
	return encoded, nil
}

func unavailable(err error) error { return status.Error(codes.Unavailable, err.Error()) }
