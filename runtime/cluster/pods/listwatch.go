package pods

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/podctl/podctl/runtime/cluster/apierror"
	"github.com/podctl/podctl/runtime/cluster/listwatch"
)

// firstPause and longestPause are the pauses between two tries while the API server does not respond. A kubelet waits
// for up to a minute, so that a node may see the API server late. A small cluster has few nodes that try.
const firstPause, longestPause = 800 * time.Millisecond, 5 * time.Second

// reflector returns the list and watch of the pods of this node.
func (s *Source) reflector() *cache.Reflector {
	return listwatch.New(listwatch.Settings{
		Client: s.settings.Client, Resource: "pods", Object: &v1.Pod{}, List: &v1.PodList{},
		Fields:  fields.OneTermEqualSelector("spec.nodeName", s.settings.Node),
		Backoff: wait.Backoff{Duration: firstPause, Cap: longestPause, Steps: 4, Factor: 2, Jitter: 1},
		Confirm: s.settings.Confirm, Report: s.report, Works: s.recovered,
	}, store{s})
}

// report logs an error of the list or the watch, once until another one or a success.
func (s *Source) report(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	text := apierror.Text(err)
	s.mu.Lock()
	before := s.failures[what]
	s.failures[what], s.fails = text, s.fails || text != ""
	s.mu.Unlock()
	if text != "" && text != before {
		s.settings.Log.Warn("cannot "+what+" the pods of this node in the API server; pods keep running", "error", text)
	}
}

// recovered logs that the watch works again after a failure.
func (s *Source) recovered(ctx context.Context) {
	s.mu.Lock()
	failed := s.fails
	s.fails = false
	clear(s.failures)
	s.mu.Unlock()
	if failed && ctx.Err() == nil {
		s.settings.Log.Info("the watch of the pods of this node in the API server works again")
	}
}
