package kubeletapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/logfile"
)

// logReader serves logs.
type logReader struct {
	finder *finder
	now    func() time.Time
}

// serveLogs writes the log of one run of a container (kubelet: getContainerLogs). With follow it ends with that run. An
// error after the first byte becomes part of the text, as in a kubelet.
func (l *logReader) serveLogs(w http.ResponseWriter, r *http.Request) error {
	ctx, name := r.Context(), r.PathValue("container")
	options, err := logOptions(r.URL.Query())
	if err != nil {
		return err
	}
	pod, err := l.finder.pod(ctx, podNameOf(r))
	if err != nil {
		return err
	}
	if pod == nil {
		return refuse(http.StatusNotFound, "pod %q does not exist", r.PathValue("pod"))
	}
	shown, err := l.withStatus(ctx, pod)
	if err != nil {
		return err
	}
	if _, ok := podspec.FindContainer(shown, name); !ok {
		return refuse(http.StatusNotFound, "container %q not found in pod %q", name, r.PathValue("pod"))
	}
	run, err := loggedRun(&shown.Status, pod.Pod.Name, name, options.Previous)
	if err != nil {
		return refuse(http.StatusBadRequest, "%s", err)
	}
	out := &flushed{w: w, control: http.NewResponseController(w)}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	out.flush()
	if err := l.writeLog(ctx, pod.Pod.UID, run, options, out); err != nil && ctx.Err() == nil {
		io.WriteString(out, err.Error()) //nolint:errcheck // the client is gone
	}
	return nil
}

// withStatus returns a pod with its status, and with the debug containers that were added to it.
func (l *logReader) withStatus(ctx context.Context, pod *podspec.Desired) (*v1.Pod, error) {
	shown, err := l.finder.agent.List(ctx, []*podspec.Desired{pod})
	if len(shown) == 0 {
		return nil, errors.Join(err, errors.New("the status of the pod is not known"))
	}
	return shown[0], nil
}

// writeLog writes the selected part of a log. The run may come from a status that other clients can write, so it must
// be one of the pod.
func (l *logReader) writeLog(
	ctx context.Context, pod types.UID, run string, options *v1.PodLogOptions, out io.Writer,
) error {
	id := idOf(run)
	reply, err := l.finder.runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
	if err != nil || reply.GetStatus().GetLabels()[criconfig.LabelPodUID] != string(pod) {
		return errors.New("unable to retrieve container logs for " + run)
	}
	var stdout, stderr io.Writer
	if shows(options, v1.LogStreamStdout) {
		stdout = out
	}
	if shows(options, v1.LogStreamStderr) {
		stderr = out
	}
	log := logfile.Log{Path: reply.GetStatus().GetLogPath()}
	runs := func(ctx context.Context) (bool, error) { return l.runs(ctx, id) }
	return log.Read(ctx, part(options, l.now()), runs, stdout, stderr)
}

// runs reports whether a container runs. A runtime that does not answer changes nothing (kubelet's cri-client:
// isContainerRunning).
func (l *logReader) runs(ctx context.Context, id string) (bool, error) {
	reply, err := l.finder.runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: id})
	if away := (*cri.UnavailableError)(nil); errors.As(err, &away) {
		return true, nil
	}
	return reply.GetStatus().GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING, cri.IgnoreNotFound(err)
}

// flushed passes on each write at once.
type flushed struct {
	w       io.Writer
	control *http.ResponseController
}

// Write writes to the client.
func (f *flushed) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	f.flush()
	return n, err
}

func (f *flushed) flush() {
	_ = f.control.Flush() // The next write reports a client that is gone.
}
