package view

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
)

// Pods are tables of pods, as kubectl prints them.
type Pods struct {
	Now        time.Time
	Wide       bool
	Namespaces bool
	// Owners adds who made the pods.
	Owners bool
	LabelColumns
}

// Row is a line of a table.
type Row struct {
	Cells []string
	// State is what is in it without times: it changes when something happens.
	State string
}

// Add puts cells at the end of a row.
func (r *Row) Add(cells ...string) {
	for _, cell := range cells {
		r.addTimed(cell, cell)
	}
}

// addTimed puts a cell at the end of a row, of which the state is what does not change with the
// time alone.
func (r *Row) addTimed(cell, state string) {
	r.Cells = append(r.Cells, cell)
	r.State += state + "\x00"
}

// Table has one row for each pod.
func (v *Pods) Table(pods []*v1.Pod) (header []string, rows []Row) {
	header = []string{"NAME", "READY", "STATUS", "RESTARTS", "AGE"}
	if v.Namespaces {
		header = append([]string{"NAMESPACE"}, header...)
	}
	if v.Wide {
		header = append(header, "IP", "UID")
	}
	if v.Owners {
		header = append(header, "OWNER")
	}
	header = append(header, v.labelHeader()...)
	for _, pod := range pods {
		rows = append(rows, v.row(pod))
	}
	return header, rows
}

func (v *Pods) row(pod *v1.Pod) Row {
	var row Row
	if v.Namespaces {
		row.Add(pod.Namespace)
	}
	row.Add(pod.Name, ReadyText(pod), StatusText(pod))
	restarts, last := restartsOf(pod)
	row.addTimed(v.restartsText(restarts, last), strconv.Itoa(restarts))
	row.addTimed(v.age(pod), "")
	if v.Wide {
		row.Add(cmp.Or(pod.Status.PodIP, terminal.NoValue), string(pod.UID))
	}
	if v.Owners {
		row.Add(ownerText(pod))
	}
	row.Add(v.labelCells(pod.Labels)...)
	return row
}

// ownerText says who made a pod.
func ownerText(pod *v1.Pod) string {
	return cmp.Or(pod.Annotations[observe.AnnotationOwner], "podctl")
}

// ReadyText counts the containers that are ready, sidecars included.
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

// StatusText is the one word for a pod's state: that it is being deleted, what its
// containers wait for or how they ended, else its phase (kubectl: printPod). Unlike in kubectl, a
// pod that has failed is shown by a container that failed, not by one that succeeded.
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
			// What has not failed is not why the pod did.
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

// initText is the state of the init container that holds the pod up.
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

// EndText says how a container ended.
func EndText(t *v1.ContainerStateTerminated, prefix string) string {
	if t.Reason != "" {
		return prefix + t.Reason
	}
	return fmt.Sprintf("%sExitCode:%d", prefix, t.ExitCode)
}

// restartsOf counts restarts, and says when the last one was.
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

func (v *Pods) restartsText(restarts int, last time.Time) string {
	if restarts == 0 || last.IsZero() {
		return strconv.Itoa(restarts)
	}
	return fmt.Sprintf("%d (%s ago)", restarts, duration.HumanDuration(v.Now.Sub(last)))
}

func (v *Pods) age(pod *v1.Pod) string {
	if pod.Status.StartTime == nil {
		return "<unknown>"
	}
	return strings.TrimSpace(duration.HumanDuration(v.Now.Sub(pod.Status.StartTime.Time)))
}
