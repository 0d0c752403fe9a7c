package e2e

import (
	"strings"
	"testing"
)

// TestNodeDiff checks that a node whose pods run has no differences to its API server, also if a file names the uid of
// its pod, and that plan and why name the object.
func TestNodeDiff(t *testing.T) {
	l := newNodeLab(t)
	defer l.close()
	l.cluster.server.Put(plainPod(t, "web"))
	l.write("source/file.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: file, uid: 0c0a6c6e-5f0e-4d6b-9a53-6f6b2f8a4f3d}\n"+
		"spec: {containers: [{name: c, image: 'i:1'}]}\n")
	l.start()
	l.untilRunning("web", "file-n1")
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
