package inspect_test

import (
	"strings"
	"testing"
)

// TestReloadNamesTheSourcesThatAreStillRead: reload lists the sources that the agent is still reading.
func TestReloadNamesTheSourcesThatAreStillRead(t *testing.T) {
	l := newLab(t)
	l.Must("apply", l.Write("web", probedPod))
	l.ServeAgent()
	if _, stderr := l.Must("agent", "reload"); !strings.Contains(stderr, "The source /slow is still being read") {
		t.Errorf("%q", stderr)
	}
}
