package inspect_test

import (
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/exit"
)

// TestExplain: explain prints the API's description of a field and how podctl handles it.
func TestExplain(t *testing.T) {
	l := newLab(t)
	for arg, wants := range map[string][]string{
		"pod": {"KIND:       Pod\nVERSION:    v1\n", "  spec\t<PodSpec>\n"},
		"po.spec.containers.livenessProbe": {
			"FIELD: livenessProbe <Probe>\nPODCTL: honoured; an edit restarts nothing",
			"  periodSeconds\t<integer>\n", "Periodic probe of container liveness.",
		},
		"pod.spec.containers.image": {
			"FIELD: image <string>\nPODCTL: honoured; an edit replaces containers", "Container image name.",
		},
		"pod.spec.nodeName": {
			"PODCTL: no effect. Places pods on the nodes of a cluster; podctl has one machine.",
		},
		"deployment.spec.strategy": {
			"VERSION:    apps/v1", "FIELD: strategy <DeploymentStrategy>\nPODCTL: honoured",
		},
		"deploy.spec.template.spec.volumes.nfs": {"PODCTL: refused. "},
		"deploy.spec.progressDeadlineSeconds":   {"FIELD: progressDeadlineSeconds <integer>\nPODCTL: no effect"},
		"configmap.data":                        {"FIELD: data <map[string]string>\n"},
	} {
		stdout, _ := l.Must("explain", arg)
		for _, want := range wants {
			if !strings.Contains(stdout, want) {
				t.Errorf("%s: want %q in\n%s", arg, want, stdout)
			}
		}
	}
	for _, arg := range []string{"widget", "pod.spec.container", "pod.spec.containers.image.tag"} {
		if code, _, stderr := l.Call("explain", arg); code != exit.Error ||
			!strings.Contains(stderr, "podctl explain") && !strings.Contains(stderr, "podctl explains") {
			t.Errorf("%s: %d %s", arg, code, stderr)
		}
	}
}
