package inspect_test

import (
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/runtime/runtimetest"
)

// TestFollowingEndsInTime: the end of --timeout is how following ends, whether a log was
// being read or the runtime asked for the next run. Whoever got no answer at all is told.
func TestFollowingEndsInTime(t *testing.T) {
	l := newLab(t)
	l.Must("apply", l.Write("web", "  containers: [{name: a, image: 'i:1'}]\n"))
	for range 5 {
		if stdout, stderr := l.Must("logs", "-f", "--timeout", "100ms", "web"); stdout+stderr != "" {
			t.Errorf("it says %s%s", stdout, stderr)
		}
	}
	proxy, err := runtimetest.StartProxy(t.Context(), l.Path("proxy.sock"), l.Path("cri.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close() //nolint:errcheck // the test is over
	for _, method := range []string{"ListContainers", "ContainerStatus"} {
		proxy.Disturb(runtimetest.Disturbance{Method: method, Hang: true})
		code, _, stderr := l.Call("logs", "-f", "--timeout", "100ms", "--runtime-endpoint", "unix://"+l.Path("proxy.sock"), "web")
		if said := strings.Contains(stderr, "gave up after 100ms"); (code == exit.Error) != said || said != (method == "ListContainers") {
			t.Errorf("without an answer to %s: exit code %d\n%s", method, code, stderr)
		}
	}
}
