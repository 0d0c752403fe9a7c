package pods

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/podctl/podctl/runtime/cluster/listwatch"
)

// firstPause and longestPause are the pauses between two tries while the API server does not respond. A kubelet waits
// for up to a minute, so that a node may see the API server late. A small cluster has few nodes that try.
const firstPause, longestPause = 800 * time.Millisecond, 5 * time.Second

// reflector returns the list and watch of the pods of this node.
func (s *Source) reflector() *cache.Reflector {
	s.failures.To, s.failures.What, s.failures.Effect = s.settings.Log, "the pods of this node", "pods keep running"
	return listwatch.New(listwatch.Settings{
		Client: s.settings.Client, Resource: "pods", Object: &v1.Pod{}, List: &v1.PodList{},
		Fields:  fields.OneTermEqualSelector("spec.nodeName", s.settings.Node),
		Backoff: wait.Backoff{Duration: firstPause, Cap: longestPause, Steps: 4, Factor: 2, Jitter: 1},
		Confirm: s.settings.Confirm, Report: s.failures.Report, Works: s.failures.Works,
	}, newStore(s))
}
