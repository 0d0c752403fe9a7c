package runtime

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/podctl/podctl/runtime/runtimetest"
)

// TestStartsThatFailAreDelayed checks that a container that cannot start is retried after the same delay as one that
// exits at once (kubelet: doBackOff).
func TestStartsThatFailAreDelayed(t *testing.T) {
	pod := tripPod("web")
	f := newFaultLab(t, faultShape{behave: map[string][]runtimetest.Behaviour{"a": {{After: time.Second, ExitCode: 1}}}})
	if _, err := f.once(pod); err != nil {
		t.Fatal(err)
	}
	f.server.Fail(runtimetest.Fault{Method: "StartContainer", Times: 100, Err: status.Error(codes.Unknown, "no such file")})
	f.proxy.Reset()
	for range 60 {
		f.clock.Advance(time.Second)
		_, _ = f.once(pod) // The test expects failures.
	}
	tried := f.proxy.Count("StartContainer")
	if tried < 2 || tried > 4 {
		t.Errorf("it was tried %d times in a minute", tried)
	}
}
