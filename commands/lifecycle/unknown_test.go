package lifecycle_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// unreadable makes the status call for a pod's sandbox fail.
func unreadable(l *lab, pod string) {
	uid, _ := l.Must("get", pod, "-o", "jsonpath={.metadata.uid}")
	id := l.SandboxOf(uid)
	l.Fail(runtimetest.Fault{
		Method: "PodSandboxStatus",
		Times:  1000,
		Err:    status.Error(codes.Unknown, "failed to query controller status"),
		Only: func(request any) bool {
			return id == request.(*runtimeapi.PodSandboxStatusRequest).GetPodSandboxId()
		},
	})
}

// TestUnobservablePod checks that an unobservable pod affects only its own row and step.
func TestUnobservablePod(t *testing.T) {
	l := newLab(t)
	const slowly = "  strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 2}}\n"
	l.Must("apply", "--wait", written(l, "web", deployment(4, "i:1", slowly)))
	unreadable(l, "web-3")
	edited := written(l, "web", deployment(3, "i:2", slowly))
	const why = "failed to query controller status"
	for _, command := range [][]string{{"plan", edited}, {"diff", edited}} {
		code, stdout, stderr := l.Call(command...)
		if code != exit.Error || !strings.Contains(stdout+stderr, why) || !strings.Contains(stdout, "web-0") ||
			!strings.Contains(stdout, "web-1") {
			t.Errorf("%v: %d\n%s%s", command, code, stdout, stderr)
		}
	}
	if code, stdout, stderr := l.Call("get", "deployments"); code != exit.Error || !strings.Contains(stdout, "3/4") ||
		!strings.Contains(stderr, why) {
		t.Errorf("get: %d\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr := l.Call("rollout", "status", "deploy/web")
	if !strings.Contains(stdout, "3 available, 1 unknown") || code != exit.Error || !strings.Contains(stderr, why) {
		t.Errorf("rollout status: %d\n%s%s", code, stdout, stderr)
	}
	if code, _, stderr := l.Call("apply", "--wait", edited); code != exit.Error || strings.Count(stderr, why) != 1 {
		t.Errorf("apply: %d\n%s", code, stderr)
	}
	images, _ := l.Must("get", "web-0", "web-1", "web-2", "-o", "jsonpath={.items[*].spec.containers[0].image}")
	if images != "i:2 i:2 i:2" {
		t.Errorf("images of the other pods %s", images)
	}
	if code, _, stderr := l.Call("scale", "--replicas=1", "deployment/web"); code != exit.Error ||
		!strings.Contains(stderr, why) {
		t.Errorf("scale: %d\n%s", code, stderr)
	}
	if _, stdout, _ := l.Call("get", "-o", "name"); stdout != "pod/web-0\npod/web-3\n" {
		t.Errorf("after scale: %s", stdout)
	}
}

// TestUnobservablePodDoesNotBlockOthers checks that an unobservable pod does not prevent updates of other pods, and
// that a wait ends after the others are done.
func TestUnobservablePodDoesNotBlockOthers(t *testing.T) {
	l := newLab(t)
	const slowly = "  strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 2}}\n"
	l.Must("apply", "--wait", written(l, "web", deployment(3, "i:1", slowly)))
	unreadable(l, "web-0")
	code, _, stderr := l.Call("apply", "--wait", written(l, "web", deployment(3, "i:2", slowly)))
	if code != exit.Error || strings.Count(stderr, "failed to query controller status") != 1 ||
		!strings.Contains(stderr, "web-0 waits: It is updated once podctl can observe it.") {
		t.Errorf("%d\n%s", code, stderr)
	}
	images, _ := l.Must("get", "web-1", "web-2", "-o", "jsonpath={.items[*].spec.containers[0].image}")
	if images != "i:2 i:2" {
		t.Errorf("images of the other pods %s", images)
	}
}
