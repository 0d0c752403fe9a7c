package commands

import (
	"strings"
	"testing"

	"github.com/podctl/podctl/runtime/runtimetest"
)

// TestApplyTellsRemarks: what plan says of a pod and makes no step of, apply says as well,
// before it begins, and once.
func TestApplyTellsRemarks(t *testing.T) {
	l := newLab(t)
	l.Behave("job", runtimetest.Behaviour{After: soon})
	job := l.write("job", "  restartPolicy: Never\n  containers: [{name: job, image: 'i:1'}]\n")
	l.must("apply", "--wait=completed", job)
	l.write("job", "  restartPolicy: Never\n  containers: [{name: job, image: 'i:2'}]\n")
	edited := "  ! note: Completed; delete it first to run the change.\n"
	if stdout, stderr := l.must("apply", job); stderr != edited || stdout != "pod default/job unchanged\n" {
		t.Errorf("an edited pod that has finished:\n%s%s", stdout, stderr)
	}
	if _, stderr := l.must("run", job); !strings.Contains(stderr, "note: Completed; delete it first") {
		t.Errorf("run of an edited pod that has finished:\n%s", stderr)
	}

	big := l.write("big", "  containers: [{name: a, image: 'i:1', resources: {requests: {cpu: 100k}}}]\n")
	_, stderr := l.must("apply", "--wait", big)
	if first, rest, _ := strings.Cut(stderr, "\n"); !strings.HasPrefix(first, "  ! note: the pod requests 100k of cpu") || strings.Contains(rest, "100k") {
		t.Errorf("a pod that asks for more than there is:\n%s", stderr)
	}
	l.Exit("a", 137)
	drift := "was stopped behind podctl: exit code 137"
	if _, stderr := l.must("apply", job, big); !strings.Contains(stderr, "  ! default/big  drift: container a (") || !strings.Contains(stderr, drift) {
		t.Errorf("a container that was killed, one pod of two:\n%s", stderr)
	}
	if stdout, _ := l.must("apply", "-o", "json", job); !strings.Contains(stdout, `"type":"Warning","detail":"note: Completed`) {
		t.Errorf("as events: %s", stdout)
	}
}
