package commands

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

func (v *podView) containerHeader() []string {
	header := []string{"POD", "CONTAINER", "TYPE", "STATE", "READY", "RESTARTS", "AGE", "IMAGE"}
	if v.namespaces {
		header = append([]string{"NAMESPACE"}, header...)
	}
	if v.wide {
		header = append(header, "CONTAINER ID")
	}
	return header
}

// containerRows has one row for each container, in the order of the manifest.
func (v *podView) containerRows(pods []*v1.Pod) [][]string {
	var rows [][]string
	for _, pod := range pods {
		for _, ref := range podspec.Containers(pod) {
			s := statusOf(pod, ref.Name)
			row := []string{
				pod.Name, ref.Name, string(ref.Type), stateText(s), strconv.FormatBool(s.Ready),
				strconv.Itoa(int(s.RestartCount)), v.stateAge(s), ref.Image,
			}
			if v.namespaces {
				row = append([]string{pod.Namespace}, row...)
			}
			if v.wide {
				row = append(row, cmp.Or(shortContainerID(s.ContainerID), noValue))
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// statusOf finds the status of a container; an empty one when there is none.
func statusOf(pod *v1.Pod, name string) *v1.ContainerStatus {
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
		return endText(s.State.Terminated, "")
	case s.State.Terminated != nil:
		return fmt.Sprintf("%s (%d)", endText(s.State.Terminated, ""), s.State.Terminated.ExitCode)
	case s.State.Waiting != nil && s.State.Waiting.Reason != "":
		return s.State.Waiting.Reason
	}
	return "Waiting"
}

// stateAge is how long a container has been in its state, as far as that is known.
func (v *podView) stateAge(s *v1.ContainerStatus) string {
	switch {
	case s.State.Running != nil:
		return duration.HumanDuration(v.now.Sub(s.State.Running.StartedAt.Time))
	case s.State.Terminated != nil && !s.State.Terminated.FinishedAt.IsZero():
		return duration.HumanDuration(v.now.Sub(s.State.Terminated.FinishedAt.Time))
	}
	return "<unknown>"
}

// shortContainerID is the id of a status, which names the runtime, as people read it.
func shortContainerID(id string) string {
	_, id, _ = strings.Cut(id, "://")
	return model.ShortID(id)
}
