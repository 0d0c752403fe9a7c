package view

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/commands/table"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
)

// local is the source of pods that are not from the API server.
const local = "local"

// Pods returns a table of pods. It has the column SOURCE if one of them is from the API server, and MANAGER if podctl
// does not manage all of them.
func (v *Lists) Pods(pods []*v1.Pod) (header []string, rows []Row) {
	unmanaged := slices.ContainsFunc(pods, func(pod *v1.Pod) bool {
		return pod.Annotations[observe.AnnotationManager] != ""
	})
	cluster := slices.ContainsFunc(pods, func(pod *v1.Pod) bool { return sourceText(pod) == podspec.OwnerAPI })
	header = append([]string{"NAME", "READY", "STATUS", "RESTARTS", "AGE"}, v.wide("IP", "UID")...)
	if cluster {
		header = append(header, "SOURCE")
	}
	if unmanaged {
		header = append(header, "MANAGER")
	}
	for _, pod := range pods {
		rows = append(rows, v.row(&pod.ObjectMeta, func(row *Row) {
			row.Add(pod.Name, ReadyText(pod), StatusText(pod))
			restarts, last := restartsOf(pod)
			row.addTimed(v.restartsText(restarts, last), strconv.Itoa(restarts))
			row.addTimed(v.since(ptr.Deref(pod.Status.StartTime, metav1.Time{}).Time), "")
			row.Add(v.wide(cmp.Or(pod.Status.PodIP, table.NoValue), string(pod.UID))...)
			if cluster {
				row.Add(sourceText(pod))
			}
			if unmanaged {
				row.Add(cmp.Or(pod.Annotations[observe.AnnotationManager], "podctl"))
			}
		}))
	}
	return v.header(header...), rows
}

// sourceText returns whether a pod is from the API server or local. It has no value for a pod of another program.
func sourceText(pod *v1.Pod) string {
	switch {
	case pod.Annotations[observe.AnnotationManager] != "":
		return table.NoValue
	case pod.Annotations[podspec.AnnotationConfigSource] == podspec.OwnerAPI:
		return podspec.OwnerAPI
	}
	return local
}

// ReadyText counts the ready containers, including sidecars.
func ReadyText(pod *v1.Pod) string {
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

// StatusText describes the state of a pod in one word: Terminating, what its containers wait for, how they ended, or
// otherwise its phase (kubectl: printPod). Unlike in kubectl, a failed pod shows a container that failed, not one that
// succeeded.
func StatusText(pod *v1.Pod) string {
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
		case pod.Status.Phase == v1.PodFailed && !failed(s):
			// A container that has not failed is not the reason for the failure of the pod.
		case s.State.Waiting != nil && s.State.Waiting.Reason != "":
			reason = s.State.Waiting.Reason
		case s.State.Terminated != nil:
			reason = EndText(s.State.Terminated, "")
		case s.Ready && s.State.Running != nil:
			running = true
		}
	}
	if reason == "Completed" && running {
		return "Running"
	}
	return reason
}

// failed reports whether a container has ended with a failure.
func failed(s *v1.ContainerStatus) bool {
	return s.State.Terminated != nil && s.State.Terminated.ExitCode != 0
}

// initText describes the init container that the pod waits for, or that has failed. It is empty if there is none.
func initText(pod *v1.Pod) string {
	total := len(pod.Spec.InitContainers)
	for i, ref := range podspec.InitContainers(pod) {
		if i >= len(pod.Status.InitContainerStatuses) {
			break
		}
		s := &pod.Status.InitContainerStatuses[i]
		switch {
		case pod.Status.Phase == v1.PodFailed && !failed(s):
			continue
		case s.State.Terminated != nil && s.State.Terminated.ExitCode == 0:
			continue
		case ref.Type == podspec.Sidecar && s.Started != nil && *s.Started:
			continue
		case ref.Type == podspec.Sidecar && pod.Status.Phase != v1.PodPending:
			continue
		case s.State.Terminated != nil:
			return EndText(s.State.Terminated, "Init:")
		case s.State.Waiting != nil && s.State.Waiting.Reason != "" && s.State.Waiting.Reason != "PodInitializing":
			return "Init:" + s.State.Waiting.Reason
		}
		return fmt.Sprintf("Init:%d/%d", i, total)
	}
	return ""
}

// EndText describes how a container ended.
func EndText(t *v1.ContainerStateTerminated, prefix string) string {
	if t.Reason != "" {
		return prefix + t.Reason
	}
	return fmt.Sprintf("%sExitCode:%d", prefix, t.ExitCode)
}

// restartsOf counts the restarts and returns the time of the last one.
func restartsOf(pod *v1.Pod) (restarts int, last time.Time) {
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		restarts += int(s.RestartCount)
		if t := s.LastTerminationState.Terminated; t != nil && t.FinishedAt.After(last) {
			last = t.FinishedAt.Time
		}
	}
	return restarts, last
}

func (v *Lists) restartsText(restarts int, last time.Time) string {
	if restarts == 0 || last.IsZero() {
		return strconv.Itoa(restarts)
	}
	return fmt.Sprintf("%d (%s ago)", restarts, duration.HumanDuration(v.Now.Sub(last)))
}

// Containers returns a table with a row for each container, in the order of the manifest.
func (v *Lists) Containers(pods []*v1.Pod) (header []string, rows []Row) {
	columns := []string{"POD", "CONTAINER", "TYPE", "STATE", "READY", "RESTARTS", "AGE", "IMAGE"}
	header = v.header(append(columns, v.wide("CONTAINER ID")...)...)
	for _, pod := range pods {
		for _, ref := range podspec.Containers(pod) {
			s := StatusOf(pod, ref.Name)
			rows = append(rows, v.row(&pod.ObjectMeta, func(row *Row) {
				row.Add(pod.Name, ref.Name, string(ref.Type), stateText(s))
				row.Add(strconv.FormatBool(s.Ready), strconv.Itoa(int(s.RestartCount)))
				row.addTimed(v.since(stateBegan(s)), "")
				row.Add(ref.Image)
				_, id, _ := strings.Cut(s.ContainerID, "://")
				row.Add(v.wide(cmp.Or(model.ShortID(id), table.NoValue))...)
			}))
		}
	}
	return header, rows
}

// StatusOf returns the status of a container. It is never nil, but empty if the pod has none.
func StatusOf(pod *v1.Pod, name string) *v1.ContainerStatus {
	return cmp.Or(model.StatusOf(&pod.Status, name), &v1.ContainerStatus{})
}

// stateText describes the state of a container in one word, with the exit code of a failed one.
func stateText(s *v1.ContainerStatus) string {
	switch {
	case s.State.Running != nil:
		return "Running"
	case s.State.Terminated != nil && s.State.Terminated.ExitCode == 0:
		return EndText(s.State.Terminated, "")
	case s.State.Terminated != nil:
		return fmt.Sprintf("%s (%d)", EndText(s.State.Terminated, ""), s.State.Terminated.ExitCode)
	case s.State.Waiting != nil && s.State.Waiting.Reason != "":
		return s.State.Waiting.Reason
	}
	return "Waiting"
}

// stateBegan returns when the container entered its state. It is zero if unknown.
func stateBegan(s *v1.ContainerStatus) time.Time {
	switch {
	case s.State.Running != nil:
		return s.State.Running.StartedAt.Time
	case s.State.Terminated != nil:
		return s.State.Terminated.FinishedAt.Time
	}
	return time.Time{}
}
