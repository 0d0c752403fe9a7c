package observe

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/logfile"
)

// TestTerminationMessageOfHostileFiles checks that a log that would fill memory is not read and causes an error, and
// that a pipe is not waited for.
func TestTerminationMessageOfHostileFiles(t *testing.T) {
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
	if text := terminationMessage(t.Context(), exited(hole)); len(text) > messageLogBytes || !strings.Contains(text, "is longer than") {
		t.Errorf("the last words of it: %q", text)
	}
	if text, err := endOf(pipe, 10); err != nil || text != "" {
		t.Errorf("the end of a pipe: %q, %v", text, err)
	}
}

// TestTerminationMessageDoesNotFollowLinks checks that no link is followed in place of the message, the log, or a
// directory that the container may have mounted.
func TestTerminationMessageDoesNotFollowLinks(t *testing.T) {
	const secret = "root:secret:1:0\n"
	for _, link := range []string{"/uid/containers/app/file", "/uid/containers/app", "/uid/containers"} {
		base := t.TempDir()
		path := base + "/uid/containers/app/file"
		outside := base + strings.Replace(path[len(base):], "/uid", "/outside", 1)
		for _, name := range []string{path, outside} {
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(outside, []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
		target := base + strings.Replace(link, "/uid", "/outside", 1)
		if err := errors.Join(os.RemoveAll(base+link), os.Symlink(target, base+link)); err != nil {
			t.Fatal(err)
		}
		message := exited("")
		message.Mounts = []*runtimeapi.Mount{{ContainerPath: "/dev/termination-log", HostPath: path}}
		message.Annotations[criconfig.AnnotationTerminationMessagePath] = "/dev/termination-log"
		for what, status := range map[string]*runtimeapi.ContainerStatus{"message": message, "log": exited(path)} {
			if text := terminationMessage(t.Context(), status); strings.Contains(text, "secret") ||
				!strings.Contains(text, "it is a link") {
				t.Errorf("%s, %s is a link: %q", what, link, text)
			}
		}
		running := &runtimeapi.ContainerStatus{State: runtimeapi.ContainerState_CONTAINER_RUNNING, LogPath: path}
		if err := os.Truncate(outside, 20<<20); err != nil {
			t.Fatal(err)
		}
		if LogFull(running, logfile.Limits{}) {
			t.Errorf("%s is a link, and the size of its target was counted", link)
		}
	}
}

// TestTerminationMessageOfLargeFiles checks that only the end of a message is read.
func TestTerminationMessageOfLargeFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "message")
	if err := os.WriteFile(path, []byte("begin"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Fatal(err)
	}
	if text, err := endOf(path, messageBytes); err != nil || len(text) != messageBytes || strings.Trim(text, "\x00") != "" {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// exited returns a failed container without a message that asks for the end of its log.
func exited(log string) *runtimeapi.ContainerStatus {
	return &runtimeapi.ContainerStatus{
		State: runtimeapi.ContainerState_CONTAINER_EXITED, ExitCode: 1, LogPath: log,
		Annotations: map[string]string{criconfig.AnnotationTerminationMessagePolicy: "FallbackToLogsOnError"},
	}
}

// largeLog returns a log that must be rotated.
func largeLog(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "uid", "containers", "0.log")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 20<<20)); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestTerminationMessages checks that the file counts before the log, which counts only for a container that failed,
// wrote nothing and asks for it.
func TestTerminationMessages(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	log := write("log", "2026-05-04T12:00:00.000000001Z stdout F of the log\n")
	output, silent := write("said", "of the file"), write("silent", "")
	for name, c := range map[string]struct {
		file   string
		change func(*runtimeapi.ContainerStatus)
		want   string
	}{
		"the container wrote one":  {output, func(*runtimeapi.ContainerStatus) {}, "of the file"},
		"the container wrote none": {silent, func(*runtimeapi.ContainerStatus) {}, "of the log\n"},
		"its file is gone":         {dir + "/gone", func(*runtimeapi.ContainerStatus) {}, "of the log\n"},
		"the container does not ask for the log": {silent, func(s *runtimeapi.ContainerStatus) {
			delete(s.GetAnnotations(), criconfig.AnnotationTerminationMessagePolicy)
		}, ""},
		"the container succeeded": {silent, func(s *runtimeapi.ContainerStatus) { s.ExitCode = 0 }, ""},
		"the container never ran": {silent, func(s *runtimeapi.ContainerStatus) { s.Reason = "ContainerCannotRun" }, ""},
		"the container runs": {
			output,
			func(s *runtimeapi.ContainerStatus) { s.State = runtimeapi.ContainerState_CONTAINER_RUNNING },
			"",
		},
		"its path is not mounted": {output, func(s *runtimeapi.ContainerStatus) { s.Mounts[0].ContainerPath = "/other" }, "of the log\n"},
		"no log exists": {output, func(s *runtimeapi.ContainerStatus) {
			delete(s.GetAnnotations(), criconfig.AnnotationTerminationMessagePath)
		}, "of the log\n"},
	} {
		s := exited(log)
		s.Annotations[criconfig.AnnotationTerminationMessagePath] = "/dev/termination-log"
		s.Mounts = []*runtimeapi.Mount{{ContainerPath: "/dev/termination-log", HostPath: c.file}}
		c.change(s)
		if got := terminationMessage(t.Context(), s); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
