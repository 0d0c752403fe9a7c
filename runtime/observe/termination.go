package observe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/logfile"
	"github.com/podctl/podctl/runtime/safefs"
)

// How much of a termination message is read (kubelet: kubecontainer's MaxContainerTerminationMessage…), in bytes and
// lines.
const (
	messageBytes    = 4096
	messageLogBytes = 2048
	messageLogLines = 80
	// messageLogSpan is the part of the log that contains these lines if they have a usual length, in bytes.
	messageLogSpan = 4 << 20
)

// terminationMessage returns the termination message of an exited container. This is the content of its file, or the
// end of its log if it failed, wrote nothing and its policy asks for that. Policy and path are those that it was
// created with (kubelet: getTerminationMessage).
func terminationMessage(ctx context.Context, s *runtimeapi.ContainerStatus) string {
	text, ofLog := ownMessage(s)
	if ofLog {
		return endOfLog(ctx, s)
	}
	return text
}

// ownMessage returns the file content of an exited container, and whether the end of its log counts instead.
func ownMessage(s *runtimeapi.ContainerStatus) (text string, ofLog bool) {
	if s.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED {
		return "", false
	}
	annotations := s.GetAnnotations()
	text, err := terminationFile(s, annotations[criconfig.AnnotationTerminationMessagePath])
	if err != nil {
		return err.Error(), false
	}
	policy := annotations[criconfig.AnnotationTerminationMessagePolicy]
	fallback := policy == string(v1.TerminationMessageFallbackToLogsOnError)
	return text, text == "" && fallback && s.GetExitCode() != 0 && s.GetReason() != "ContainerCannotRun"
}

// terminationFile reads the end of the file that was mounted for the message.
func terminationFile(s *runtimeapi.ContainerStatus, path string) (string, error) {
	for _, m := range s.GetMounts() {
		if path == "" || m.GetContainerPath() != path {
			continue
		}
		text, err := endOf(m.GetHostPath(), messageBytes)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("Error on reading termination log %s: %w", m.GetHostPath(), err)
		}
		return text, nil
	}
	return "", nil
}

// messageLevels is the number of elements at the end of a termination message's path that must not be links: the
// directory with the containers of a pod, that of one container, and the file. A container can write to the file, and
// to the directories if they are mounted.
const messageLevels = 3

// endOf reads the last bytes of a regular file.
func endOf(path string, size int64) (text string, err error) {
	f, info, err := safefs.OpenFileNoLinks(path, messageLevels)
	if errors.Is(err, safefs.ErrNotRegular) {
		return "", nil // It may be a pipe without a writer.
	}
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err = f.Seek(max(info.Size()-size, 0), io.SeekStart); err != nil {
		return "", err
	}
	last, err := io.ReadAll(io.LimitReader(f, size))
	return string(last), err
}

// endOfLog returns the end of a container's log.
func endOfLog(ctx context.Context, s *runtimeapi.ContainerStatus) string {
	var out bytes.Buffer
	log := logfile.Log{Path: s.GetLogPath()}
	if err := log.End(ctx, messageLogLines, messageLogSpan, &out); err != nil {
		text := "Error on reading termination message from logs: " + err.Error()
		return text[:min(len(text), messageLogBytes)]
	}
	text := out.Bytes()
	return string(text[max(len(text)-messageLogBytes, 0):])
}
