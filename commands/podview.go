package commands

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
)

// podView writes pods as kubectl does.
type podView struct {
	now        time.Time
	wide       bool
	namespaces bool
	// owners adds who made the pods.
	owners bool
}

func (v *podView) header() []string {
	header := []string{"NAME", "READY", "STATUS", "RESTARTS", "AGE"}
	if v.namespaces {
		header = append([]string{"NAMESPACE"}, header...)
	}
	if v.wide {
		header = append(header, "IP", "UID")
	}
	if v.owners {
		header = append(header, "OWNER")
	}
	return header
}

func (v *podView) rows(pods []*v1.Pod) [][]string {
	rows := make([][]string, 0, len(pods))
	for _, pod := range pods {
		row := []string{pod.Name, readyText(pod), statusText(pod), v.restartsText(pod), v.age(pod)}
		if v.namespaces {
			row = append([]string{pod.Namespace}, row...)
		}
		if v.wide {
			row = append(row, cmp.Or(pod.Status.PodIP, noValue), string(pod.UID))
		}
		if v.owners {
			row = append(row, ownerText(pod))
		}
		rows = append(rows, row)
	}
	return rows
}

// ownerText says who made a pod.
func ownerText(pod *v1.Pod) string {
	return cmp.Or(pod.Annotations[observe.AnnotationOwner], "podctl")
}

// readyText counts the containers that are ready, sidecars included.
func readyText(pod *v1.Pod) string {
	ready, total := 0, len(pod.Spec.Containers)
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Ready {
			ready++
		}
	}
	for i, ref := range podspec.InitContainers(pod) {
		if ref.Type == podspec.Sidecar {
			total++
			if i < len(pod.Status.InitContainerStatuses) && pod.Status.InitContainerStatuses[i].Ready {
				ready++
			}
		}
	}
	return fmt.Sprintf("%d/%d", ready, total)
}

// statusText is the one word for a pod's state: that it is being deleted, what its
// containers wait for or how they ended, else its phase (kubectl: printPod).
func statusText(pod *v1.Pod) string {
	if pod.DeletionTimestamp != nil && !model.IsOver(&pod.Status) {
		return "Terminating"
	}
	if text := initText(pod); text != "" {
		return text
	}
	reason := string(pod.Status.Phase)
	if pod.Status.Reason != "" {
		reason = pod.Status.Reason
	}
	running := false
	for i := len(pod.Status.ContainerStatuses) - 1; i >= 0; i-- {
		s := &pod.Status.ContainerStatuses[i]
		switch {
		case s.State.Waiting != nil && s.State.Waiting.Reason != "":
			reason = s.State.Waiting.Reason
		case s.State.Terminated != nil:
			reason = endText(s.State.Terminated, "")
		case s.Ready && s.State.Running != nil:
			running = true
		}
	}
	if reason == "Completed" && running {
		return "Running"
	}
	return reason
}

// initText is the state of the init container that holds the pod up.
func initText(pod *v1.Pod) string {
	total := len(pod.Spec.InitContainers)
	for i, ref := range podspec.InitContainers(pod) {
		if i >= len(pod.Status.InitContainerStatuses) {
			break
		}
		s := &pod.Status.InitContainerStatuses[i]
		switch {
		case s.State.Terminated != nil && s.State.Terminated.ExitCode == 0:
			continue
		case ref.Type == podspec.Sidecar && s.Started != nil && *s.Started:
			continue
		case ref.Type == podspec.Sidecar && pod.Status.Phase != v1.PodPending:
			continue
		case s.State.Terminated != nil:
			return endText(s.State.Terminated, "Init:")
		case s.State.Waiting != nil && s.State.Waiting.Reason != "" && s.State.Waiting.Reason != "PodInitializing":
			return "Init:" + s.State.Waiting.Reason
		}
		return fmt.Sprintf("Init:%d/%d", i, total)
	}
	return ""
}

func endText(t *v1.ContainerStateTerminated, prefix string) string {
	if t.Reason != "" {
		return prefix + t.Reason
	}
	return fmt.Sprintf("%sExitCode:%d", prefix, t.ExitCode)
}

// restartsText counts restarts, with the time of the last one.
func (v *podView) restartsText(pod *v1.Pod) string {
	restarts := int32(0)
	var last time.Time
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		restarts += s.RestartCount
		if t := s.LastTerminationState.Terminated; t != nil && t.FinishedAt.After(last) {
			last = t.FinishedAt.Time
		}
	}
	text := strconv.Itoa(int(restarts))
	if restarts > 0 && !last.IsZero() {
		text += fmt.Sprintf(" (%s ago)", duration.HumanDuration(v.now.Sub(last)))
	}
	return text
}

func (v *podView) age(pod *v1.Pod) string {
	if pod.Status.StartTime == nil {
		return "<unknown>"
	}
	return strings.TrimSpace(duration.HumanDuration(v.now.Sub(pod.Status.StartTime.Time)))
}
