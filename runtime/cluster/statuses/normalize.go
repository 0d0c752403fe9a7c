package statuses

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// messagesMax limits the termination messages of a pod together, and each other message, in bytes (kubelet:
// MaxPodTerminationMessageLogLength).
const messagesMax = 12 << 10

// normalize brings a status into the form in which the API server returns it, so that both can be compared (kubelet:
// normalizeStatus): times in whole seconds, valid UTF-8, statuses of containers in a fixed order. It limits messages.
func normalize(pod *v1.Pod, s *v1.PodStatus) {
	limit := messagesMax / max(1, len(podspec.Containers(pod)))
	s.Message = text(s.Message, messagesMax)
	if s.StartTime != nil {
		wholeSeconds(s.StartTime)
	}
	for i := range s.Conditions {
		c := &s.Conditions[i]
		wholeSeconds(&c.LastProbeTime)
		wholeSeconds(&c.LastTransitionTime)
		c.Message = text(c.Message, messagesMax)
	}
	for _, list := range model.ContainerStatuses(s) {
		for i := range list {
			normalizeState(&list[i].State, limit)
			normalizeState(&list[i].LastTerminationState, limit)
		}
	}
	sortByName(s.ContainerStatuses)
	sortByName(s.EphemeralContainerStatuses)
}

func sortByName(list []v1.ContainerStatus) {
	slices.SortStableFunc(list, func(a, b v1.ContainerStatus) int { return cmp.Compare(a.Name, b.Name) })
}

func normalizeState(s *v1.ContainerState, limit int) {
	switch {
	case s.Running != nil:
		wholeSeconds(&s.Running.StartedAt)
	case s.Terminated != nil:
		wholeSeconds(&s.Terminated.StartedAt)
		wholeSeconds(&s.Terminated.FinishedAt)
		s.Terminated.Message = text(s.Terminated.Message, limit)
	case s.Waiting != nil:
		s.Waiting.Message = text(s.Waiting.Message, messagesMax)
	}
}

func wholeSeconds(t *metav1.Time) { t.Time = t.Truncate(time.Second) }

// text returns at most limit bytes of valid UTF-8. JSON cannot carry other bytes, so the API would return another text
// than podctl sent.
func text(s string, limit int) string {
	s = strings.ToValidUTF8(s, "�")
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
