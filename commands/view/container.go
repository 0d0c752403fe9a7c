package view

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/commands/terminal"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// Containers has one row for each container, in the order of the manifest.
func (v *Lists) Containers(pods []*v1.Pod) (header []string, rows []Row) {
	header = v.header(append([]string{"POD", "CONTAINER", "TYPE", "STATE", "READY", "RESTARTS", "AGE", "IMAGE"}, v.wide("CONTAINER ID")...)...)
	for _, pod := range pods {
		for _, ref := range podspec.Containers(pod) {
			s := StatusOf(pod, ref.Name)
			rows = append(rows, v.row(&pod.ObjectMeta, func(row *Row) {
				row.Add(pod.Name, ref.Name, string(ref.Type), stateText(s), strconv.FormatBool(s.Ready), strconv.Itoa(int(s.RestartCount)))
				row.addTimed(v.since(stateBegan(s)), "")
				row.Add(ref.Image)
				_, id, _ := strings.Cut(s.ContainerID, "://")
				row.Add(v.wide(cmp.Or(model.ShortID(id), terminal.NoValue))...)
			}))
		}
	}
	return header, rows
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

// stateBegan is since when a container has been in its state; zero if that is not known.
func stateBegan(s *v1.ContainerStatus) time.Time {
	switch {
	case s.State.Running != nil:
		return s.State.Running.StartedAt.Time
	case s.State.Terminated != nil:
		return s.State.Terminated.FinishedAt.Time
	}
	return time.Time{}
}
