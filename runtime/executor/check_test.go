package executor

import (
	"os"
	"strings"
	"testing"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
)

// TestProofsChangeNothing checks a container without its sandbox, volumes and files: the check creates none of them.
func TestProofsChangeNothing(t *testing.T) {
	l := newLab(t, "i:1")
	text := pod(
		"  containers: [{name: a, image: 'i:1', volumeMounts: [{name: v, mountPath: /v, subPath: s}]}]\n" +
			"  volumes: [{name: v, emptyDir: {}}]\n")
	p := l.plan(model.PodRef{}, text)
	x := p.execution(Options{})
	if err := x.start.checkContainer(&plan.Step{Kind: plan.CheckContainer, Container: "a"}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(l.layout.Pod(p.in.Pod.UID).Dir()); !os.IsNotExist(err) || len(l.server.Calls()) > 0 {
		t.Errorf("stat of the pod's directory: %v, calls %v", err, l.server.Calls())
	}
}

// TestProofsThatFail checks that a configuration error is recorded with the kubelet's reason.
func TestProofsThatFail(t *testing.T) {
	for word, c := range map[string]struct {
		reason model.Reason
		spec   string
		// status is the text in the pod's status, if it differs from the error.
		status string
	}{
		"image absent:1 is not present": {"CreateContainerConfigError", "  containers: [{name: a, image: 'absent:1'}]\n", ""},
		"not an absolute path":          {"CreateContainerConfigError", "  containers: [{name: a, image: 'i:1', workingDir: data}]\n", ""},
		"seccompProfile": {
			"CreateContainerError",
			"  containers: [{name: a, image: 'i:1', securityContext: {seccompProfile: {type: Localhost, " +
				"localhostProfile: missing.json}}}]\n",
			"cannot load seccomp profile",
		},
	} {
		l := newLab(t, "i:1")
		x := l.plan(model.PodRef{}, pod(c.spec)).execution(Options{})
		err := x.start.checkContainer(&plan.Step{Kind: plan.CheckContainer, Container: "a"})
		if model.ReasonOf(err, "") != c.reason || !strings.Contains(err.Error(), word) {
			t.Errorf("%q: %v", word, err)
		}
		if e := x.checkpoint.record.StartErrors["a"]; e.Reason != c.reason ||
			!strings.HasPrefix(e.Message, c.status) || (c.status == "" && !strings.Contains(e.Message, word)) {
			t.Errorf("%q: recorded %+v", word, e)
		}
	}
}

// TestTargets checks that a container started in this pass comes before an earlier run, and that a check accepts a
// target that the plan starts.
func TestTargets(t *testing.T) {
	l := newLab(t, "i:1")
	ran := l.apply(onePod()).snapshot.Containers[0].Status.GetId()
	x := l.plan(model.PodRef{}, onePod()).execution(Options{}).start
	x.plan.Steps = []plan.Step{{ID: "start-b", Kind: plan.StartContainer, Container: "b"}}
	for name, c := range map[string]struct {
		want         string
		fails, found bool
	}{
		"a": {want: ran}, "b": {fails: true}, "c": {fails: true, found: true},
	} {
		if got, err := x.target(name); got != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if err := x.checkTarget(name); (err != nil) != c.found {
			t.Errorf("check of %s: %v", name, err)
		}
	}
	x.outputs.setStarted("a", "new")
	if got, err := x.target("a"); got != "new" || err != nil {
		t.Errorf("container started in this pass: %q, %v", got, err)
	}
}
