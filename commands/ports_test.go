package commands

import (
	"fmt"
	"strings"
	"testing"
)

// TestOnePodGetsAPort starts several pods that publish the same port of the node. One of them gets the port, and the
// others are held.
func TestOnePodGetsAPort(t *testing.T) {
	for try := range 5 {
		l := newLab(t)
		args := []string{"apply"}
		for i := range 4 {
			spec := fmt.Sprintf("  containers: [{name: a, image: 'i:1', ports: [{containerPort: 80, hostPort: %d}]}]\n",
				47000+try)
			args = append(args, l.Write(fmt.Sprintf("pod%d", i), spec))
		}
		code, stdout, stderr := l.Call(args...)
		if strings.Count(stdout, " applied: ") != 1 || strings.Count(stdout, " held: ") != 3 {
			t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
		}
		l.Must("delete", "--all")
	}
}
