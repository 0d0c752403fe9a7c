package observe

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/containerd"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// TestExits checks that a container whose process has ended is observed as exited while the runtime still reports it as
// running. The report is removed once the runtime has caught up.
func TestExits(t *testing.T) {
	l := newLab(t, "i:1")
	l.observer.world.Exits = NewExits(l.client)
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
		l.observer.world.Exits.note(t.Context(), c.exit)
		got := observed()
		if got.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED || got.GetExitCode() != c.exit.Code ||
			got.GetReason() != c.reason ||
			got.GetFinishedAt() != at.UnixNano() {
			t.Errorf("after exit %d: %v", c.exit.Code, got)
		}
	}
	l.clock.Advance(10 * time.Minute)
	if got := observed(); got.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED {
		t.Errorf("an overloaded runtime, ten minutes later: %v", got)
	}
	if _, err := l.client.StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: id}); err != nil {
		t.Fatal(err)
	}
	if got := observed(); got.GetExitCode() == 0 || len(l.observer.world.Exits.byID) > 0 {
		t.Errorf("the runtime has followed: %v, kept %v", got, l.observer.world.Exits.byID)
	}
}

// TestExitsAreBounded checks that reports of containers that are not observed are removed when the runtime no longer
// reports them as running. If the runtime does not answer, all stay.
func TestExitsAreBounded(t *testing.T) {
	l := newLab(t, "i:1")
	x := NewExits(l.client)
	ref := model.RefOf(l.pod("web").Pod)
	running := l.container(ref, l.sandbox(ref, 0), "a", 0)
	x.note(t.Context(), containerd.Exit{ContainerID: running})
	l.server.Fail(runtimetest.Fault{Method: "ListContainers", Times: 1, Err: errors.New("overloaded")})
	kept := func() int {
		x.mu.Lock()
		defer x.mu.Unlock()
		for x.sweeping {
			x.mu.Unlock()
			time.Sleep(time.Millisecond)
			x.mu.Lock()
		}
		return len(x.byID)
	}
	for i := range sweepMin - 1 {
		x.note(t.Context(), containerd.Exit{ContainerID: fmt.Sprint(i)})
	}
	if n := kept(); n != sweepMin {
		t.Errorf("the runtime does not answer: %d reports", n)
	}
	for i := range sweepMin {
		x.note(t.Context(), containerd.Exit{ContainerID: fmt.Sprint("more", i)})
	}
	kept()
	if _, known := x.byID[running]; !known || len(x.byID) > sweepMin {
		t.Errorf("%d reports, of the container that runs %t", len(x.byID), known)
	}
}

// TestResetThatIsInterrupted checks that an interrupted restart of all containers continues, although the runtime does
// not report the end of its cause for minutes. It does not skip the init container.
func TestResetThatIsInterrupted(t *testing.T) {
	l := newLab(t, "i:1")
	l.observer.world.Exits = NewExits(l.client)
	text := strings.Replace(podText("web"), "image: 'i:1'",
		"image: 'i:1', restartPolicy: Never, "+
			"restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [42]}}]", 1)
	text = strings.Replace(text, "spec:\n", "spec:\n  initContainers: [{name: i, image: 'i:1'}]\n", 1)
	d := loadPod(t, text)
	ref := model.RefOf(d.Pod)
	sandbox := l.sandbox(ref, 0)
	inits := l.container(ref, sandbox, "i", 0)
	cause := l.container(ref, sandbox, "a", 0)
	for id, code := range map[string]int32{inits: 0, cause: 42} {
		l.observer.world.Exits.note(t.Context(), containerd.Exit{ContainerID: id, Code: code, At: l.clock.Now()})
	}
	steps := func() string {
		in, _, err := l.observer.Input(t.Context(), ref, d, plan.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, s := range plan.Make(in).Steps {
			texts = append(texts, string(s.Kind)+" "+s.Container)
		}
		return strings.Join(texts, ", ")
	}
	if got := steps(); got != "RemoveContainer i, RemoveContainer a" {
		t.Fatalf("the reset: %s", got)
	}
	if _, err := l.client.RemoveContainer(t.Context(), &runtimeapi.RemoveContainerRequest{ContainerId: inits}); err != nil {
		t.Fatal(err)
	}
	l.clock.Advance(5 * time.Minute)
	if got := steps(); got != "RemoveContainer a" {
		t.Errorf("after the interruption: %s", got)
	}
}

// TestExitsOfTheRuntime checks that the record of a runtime that has caught up does not change.
func TestExitsOfTheRuntime(t *testing.T) {
	x := NewExits(nil)
	x.note(t.Context(), containerd.Exit{ContainerID: "x", Code: 1})
	status := &runtimeapi.ContainerStatus{Id: "x", State: runtimeapi.ContainerState_CONTAINER_EXITED, ExitCode: 9}
	if ended := x.completed(status); ended != nil || status.GetExitCode() != 9 {
		t.Errorf("code %d, %v", status.GetExitCode(), ended)
	}
	if ended := (*Exits)(nil).completed(status); ended != nil {
		t.Error(ended)
	}
}

// TestExitsMessage checks that a container whose message is the end of its log counts as running until the runtime
// reports its end, because the log may lack its end until then.
func TestExitsMessage(t *testing.T) {
	l := newLab(t, "i:1")
	l.observer.world.Exits = NewExits(l.client)
	d := l.pod("web")
	ref := model.RefOf(d.Pod)
	labels := labelsOf(ref)
	labels[criconfig.LabelContainerName] = "a"
	id := l.containerWith(l.sandbox(ref, 0), &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "a"}, Labels: labels,
		Annotations: map[string]string{criconfig.AnnotationTerminationMessagePolicy: string(v1.TerminationMessageFallbackToLogsOnError)},
	})
	l.observer.world.Exits.note(t.Context(), containerd.Exit{ContainerID: id, Code: 1, At: l.clock.Now()})
	s, err := l.observer.Observe(t.Context(), ref, d)
	c := s.Containers[0]
	if err != nil || c.TerminationMessage != "" || c.Status.GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING {
		t.Errorf("message %q of %v: %v", c.TerminationMessage, c.Status, err)
	}
}
