package runtime

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/criconfig"
)

// TestLastWordsOfFilesThatHurt: a log that would fill memory is named and not read, and a
// pipe is not waited for.
func TestLastWordsOfFilesThatHurt(t *testing.T) {
	hole, pipe := filepath.Join(t.TempDir(), "hole.log"), filepath.Join(t.TempDir(), "pipe")
	if err := os.WriteFile(hole, []byte("2026-05-04T12:00:00.000000001Z stdout F hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(hole, 1<<40); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if text := lastWords(t.Context(), exited(hole)); len(text) > messageLogBytes || !strings.Contains(text, "is longer than") {
		t.Errorf("the last words of it: %q", text)
	}
	if text, err := endOf(pipe, 10); err != nil || text != "" {
		t.Errorf("the end of a pipe: %q, %v", text, err)
	}
}

// exited is a container that failed, wrote no message and asks for its log's end.
func exited(log string) *runtimeapi.ContainerStatus {
	return &runtimeapi.ContainerStatus{
		State: runtimeapi.ContainerState_CONTAINER_EXITED, ExitCode: 1, LogPath: log,
		Annotations: map[string]string{criconfig.AnnotationTerminationMessagePolicy: "FallbackToLogsOnError"},
	}
}
