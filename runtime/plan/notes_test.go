package plan

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

// TestIgnoredFieldsAreNoted checks that a note appears only if the limitation is known.
func TestIgnoredFieldsAreNoted(t *testing.T) {
	const signal = "  os: {name: linux}\n  containers: [{name: a, image: i:1, lifecycle: {stopSignal: SIGUSR1}}]\n"
	const label = "  securityContext: {seLinuxOptions: {level: s0}}\n" +
		"  containers: [{name: a, image: i:1, securityContext: {seLinuxOptions: {level: s1}}}]\n"
	old := model.Runtime{Name: "containerd", Version: "1.6.20"}
	ignored := "spec.containers[0].lifecycle.stopSignal has no effect: containerd 1.6.20 does not support it, " +
		"and sends the stop signal of the image, or SIGTERM"
	off, on := false, true
	for name, c := range map[string]struct {
		spec    string
		runtime model.Runtime
		selinux *bool
		want    []string
	}{
		"a signal":        {signal, old, nil, []string{ignored}},
		"a newer runtime": {signal, model.Runtime{Name: "containerd", Version: "2.1.0"}, nil, []string{}},
		"another runtime": {signal, model.Runtime{Name: "cri-o", Version: "1.0"}, nil, []string{}},
		"a label": {label, old, &off, []string{
			"spec.containers[0].securityContext.seLinuxOptions has no effect: SELinux is not enabled on this machine",
			"spec.securityContext.seLinuxOptions has no effect: SELinux is not enabled on this machine",
		}},
		"a label with SELinux":     {label, old, &on, []string{}},
		"a label, unknown support": {label, old, nil, []string{}},
	} {
		w := modeltest.New(modeltest.Load(t, modeltest.Pod(c.spec)))
		w.Runtime, w.SELinux = c.runtime, c.selinux
		if diff := cmp.Diff(c.want, makePlan(w).Notes); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// TestStaleVolumesAreNoted checks a running container whose volume lacks new content: a note names the
// volume, and its edit has no effect. A container that starts is held.
func TestStaleVolumesAreNoted(t *testing.T) {
	const spec = "  volumes: [{name: v, configMap: {name: %s}}]\n" +
		"  containers: [{name: a, image: i:1, volumeMounts: [{name: v, mountPath: /v}]}]\n"
	lacks := "ConfigMap default/none, which volume v names, is missing: apply a file that has it, or add it with --configmap FILE"
	w := web(t, fmt.Sprintf(spec, "none"), "a=Running")
	w.Volumes = map[string]model.Volume{"v": {}}
	w.Memory.Applied = modeltest.Load(t, modeltest.Pod(fmt.Sprintf(spec, "some")))
	p := makePlan(w)
	if diff := cmp.Diff([]string{"volume v keeps its content: " + lacks}, p.Notes); diff != "" || len(p.Steps) > 0 {
		t.Errorf("(-want +got)\n%s%+v", diff, p.Steps)
	}
	if got := recorded(p); len(got) != 1 || got[0] != "none: spec.volumes[v].configMap.name" {
		t.Errorf("recorded %q", got)
	}
	if p := makePlan(web(t, fmt.Sprintf(spec, "none"), "")); len(p.Notes) > 0 || len(p.Holds) != 1 || p.Holds[0].Message != lacks {
		t.Errorf("container that does not run: notes %q, holds %+v", p.Notes, p.Holds)
	}
}

// TestRunningContainersWithFaultsAreNoted checks that a note is the only result.
func TestRunningContainersWithFaultsAreNoted(t *testing.T) {
	fault := model.Fault{Reason: model.FailedMount, Message: "so it is", Volume: true}
	w := web(t, "  containers: [{name: a, image: i:1}]\n", "a=Running")
	w.Faults = map[string]model.Fault{"a": fault}
	want := []string{"container a runs, but could not be started again: so it is"}
	p := makePlan(w)
	if diff := cmp.Diff(want, p.Notes); diff != "" || len(p.Steps)+len(p.Holds) > 0 {
		t.Errorf("(-want +got)\n%s%+v", diff, p)
	}
	w = web(t, "  containers: [{name: a, image: i:1}]\n", "")
	w.Faults = map[string]model.Fault{"a": fault}
	if p := makePlan(w); len(p.Notes) > 0 || len(p.Holds) != 1 {
		t.Errorf("container that does not run: notes %q, holds %+v", p.Notes, p.Holds)
	}
}
