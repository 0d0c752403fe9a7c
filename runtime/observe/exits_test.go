package observe

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/containerd"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
)

// TestExits: a container whose process has ended is observed as exited while the runtime still has it as
// running. What the runtime says later counts, and so does a runtime that has not followed for a minute.
func TestExits(t *testing.T) {
	l := newLab(t, "i:1")
	l.observer.exits = NewExits(l.client, l.clock.Now)
	d := l.pod("web")
	ref := model.RefOf(d.Pod)
	id := l.container(ref, l.sandbox(ref, 0), "a", 0)
	observed := func() *runtimeapi.ContainerStatus {
		t.Helper()
		s, err := l.observer.Observe(t.Context(), ref, d)
		if err != nil {
			t.Fatal(err)
		}
		return s.Containers[0].Status
	}
	if got := observed(); got.GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING {
		t.Fatalf("before: %v", got)
	}
	at := l.clock.Now()
	for _, c := range []struct {
		exit   containerd.Exit
		reason string
	}{
		{containerd.Exit{Code: 3}, "Error"}, {containerd.Exit{Code: 137, OutOfMemory: true}, "OOMKilled"}, {containerd.Exit{}, "Completed"},
	} {
		c.exit.ContainerID, c.exit.At = id, at
		l.observer.exits.note(c.exit)
		got := observed()
		if got.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED || got.GetExitCode() != c.exit.Code || got.GetReason() != c.reason ||
			got.GetFinishedAt() != at.UnixNano() {
			t.Errorf("after exit %d: %v", c.exit.Code, got)
		}
	}
	l.observer.exits.note(containerd.Exit{ContainerID: "another", At: at})
	l.clock.Advance(exitsKept + time.Second)
	if got := observed(); got.GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING {
		t.Errorf("a minute later: %v", got)
	}
	l.observer.exits.note(containerd.Exit{ContainerID: "third", At: at})
	if kept := len(l.observer.exits.byID); kept != 1 {
		t.Errorf("%d reports are kept", kept)
	}
}

// TestExitsOfTheRuntime: the record of a runtime that has followed stays as it is.
func TestExitsOfTheRuntime(t *testing.T) {
	x := NewExits(nil, time.Now)
	x.note(containerd.Exit{ContainerID: "x", Code: 1})
	status := &runtimeapi.ContainerStatus{Id: "x", State: runtimeapi.ContainerState_CONTAINER_EXITED, ExitCode: 9}
	if x.complete(status); status.GetExitCode() != 9 {
		t.Errorf("code %d", status.GetExitCode())
	}
	(*Exits)(nil).complete(status)
}

// TestExitsMessage: the log of a container that has just ended may lack its end, so it is no message yet.
func TestExitsMessage(t *testing.T) {
	l := newLab(t, "i:1")
	l.observer.exits = NewExits(l.client, l.clock.Now)
	d := l.pod("web")
	ref := model.RefOf(d.Pod)
	labels := labelsOf(ref)
	labels[criconfig.LabelContainerName] = "a"
	id := l.containerWith(l.sandbox(ref, 0), &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "a"}, Labels: labels,
		Annotations: map[string]string{criconfig.AnnotationTerminationMessagePolicy: string(v1.TerminationMessageFallbackToLogsOnError)},
	})
	l.observer.exits.note(containerd.Exit{ContainerID: id, Code: 1, At: l.clock.Now()})
	s, err := l.observer.Observe(t.Context(), ref, d)
	if err != nil || s.Containers[0].TerminationMessage != "" {
		t.Errorf("message %q: %v", s.Containers[0].TerminationMessage, err)
	}
}
