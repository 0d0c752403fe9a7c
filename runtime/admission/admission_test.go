package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/model/modeltest"
)

// TestNotes checks that the known reasons of a rejection by a kubelet are noted.
func TestNotes(t *testing.T) {
	here := &model.Machine{Labels: map[string]string{v1.LabelOSStable: "linux", v1.LabelArchStable: "amd64"}}
	const affinity = "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: " +
		"{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}\n"
	for name, c := range map[string]struct {
		spec    string
		machine *model.Machine
		want    []string
	}{
		"nothing":       {"", here, nil},
		"a safe sysctl": {"  securityContext: {sysctls: [{name: net/ipv4/tcp_syncookies, value: '1'}]}\n", here, nil},
		"an unsafe one": {"  securityContext: {sysctls: [{name: kernel/msgmax, value: '1'}]}\n", &model.Machine{}, []string{
			"spec.securityContext.sysctls[0]: a kubelet would refuse the pod unless its --allowed-unsafe-sysctls has it " +
				`(SysctlForbidden): forbidden sysctl: "kernel.msgmax" not allowlisted`,
		}},
		"this machine": {"  nodeSelector: {kubernetes.io/os: linux}\n", here, nil},
		"another machine": {
			"  nodeSelector: {kubernetes.io/arch: arm64}\n",
			here,
			[]string{"spec.nodeSelector[kubernetes.io/arch] is arm64, " +
				"but this machine has amd64: a kubelet would refuse the pod (NodeAffinity)"},
		},
		"a label": {"  nodeSelector: {disk: ssd}\n", here, []string{"spec.nodeSelector[disk]: a kubelet " +
			"would refuse the pod unless its node has the label disk=ssd (NodeAffinity)"}},
		"an unknown machine": {"  nodeSelector: {disk: ssd}\n", &model.Machine{}, nil},
		"an affinity": {affinity, here, []string{"spec.affinity.nodeAffinity: " +
			"a kubelet would refuse the pod unless its node has the labels that it requires (NodeAffinity)"}},
	} {
		pod := modeltest.Load(t, modeltest.Pod(c.spec+"  containers: [{name: a, image: i:1}]\n")).Pod
		if diff := cmp.Diff(c.want, Notes(pod, c.machine)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}
