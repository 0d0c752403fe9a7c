package wait

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Ending says how a pod that is over has ended, and by which containers.
func Ending(status *v1.PodStatus) string {
	text := "has ended as " + string(status.Phase)
	if status.Reason != "" {
		text += " (" + status.Reason + ")"
	}
	var parts []string
	for _, c := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses) {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			parts = append(parts, c.Name+" "+exitText(t))
		}
	}
	if len(parts) == 0 {
		return text
	}
	return text + ": " + strings.Join(parts, ", ")
}

// exitText is the exit code of a container, with the reason where that says more.
func exitText(t *v1.ContainerStateTerminated) string {
	text := fmt.Sprintf("exited %d", t.ExitCode)
	switch t.Reason {
	case "", "Error", "Completed":
		return text
	case "StartError", "ContainerCannotRun":
		// The message is the runtime's. Elsewhere it is what the container wrote at its end.
		return text + " (" + t.Reason + ": " + t.Message + ")"
	}
	return text + " (" + t.Reason + ")"
}
