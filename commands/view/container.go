package view

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// ContainerTable has one row for each container, in the order of the manifest.
func (v *Pods) ContainerTable(pods []*v1.Pod) (header []string, rows []Row) {
	header = []string{"POD", "CONTAINER", "TYPE", "STATE", "READY", "RESTARTS", "AGE", "IMAGE"}
	if v.Namespaces {
		header = append([]string{"NAMESPACE"}, header...)
	}
	if v.Wide {
		header = append(header, "CONTAINER ID")
	}
	header = append(header, v.labelHeader()...)
	for _, pod := range pods {
		for _, ref := range podspec.Containers(pod) {
			rows = append(rows, v.containerRow(pod, &ref))
		}
	}
	return header, rows
}

func (v *Pods) containerRow(pod *v1.Pod, ref *podspec.ContainerRef) Row {
	var row Row
	if v.Namespaces {
		row.Add(pod.Namespace)
	}
	s := StatusOf(pod, ref.Name)
	row.Add(pod.Name, ref.Name, string(ref.Type), stateText(s), strconv.FormatBool(s.Ready), strconv.Itoa(int(s.RestartCount)))
	row.addTimed(v.stateAge(s), "")
	row.Add(ref.Image)
	if v.Wide {
		row.Add(cmp.Or(shortContainerID(s.ContainerID), terminal.NoValue))
	}
	row.Add(v.labelCells(pod.Labels)...)
	return row
}

// StatusOf finds the status of a container; an empty one when there is none.
func StatusOf(pod *v1.Pod, name string) *v1.ContainerStatus {
	for _, list := range [][]v1.ContainerStatus{
		pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses,
	} {
		if i := slices.IndexFunc(list, func(s v1.ContainerStatus) bool { return s.Name == name }); i >= 0 {
			return &list[i]
		}
	}
	return &v1.ContainerStatus{}
}

// stateText is one word for the state of a container, with its exit code.
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

// stateAge is how long a container has been in its state, as far as that is known.
func (v *Pods) stateAge(s *v1.ContainerStatus) string {
	switch {
	case s.State.Running != nil:
		return duration.HumanDuration(v.Now.Sub(s.State.Running.StartedAt.Time))
	case s.State.Terminated != nil && !s.State.Terminated.FinishedAt.IsZero():
		return duration.HumanDuration(v.Now.Sub(s.State.Terminated.FinishedAt.Time))
	}
	return "<unknown>"
}

// shortContainerID is the id of a status, which names the runtime, as people read it.
func shortContainerID(id string) string {
	_, id, _ = strings.Cut(id, "://")
	return model.ShortID(id)
}
