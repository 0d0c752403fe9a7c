package runtime

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/podctl/podctl/runtime/plan"
)

// TestPortsOfTheNode checks that a port of a process holds a pod that needs it, unless the pod is on the node's
// network: then the process may be its own.
func TestPortsOfTheNode(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // the test is over
	_, port, _ := net.SplitHostPort(l.Addr().String())
	published := faultShapes()["two containers"].after
	published = strings.Replace(published, "{name: a, image: 'i:1'}",
		fmt.Sprintf("{name: a, image: 'i:1', ports: [{containerPort: 80, hostPort: %s}]}", port), 1)
	onNode := strings.Replace(faultShapes()["two containers"].after, "spec:\n", "spec:\n  hostNetwork: true\n", 1)
	for before, held := range map[string]bool{"": true, onNode: false} {
		f := newFaultLab(t, faultShape{before: before})
		p, err := f.engine.Pods.Plan(t.Context(), f.load(published), plan.Options{})
		if err != nil || (len(p.Holds) > 0) != held {
			t.Errorf("after %q: %v %+v", before, err, p.Holds)
		}
	}
}
