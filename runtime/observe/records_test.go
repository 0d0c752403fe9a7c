package observe

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/logfile"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
)

// ids returns the sorted IDs of a snapshot's containers.
func ids(s *snapshot.Pod) []string {
	found := []string{}
	for _, c := range s.Containers {
		found = append(found, c.Status.GetId())
	}
	slices.Sort(found)
	return found
}

// TestListsOfKnownSandbox checks that one list finds the containers of a sandbox known from the last pass.
// Otherwise they are found by label and by sandbox. Each record is queried once.
func TestListsOfKnownSandbox(t *testing.T) {
	for name, c := range map[string]struct {
		known bool
		lists int
	}{"known": {true, 1}, "not known": {false, 2}} {
		l := newLab(t, "i:1")
		d := l.pod("web")
		ref := model.RefOf(d.Pod)
		sandbox := l.sandbox(ref, 0)
		want := []string{l.container(ref, sandbox, "a", 0), l.container(ref, sandbox, "b", 0)}
		if c.known {
			l.remember(d, &state.Checkpoint{Memory: model.Memory{LastRun: &model.LastRun{Sandbox: sandbox}}})
		}
		s, err := l.observer.Observe(t.Context(), ref, d)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, ids(s)); diff != "" || len(s.Sandboxes) != 1 {
			t.Errorf("%s: %d sandboxes, containers (-want +got)\n%s", name, len(s.Sandboxes), diff)
		}
		if l.count("ListContainers") != c.lists || l.count("ListPodSandbox") != 1 || l.count("ContainerStatus") != 2 ||
			l.count("PodSandboxStatus") != 1 {
			t.Errorf("%s: calls %v", name, l.calls)
		}
	}
}

// TestContainersOutsideOfKnownSandboxes checks that a container in a sandbox without labels is found if the known
// sandbox is lost, and if the pod is deleted.
func TestContainersOutsideOfKnownSandboxes(t *testing.T) {
	l := newLab(t, "i:1")
	d := l.pod("web")
	ref := model.RefOf(d.Pod)
	elsewhere := l.sandboxWith(model.PodRef{Name: "bare", UID: "bare"}, 0, &runtimeapi.PodSandboxConfig{})
	want := []string{l.container(ref, elsewhere, "a", 0)}
	for name, c := range map[string]struct {
		known   string
		desired *podspec.Desired
	}{"the sandbox is lost": {"lost", d}, "nothing is known": {"", d}, "the pod is deleted": {elsewhere, nil}} {
		l.remember(d, &state.Checkpoint{Memory: model.Memory{LastRun: &model.LastRun{Sandbox: c.known}}})
		s, err := l.observer.Observe(t.Context(), ref, c.desired)
		if err != nil || !slices.Equal(ids(s), want) {
			t.Errorf("%s: %v, %v", name, ids(s), err)
		}
	}
}

// TestRecordsOfOthers checks that an unmanaged container in the pod's sandbox is only listed, and that one with the
// label of another pod belongs to that pod.
func TestRecordsOfOthers(t *testing.T) {
	l := newLab(t, "i:1")
	d := l.pod("web")
	ref := model.RefOf(d.Pod)
	sandbox := l.sandbox(ref, 0)
	own := l.container(ref, sandbox, "a", 0)
	unmarked := l.containerWith(sandbox, &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: "b"}})
	l.container(model.PodRef{Namespace: "default", Name: "other", UID: "other"}, sandbox, "c", 0)
	s, err := l.observer.Observe(t.Context(), ref, d)
	if err != nil || !slices.Equal(ids(s), []string{own, unmarked}) || l.count("ContainerStatus") != 1 {
		t.Errorf("%v, queried %d, %v", ids(s), l.count("ContainerStatus"), err)
	}
	observed := s.Observed(ref, d)
	want := []model.Unmanaged{{ID: unmarked, Name: "b", SandboxID: sandbox}}
	if diff := cmp.Diff(want, observed.Unmanaged); diff != "" || len(observed.Containers) != 1 {
		t.Errorf("containers %v, unmanaged (-want +got)\n%s", observed.Containers, diff)
	}
}

// TestRecordsThatVanish checks that a record that vanishes between the list and its query does not exist.
func TestRecordsThatVanish(t *testing.T) {
	for _, method := range []string{"ContainerStatus", "PodSandboxStatus"} {
		l := newLab(t, "i:1")
		d := l.pod("web")
		ref := model.RefOf(d.Pod)
		l.container(ref, l.sandbox(ref, 0), "a", 0)
		l.server.Fail(runtimetest.Fault{Method: method, Times: 1, Err: status.Error(codes.NotFound, "gone")})
		s, err := l.observer.Observe(t.Context(), ref, d)
		if err != nil || len(s.Containers)+len(s.Sandboxes) != 1 {
			t.Errorf("%s: %d containers, %d sandboxes, %v", method, len(s.Containers), len(s.Sandboxes), err)
		}
	}
}

// TestQuestionsThatFail checks that the error names the pod and the query, and contains no Secret.
func TestQuestionsThatFail(t *testing.T) {
	for method, want := range map[string]string{
		"ListPodSandbox":   "listing its sandboxes",
		"ListContainers":   "listing its containers",
		"PodSandboxStatus": "asking for its sandbox 00000001",
		"ContainerStatus":  "asking for container a (00000002",
		"ImageStatus":      "asking for its images",
		"Version":          "asking for the runtime's version",
		"Status":           "asking for the runtime's status", "RuntimeConfig": "asking for the runtime's cgroup driver",
	} {
		l := newLab(t, "i:1")
		d := loadPod(t, secretPod())
		ref := model.RefOf(d.Pod)
		l.container(ref, l.sandbox(ref, 0), "a", 0)
		l.server.Fail(runtimetest.Fault{Method: method, Times: 9, Err: status.Error(codes.Internal, "failed with correct horse")})
		_, err := l.observer.Observe(t.Context(), ref, d)
		if err == nil || !strings.HasPrefix(err.Error(), "observing pod default/web: ") ||
			!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "correct horse") {
			t.Errorf("%s: %v, want %q", method, err, want)
		}
	}
}

// TestEndedSandboxWithoutAStatus checks that the list entry of an ended sandbox is used if the runtime refuses its
// status. It is an error if the runtime does not answer or the list shows the sandbox as ready.
func TestEndedSandboxWithoutAStatus(t *testing.T) {
	for name, c := range map[string]struct {
		ended bool
		fails error
		want  bool
	}{
		"ended, refused":   {true, status.Error(codes.Unknown, "failed to get the sandbox's task"), true},
		"ready, refused":   {false, status.Error(codes.Unknown, "failed to get the sandbox's task"), false},
		"ended, no answer": {true, status.Error(codes.Unavailable, "transport is closing"), false},
	} {
		l := newLab(t, "i:1")
		d := l.pod("web")
		ref := model.RefOf(d.Pod)
		sandbox := l.sandbox(ref, 3)
		if c.ended {
			if _, err := l.client.StopPodSandbox(t.Context(), &runtimeapi.StopPodSandboxRequest{PodSandboxId: sandbox}); err != nil {
				t.Fatal(err)
			}
		}
		l.server.Fail(runtimetest.Fault{Method: "PodSandboxStatus", Times: 99, Err: c.fails})
		s, err := l.observer.Observe(t.Context(), ref, d)
		if (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err == nil && (len(s.Sandboxes) != 1 || s.Sandboxes[0].GetMetadata().GetAttempt() != 3 ||
			snapshot.ObservedSandbox(s.Sandboxes[0]).State != model.SandboxNotReady) {
			t.Errorf("%s: %v", name, s.Sandboxes)
		}
	}
}

// TestManyPodsAreListedAtOnce checks that few pods are listed one by one and many at once, with the same result.
func TestManyPodsAreListedAtOnce(t *testing.T) {
	l := newLab(t, "i:1")
	var pods []*podspec.Desired
	for _, name := range []string{"one", "two", "three", "four"} {
		d := l.pod(name)
		ref := model.RefOf(d.Pod)
		l.container(ref, l.sandbox(ref, 0), "a", 0)
		pods = append(pods, d)
	}
	if _, err := l.host.RuntimeFacts(t.Context()); err != nil {
		t.Fatal(err)
	}
	few, err := l.lister.List(t.Context(), pods[:ManyPods-1])
	if err != nil || l.count("ListPodSandbox") != ManyPods-1 {
		t.Fatal(l.count("ListPodSandbox"), err)
	}
	l.reset()
	many, err := l.lister.List(t.Context(), pods)
	if err != nil || l.count("ListPodSandbox") != 1 || l.count("ListContainers") != 1 {
		t.Fatalf("%d and %d lists, %v", l.count("ListPodSandbox"), l.count("ListContainers"), err)
	}
	if diff := cmp.Diff(few, many[:ManyPods-1]); diff != "" || len(many[3].Status.ContainerStatuses) != 1 {
		t.Errorf("(-few +many)\n%s", diff)
	}
}

// TestFailedLists checks that the error names the list that failed.
func TestFailedLists(t *testing.T) {
	for method, want := range map[string]string{
		"ListPodSandbox": "listing all sandboxes", "ListContainers": "listing all containers",
	} {
		l := newLab(t, "i:1")
		var pods []*podspec.Desired
		for i := range ManyPods {
			pods = append(pods, l.pod(fmt.Sprint("pod-", i)))
		}
		l.server.Fail(runtimetest.Fault{Method: method, Times: 1, Err: errors.New("injected failure")})
		if found, err := l.lister.List(t.Context(), pods); found != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", method, found, err)
		}
	}
}

// TestManyPodsKnowTheirSandboxes checks that each pod gets the same records from the lists of all pods, including
// containers without labels in its sandbox.
func TestManyPodsKnowTheirSandboxes(t *testing.T) {
	l := newLab(t, "i:1")
	d := l.pod("web")
	ref := model.RefOf(d.Pod)
	sandbox := l.sandbox(ref, 0)
	l.container(ref, sandbox, "a", 0)
	l.containerWith(sandbox, &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: "b"}})
	lists, err := l.lister.listFor(t.Context(), ManyPods)
	if err != nil {
		t.Fatal(err)
	}
	for _, known := range []string{"", sandbox, "lost"} {
		j := &state.Checkpoint{Memory: model.Memory{LastRun: &model.LastRun{Sandbox: known}}}
		alone, err := l.observer.observeWith(t.Context(), ref, d, j, nil)
		if err != nil {
			t.Fatal(err)
		}
		among, err := l.observer.observeWith(t.Context(), ref, d, j, lists)
		if err != nil || len(among.Containers) != 2 {
			t.Fatal(among, err)
		}
		byID := func(a, b snapshot.Container) int { return strings.Compare(a.Status.GetId(), b.Status.GetId()) }
		slices.SortFunc(alone.Containers, byID)
		slices.SortFunc(among.Containers, byID)
		if diff := cmp.Diff(alone.Containers, among.Containers, protocmp.Transform()); diff != "" {
			t.Errorf("known %q: (-alone +among many)\n%s", known, diff)
		}
	}
}

// TestFullLogs checks that the log of a running container must be rotated if it is large, or was moved aside and not
// reopened.
func TestFullLogs(t *testing.T) {
	running, ended := runtimeapi.ContainerState_CONTAINER_RUNNING, runtimeapi.ContainerState_CONTAINER_EXITED
	for name, c := range map[string]struct {
		state runtimeapi.ContainerState
		path  string
		want  bool
	}{
		"no log": {running, "", false}, "large": {running, largeLog(t), true}, "large, and it has ended": {ended, largeLog(t), false},
		"moved aside": {running, largeLog(t) + ".other", true},
	} {
		if got := LogFull(&runtimeapi.ContainerStatus{State: c.state, LogPath: c.path}, logfile.Limits{}); got != c.want {
			t.Errorf("%s: due %t", name, got)
		}
	}
}

// TestListedContainers checks that only containers with the pod's label are listed, and that one of another pod is an
// error.
func TestListedContainers(t *testing.T) {
	l := newLab(t, "i:1")
	ref := model.RefOf(l.pod("web").Pod)
	sandbox := l.sandbox(ref, 0)
	id := l.container(ref, sandbox, "a", 0)
	l.container(model.PodRef{Name: "other", UID: "other"}, sandbox, "b", 0)
	list, err := l.observer.ListContainers(t.Context(), ref)
	if err != nil || len(list) != 1 || list[0].GetId() != id {
		t.Errorf("%v, %v", list, err)
	}
	l.containerWith(sandbox, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "c"},
		Labels: map[string]string{
			criconfig.LabelPodUID:       string(ref.UID),
			criconfig.LabelPodName:      "evil",
			criconfig.LabelPodNamespace: "default",
		},
	})
	if _, err := l.observer.ListContainers(t.Context(), ref); !errors.As(err, new(*UIDTakenError)) {
		t.Errorf("with a container of another pod: %v", err)
	}
}
