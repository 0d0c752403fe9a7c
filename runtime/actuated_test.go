package runtime

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/podctl/podctl/runtime/runtimetest"
)

// TestFailedResizeIsRetried checks that the next pass replaces a container that still has its old resources,
// whatever prevented its replacement.
func TestFailedResizeIsRetried(t *testing.T) {
	const limits = "resources: {limits: {memory: 64Mi}}, resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}]"
	pod := strings.Replace(tripPod("web"), "name: a, image: 'i:1'", "name: a, image: 'i:1', "+limits, 1)
	f := newFaultLab(t, faultShape{before: pod})
	grown := strings.Replace(pod, "memory: 64Mi", "memory: 128Mi", 1)
	f.proxy.Disturb(runtimetest.Disturbance{Method: "StopContainer", Nth: 1, Fail: codes.Unknown})
	if _, err := f.once(grown); err == nil {
		t.Fatal("the stop did not fail")
	}
	f.proxy.Disturb(runtimetest.Disturbance{})
	if err := f.converge(grown); err != nil {
		t.Fatal(err)
	}
	if calls := f.proxy.Writes(); !slices.Contains(calls, "StartContainer") {
		t.Errorf("it was not created: %v", calls)
	}
	if p, err := f.once(grown); err != nil || len(p.Steps) > 0 {
		t.Errorf("it is created again: %v, %v", p, err)
	}
}
