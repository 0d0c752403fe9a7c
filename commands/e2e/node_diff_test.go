package e2e

import (
	"strings"
	"testing"
)

// TestNodeDiff checks that a node whose pod runs has no differences to its API server, and that plan and why name the
// object.
func TestNodeDiff(t *testing.T) {
	l := newNodeLab(t)
	defer l.close()
	l.cluster.server.Put(plainPod(t, "web"))
	l.start()
	l.untilRunning("web")
	l.until("there are no differences", func() bool {
		code, text := l.run([]string{"diff", "--cluster"})
		return code == 0 && strings.Contains(text, "No differences")
	})
	for command, want := range map[string]string{
		"plan": "source api · uid ", "why": "generation 1, observedGeneration 1",
	} {
		if code, text := l.run([]string{command, "web"}); code != 0 || !strings.Contains(text, want) {
			t.Errorf("%s: exit code %d, without %q\n%s", command, code, want, text)
		}
	}
}
