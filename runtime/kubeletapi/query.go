package kubeletapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/v1/validation"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/runtime/logfile"
	"github.com/podctl/podctl/runtime/model"
)

// logOptions decodes and checks the parameters of a request for logs (kubelet: getContainerLogs). The parameter tail is
// an old name of tailLines.
func logOptions(query url.Values) (*v1.PodLogOptions, error) {
	if tail := query.Get("tail"); tail == "all" {
		query.Del("tailLines")
	} else if tail != "" {
		query.Set("tailLines", tail)
	}
	options := &v1.PodLogOptions{}
	if err := corev1.Convert_url_Values_To_v1_PodLogOptions(&query, options, nil); err != nil {
		return nil, refuse(http.StatusBadRequest, `{"message": "Unable to decode query."}`)
	}
	if errs := validation.ValidatePodLogOptions(options); len(errs) > 0 {
		return nil, refuse(http.StatusUnprocessableEntity, `{"message": "Invalid request."}`)
	}
	return options, nil
}

// part returns the part of a log that the options select.
func part(options *v1.PodLogOptions, now time.Time) *logfile.Options {
	p := &logfile.Options{
		Follow: options.Follow, Timestamps: options.Timestamps, Tail: options.TailLines, LimitBytes: options.LimitBytes,
	}
	switch {
	case options.SinceTime != nil:
		p.Since = options.SinceTime.Time
	case options.SinceSeconds != nil:
		p.Since = now.Add(-model.Seconds(*options.SinceSeconds))
	}
	return p
}

// shows reports whether the options select a stream: Stdout or Stderr.
func shows(options *v1.PodLogOptions, stream string) bool {
	wanted := ptr.Deref(options.Stream, v1.LogStreamAll)
	return wanted == v1.LogStreamAll || wanted == stream
}

// loggedRun returns the id, with the name of the runtime, of the container whose log is shown: the running one, the
// last that ended, or with previous the one before it (kubelet: validateContainerLogStatus).
func loggedRun(status *v1.PodStatus, pod, container string, previous bool) (string, error) {
	c := model.StatusOf(status, container)
	if c == nil {
		return "", fmt.Errorf("container %q in pod %q is not available", container, pod)
	}
	last := endedRun(c.LastTerminationState)
	switch state := c.State; {
	case previous && last == "":
		return "", fmt.Errorf("previous terminated container %q in pod %q not found", container, pod)
	case previous:
		return last, nil
	case state.Running != nil:
		return c.ContainerID, nil
	case endedRun(state) != "":
		return endedRun(state), nil
	case last != "":
		return last, nil
	case state.Terminated != nil, c.LastTerminationState.Terminated != nil:
		return "", fmt.Errorf("container %q in pod %q is terminated", container, pod)
	case state.Waiting != nil:
		reason := waitingFor(state.Waiting.Reason)
		return "", fmt.Errorf("container %q in pod %q is waiting to start: %s", container, pod, reason)
	}
	return "", fmt.Errorf("container %q in pod %q is waiting to start - no logs yet", container, pod)
}

// endedRun returns the id of a container that has ended, or an empty string.
func endedRun(state v1.ContainerState) string {
	if state.Terminated == nil {
		return ""
	}
	return state.Terminated.ContainerID
}

// waitingFor describes the reason of a container that has no log yet.
func waitingFor(reason string) string {
	switch reason {
	case "ErrImagePull":
		return "image can't be pulled"
	case "ImagePullBackOff":
		return "trying and failing to pull image"
	}
	return reason
}

// idOf returns the id of a container without the name of the runtime (containerd://ID).
func idOf(full string) string {
	_, id, _ := strings.Cut(full, "://")
	return id
}
