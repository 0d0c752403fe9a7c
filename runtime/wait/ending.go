package wait

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/podstatus"
)

// Ending describes how a finished pod ended, and the containers that failed.
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

// exitText returns the exit code of a container, with the reason if that contains more.
func exitText(t *v1.ContainerStateTerminated) string {
	if reason := podstatus.ExitReason(t.Reason, t.Message); reason != "" {
		return fmt.Sprintf("exited %d (%s)", t.ExitCode, reason)
	}
	return "exited " + model.ExitText(t.ExitCode)
}

// broken explains why containers failed or cannot be started.
func broken(status *v1.PodStatus) []string {
	var texts []string
	for _, c := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses) {
		last := c.LastTerminationState.Terminated
		switch {
		case c.State.Terminated != nil && c.State.Terminated.ExitCode != 0:
			texts = append(texts, "container "+c.Name+" "+exitText(c.State.Terminated))
		case c.State.Waiting == nil || c.State.Waiting.Message == "":
		case last != nil && last.ExitCode != 0:
			texts = append(texts, "container "+c.Name+": "+waitingText(c.State.Waiting)+"; it "+exitText(last))
		default:
			texts = append(texts, "container "+c.Name+": "+waitingText(c.State.Waiting))
		}
	}
	return texts
}

// waitingText describes why a container waits.
func waitingText(w *v1.ContainerStateWaiting) string {
	return model.StartError{Reason: model.Reason(w.Reason), Message: w.Message}.Line()
}
