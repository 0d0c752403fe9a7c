package agent

import (
	"context"
	"net"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/podsapi"
)

// Lister gives pods their status.
type Lister interface {
	List(ctx context.Context, pods []*podspec.Desired) ([]*v1.Pod, error)
}

// shownPods shows the pods of an agent with their status.
type shownPods struct {
	Lister
	inbox  inbox
	keeper *keeper
	pods   *podsapi.Server
}

func newShownPods(in inbox, k *keeper, lister Lister, dropped func()) *shownPods {
	s := &shownPods{Lister: lister, inbox: in, keeper: k}
	s.pods = podsapi.New(s, dropped)
	return s
}

// Shown are the pods that the agent keeps, as they were applied, and those that it is deleting.
func (s *shownPods) Shown(ctx context.Context) ([]*podspec.Desired, error) {
	return ask(ctx, s.inbox, s.keeper.shown)
}

// Pods lists the pods that are shown, with their status. One that cannot be observed is Unknown and
// says why.
func (s *shownPods) Pods(ctx context.Context) (*v1.PodList, error) {
	shown, err := s.Shown(ctx)
	if err != nil {
		return nil, err
	}
	pods, err := s.List(ctx, shown)
	if pods == nil && err != nil {
		return nil, err
	}
	list := &v1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: make([]v1.Pod, 0, len(pods))}
	for _, p := range pods {
		list.Items = append(list.Items, *p)
	}
	return list, nil
}

// ServePods serves the kubelet's local Pods API on a socket until the context ends.
func (s *shownPods) ServePods(ctx context.Context, l net.Listener) error { return s.pods.Serve(ctx, l) }
