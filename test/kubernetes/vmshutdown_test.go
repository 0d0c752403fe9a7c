package kubernetes

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// vmShutdownPods are an ordinary pod that takes three seconds to stop and then fails, and a critical one that succeeds.
var vmShutdownPods = map[string]string{
	"ordinary": `"containers": [{"name": "main", "image": "` + firstImage + `", "args": ["sleep", "--drain", "3s", "--code", "3"]}]`,
	"critical": `"priorityClassName": "system-node-critical",
		"containers": [{"name": "main", "image": "` + firstImage + `", "args": ["sleep"]}]`,
}

const vmShutdownPod = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q}, "spec": {
  "nodeName": "node", "automountServiceAccountToken": false, %s}}`

// TestMachineShutdown shuts an emulated machine down with systemd, under podctl agent and then under a kubelet, both
// with --shutdown-grace-period. The pods end with the same reasons, and the Node has the same condition meanwhile.
func TestMachineShutdown(t *testing.T) {
	n, err := given()
	if err != nil {
		t.Fatal(err)
	}
	api := (&node{needed: n}).startServer(t)
	m := newVM(t, api, 1024)
	api.makeNamespace(t, vmNamespace)
	m.run(t, `cat >>/etc/podctl/config.yaml <<END
  shutdown-grace-period: 60s
  shutdown-grace-period-critical-pods: 20s
END
cat >/etc/podctl/pods/static.yaml <<'END'
`+lossStatic+`END
podctl agent reload
sync`)
	podctl := m.shutDown(t)
	for name := range vmShutdownPods {
		api.request(t, http.MethodDelete, vmPodsPath+"/"+name, "")
	}
	m.run(t, strings.Replace(vmKubelet, "cgroupDriver:",
		"shutdownGracePeriod: 60s\nshutdownGracePeriodCriticalPods: 20s\ncgroupDriver:", 1))
	kubelet := m.shutDown(t)
	t.Logf("podctl:\n%s\nkubelet:\n%s", podctl, kubelet)
	if podctl != kubelet {
		t.Error("podctl and the kubelet differ")
	}
}

// shutDown shuts the machine down while pods run, and boots it again. It returns what the Node and the pods showed.
func (m *vm) shutDown(t *testing.T) string {
	t.Helper()
	m.until(t, func() string {
		if slices.ContainsFunc(m.api.pods(t), func(p object) bool { return p.at("metadata", "namespace") == vmNamespace }) {
			return "the pods of the last shutdown are not deleted"
		}
		return ""
	})
	m.awaitNode(t)
	for name, spec := range vmShutdownPods {
		m.api.request(t, http.MethodPost, vmPodsPath, fmt.Sprintf(vmShutdownPod, name, spec))
	}
	m.awaitRunning(t, len(vmShutdownPods)+1)
	m.run(t, "systemctl --no-block poweroff")
	found := m.watchShutdown(t)
	var ends []string
	for _, name := range []string{"ordinary", "critical"} {
		pod := find(t, m.api.pods(t), vmNamespace, name)
		found += fmt.Sprintf("%s: %s %s %q, DisruptionTarget %s\n", name, pod.at("status", "phase"),
			pod.at("status", "reason"), pod.at("status", "message"), vmCondition(pod, "DisruptionTarget"))
		state, _ := onlyContainer(pod)["state"].(map[string]any)
		ends = append(ends, object(state).at("terminated", "finishedAt"))
	}
	found += fmt.Sprintf("the critical pod ended later: %v\n", ends[1] >= ends[0] && ends[0] != "")
	m.boot(t)
	m.awaitNode(t)
	m.awaitRunning(t, 1)
	for _, name := range []string{"ordinary", "critical"} {
		pod := find(t, m.api.pods(t), vmNamespace, name)
		found += fmt.Sprintf("after the boot, %s: %s %s\n", name, pod.at("status", "phase"), pod.at("status", "reason"))
	}
	return found
}

// watchShutdown waits until the machine is off. It returns the Ready conditions of the Node meanwhile.
func (m *vm) watchShutdown(t *testing.T) string {
	t.Helper()
	var found []string
	for began := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		text, err := fetch(t.Context(), serverURL+"/api/v1/nodes", token)
		if err != nil {
			t.Fatal(err)
		}
		ready := vmCondition(items(t, text)[0], "Ready")
		if len(found) == 0 || found[len(found)-1] != ready {
			found = append(found, ready)
		}
		select {
		case <-m.qemu.ended:
			t.Logf("the machine was off after %s", time.Since(began).Round(time.Second))
			m.qemu.cmd = nil
			return "Node: " + strings.Join(found, ", then ") + "\n"
		default:
		}
		if time.Since(began) > vmPatience {
			t.Fatalf("the machine does not shut down: %s", m.console())
		}
	}
}

// vmCondition shows a condition.
func vmCondition(of object, kind string) string {
	c := of.wholeCondition(kind)
	if c == nil {
		return "missing"
	}
	return fmt.Sprintf("%s %s %q", c.at("status"), c.at("reason"), c.at("message"))
}
