package observe

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/state"
)

// TestPodsThatFailHideNoOthers checks that a pod that cannot be observed appears with the error, and that others are
// not affected.
func TestPodsThatFailHideNoOthers(t *testing.T) {
	l := newLab(t, "i:1")
	good, bad := l.pod("good"), l.pod("bad")
	ref := model.RefOf(good.Pod)
	l.container(ref, l.sandbox(ref, 0), "a", 0)
	began := l.clock.Now().Add(-time.Hour)
	l.remember(bad, &state.Checkpoint{
		Memory:   model.Memory{StartTime: began, Deletion: &model.Deletion{At: began, GracePeriodSeconds: 7}},
		Endpoint: "unix:///other.sock",
	})
	pods, err := l.lister.List(t.Context(), []*podspec.Desired{bad, good})
	if err == nil || len(pods) != 2 || !strings.Contains(err.Error(), "unix:///other.sock") {
		t.Fatal(pods, err)
	}
	if s := pods[0].Status; s.Phase != v1.PodUnknown || s.Reason != StatusUnknown || s.Message != err.Error() ||
		!s.StartTime.Time.Equal(began) {
		t.Errorf("the one that failed: %+v", s)
	}
	if d := pods[0].DeletionGracePeriodSeconds; d == nil || *d != 7 {
		t.Errorf("its deletion: %v", d)
	}
	if s := pods[1].Status; len(s.ContainerStatuses) != 1 || s.ContainerStatuses[0].State.Running == nil {
		t.Errorf("the other one: %+v", s)
	}
	if bad.Pod.Status.Phase != "" {
		t.Error("the manifest was changed")
	}
}

// TestPodsWithUnreadableCheckpoints checks that the status shows what the runtime reports, without podctl's record.
func TestPodsWithUnreadableCheckpoints(t *testing.T) {
	l := newLab(t, "i:1")
	d := l.pod("web")
	ref := model.RefOf(d.Pod)
	l.container(ref, l.sandbox(ref, 0), "a", 0)
	l.remember(d, &state.Checkpoint{})
	if err := os.WriteFile(l.layout.Pod(ref.UID).Checkpoint().Path(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	pods, err := l.lister.List(t.Context(), []*podspec.Desired{d})
	if err != nil || len(pods[0].Status.ContainerStatuses) != 1 || pods[0].Status.ContainerStatuses[0].State.Running == nil {
		t.Errorf("%+v, %v", pods, err)
	}
	if _, err := l.observer.Observe(t.Context(), ref, d); !errors.As(err, new(*state.CheckpointError)) {
		t.Errorf("for a plan: %v", err)
	}
}

// TestNoPodsAtAll checks that there are no pods if the runtime does not answer or the call is canceled. If the runtime
// answers with errors, the pods are listed.
func TestNoPodsAtAll(t *testing.T) {
	l := newLab(t, "i:1")
	pods := []*podspec.Desired{l.pod("one"), l.pod("two")}
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := errors.New("interrupted")
	cancel(ended)
	if found, err := l.lister.List(ctx, pods); found != nil || !errors.Is(err, ended) {
		t.Errorf("the look was ended: %v, %v", found, err)
	}
	l.server.Fail(runtimetest.Fault{Method: "ListPodSandbox", Times: 2, Err: status.Error(codes.Internal, "injected failure")})
	if found, err := l.lister.List(t.Context(), pods); len(found) != 2 || err == nil || found[0].Status.Reason != StatusUnknown {
		t.Errorf("it answers: %v, %v", found, err)
	}
	l.server.Close()
	if found, err := l.lister.List(t.Context(), pods); found != nil || !errors.As(err, new(*cri.UnavailableError)) {
		t.Errorf("it does not answer: %v, %v", found, err)
	}
}

// TestUnmanagedPods checks that pods with a kubelet's labels and no manifest are rebuilt from the newest records, and
// that nothing suggests to restart them.
func TestUnmanagedPods(t *testing.T) {
	l := newLab(t, "i:1")
	if found, err := l.lister.Unmanaged(t.Context(), nil); found != nil || err != nil {
		t.Errorf("of an empty runtime: %v, %v", found, err)
	}
	known, kubelets := model.RefOf(l.pod("known").Pod), model.PodRef{Namespace: "kube-system", Name: "dns", UID: "1"}
	lost := model.PodRef{Namespace: "default", Name: "lost", UID: "2"}
	l.container(known, l.sandbox(known, 0), "a", 0)
	labels := labelsOf(kubelets)
	labels["app"] = "dns"
	old := l.sandboxWith(kubelets, 0, &runtimeapi.PodSandboxConfig{Labels: labels})
	l.container(kubelets, old, "a", 0)
	l.container(kubelets, old, "b", 0)
	l.container(kubelets, old, "a", 1)
	l.containerWith(old, &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: "nobody's"}})
	l.containerWith(old, &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: "nameless"}, Labels: labelsOf(kubelets)})
	l.sandboxWith(lost, 0, &runtimeapi.PodSandboxConfig{
		Labels:      labelsOf(lost),
		Annotations: map[string]string{"io.podctl.sandbox.spec-hash": "v1:0"},
	})
	l.sandboxWith(model.PodRef{Name: "bare", UID: "3"}, 0, &runtimeapi.PodSandboxConfig{})
	found, err := l.lister.Unmanaged(t.Context(), map[types.UID]bool{known.UID: true})
	if err != nil || len(found) != 2 {
		t.Fatal(found, err)
	}
	dns, other := found[0].Pod, found[1].Pod
	if model.RefOf(dns) != kubelets || dns.Annotations[AnnotationManager] != ManagerKubelet || !found[0].Rebuilt ||
		dns.Spec.RestartPolicy != v1.RestartPolicyNever {
		t.Errorf("a kubelet's pod: %+v", dns)
	}
	if len(dns.Labels) != 1 || dns.Labels["app"] != "dns" {
		t.Errorf("its labels are %v", dns.Labels)
	}
	if c := dns.Spec.Containers; len(c) != 2 || c[0].Name != "a" || c[1].Name != "b" || c[0].Image != "i:1" {
		t.Errorf("its containers are %+v", c)
	}
	if model.RefOf(other) != lost || other.Annotations[AnnotationManager] != ManagerLost {
		t.Errorf("a pod that podctl lost: %+v", other)
	}
	for method, want := range map[string]string{"ListPodSandbox": "listing all sandboxes", "ListContainers": "listing all containers"} {
		l.server.Fail(runtimetest.Fault{Method: method, Times: 1, Err: errors.New("injected failure")})
		if _, err := l.lister.Unmanaged(t.Context(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// TestInitContainersOfRebuiltPods checks that a container that succeeded before another one was first started counts as
// an init container. One that failed or ended beside the others does not, and a restart proves nothing.
func TestInitContainersOfRebuiltPods(t *testing.T) {
	at := func(seconds int) metav1.Time {
		return metav1.NewTime(time.Date(2026, 5, 4, 12, 0, seconds, 0, time.UTC))
	}
	ended := func(name string, from, to, code int) v1.ContainerStatus {
		return v1.ContainerStatus{
			Name: name,
			State: v1.ContainerState{
				Terminated: &v1.ContainerStateTerminated{
					StartedAt:  at(from),
					FinishedAt: at(to),
					ExitCode:   int32(code),
				},
			},
		}
	}
	runs := func(name string, from int, restarts int32) v1.ContainerStatus {
		return v1.ContainerStatus{
			Name:         name,
			RestartCount: restarts,
			State:        v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: at(from)}},
		}
	}
	for name, c := range map[string]struct {
		statuses []v1.ContainerStatus
		want     []string
	}{
		"two before it":     {[]v1.ContainerStatus{ended("i", 0, 1, 0), ended("j", 1, 2, 0), runs("a", 3, 0)}, []string{"i", "j"}},
		"a job":             {[]v1.ContainerStatus{ended("i", 0, 1, 0), ended("a", 2, 3, 0)}, []string{"i"}},
		"beside each other": {[]v1.ContainerStatus{ended("a", 0, 2, 0), runs("b", 1, 0)}, nil},
		"one that failed":   {[]v1.ContainerStatus{ended("a", 0, 1, 3), runs("b", 2, 0)}, nil},
		"only restarted":    {[]v1.ContainerStatus{ended("a", 0, 1, 0), runs("b", 2, 1)}, nil},
		"one that waits":    {[]v1.ContainerStatus{ended("a", 0, 1, 0), {Name: "b"}}, nil},
		"alone":             {[]v1.ContainerStatus{ended("a", 0, 1, 0)}, nil},
	} {
		pod := &v1.Pod{Status: v1.PodStatus{ContainerStatuses: c.statuses}}
		for _, s := range c.statuses {
			pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: s.Name})
		}
		splitInits(pod)
		var got []string
		for i := range pod.Spec.InitContainers {
			got = append(got, pod.Spec.InitContainers[i].Name)
			if pod.Status.InitContainerStatuses[i].Name != pod.Spec.InitContainers[i].Name {
				t.Errorf("%s: %+v", name, pod.Status)
			}
		}
		if !slices.Equal(got, c.want) || len(pod.Spec.Containers)+len(got) != len(c.statuses) ||
			len(pod.Status.ContainerStatuses) != len(pod.Spec.Containers) {
			t.Errorf("%s: %v of %d, want %v", name, got, len(c.statuses), c.want)
		}
	}
}
