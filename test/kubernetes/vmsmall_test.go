package kubernetes

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	vmSmallMemory = 512
	vmPods        = 10
	vmRest        = time.Minute
	vmNamespace   = "vm"
)

// vmKubelet runs a kubelet in place of the agent, on the same containerd and with the same pods.
const vmKubelet = `set -e
systemctl disable --now podctl-agent.service
cat >/opt/node/kubelet.yaml <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: /etc/podctl/pods
containerRuntimeEndpoint: unix://` + socket + `
cgroupDriver: systemd
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
END
cat >/etc/systemd/system/kubelet.service <<END
[Service]
ExecStart=/opt/node/kubelet --config /opt/node/kubelet.yaml --root-dir ` + stateDir + ` \
	--cert-dir ` + stateDir + `/pki --kubeconfig /etc/podctl/kubeconfig \
	--hostname-override ` + nodeName + ` --node-ip ` + vmIP + `
Restart=always
[Install]
WantedBy=multi-user.target
END
systemctl enable --now kubelet.service
`

// vmUsage prints the memory of the programs of a node in KiB, as "NAME COUNT RSS PSS", and that of the machine.
const vmUsage = `set -e
for name in podctl-node kubelet containerd containerd-shim demo pause; do
	count=0 rss=0 pss=0
	for comm in /proc/[0-9]*/comm; do
		read -r found <$comm 2>/dev/null || continue
		[ "$found" = $name ] || continue
		dir=${comm%/comm}
		count=$((count + 1))
		rss=$((rss + $(sed -n 's/^Rss: *\([0-9]*\) .*/\1/p' $dir/smaps_rollup)))
		pss=$((pss + $(sed -n 's/^Pss: *\([0-9]*\) .*/\1/p' $dir/smaps_rollup)))
	done
	echo $name $count $rss $pss
done
sed -n 's/^\(MemTotal\|MemFree\|MemAvailable\): *\([0-9]*\) .*/\1 \2/p' /proc/meminfo
`

// TestSmallMachine runs ten pods on a machine with 512 MiB of memory, under podctl agent, under a kubelet that takes
// them over, and under podctl again. No container restarts.
func TestSmallMachine(t *testing.T) {
	n, err := given()
	if err != nil {
		t.Fatal(err)
	}
	api := (&node{needed: n}).startServer(t)
	m := newVM(t, api, vmSmallMemory)
	api.makeNamespace(t, vmNamespace)
	for i := range vmPods {
		api.request(t, http.MethodPost, vmPodsPath, fmt.Sprintf(besidePod, "small-"+strconv.Itoa(i), "Always", firstImage))
	}
	m.awaitRunning(t, vmPods)
	before := m.containers(t)
	m.rest(t, "podctl")
	m.run(t, vmKubelet)
	m.taken(t, before)
	m.rest(t, "kubelet")
	m.run(t, "systemctl disable --now kubelet.service && systemctl enable --now podctl-agent.service")
	m.taken(t, before)
	m.rest(t, "podctl")
}

const vmPodsPath = "/api/v1/namespaces/" + vmNamespace + "/pods"

// awaitRunning waits until a number of pods are ready.
func (m *vm) awaitRunning(t *testing.T, count int) {
	t.Helper()
	m.until(t, func() string {
		var ready int
		var states strings.Builder
		for _, pod := range m.api.pods(t) {
			if pod.condition("Ready") == "True" {
				ready++
			}
			fmt.Fprintln(&states, pod.at("metadata", "name"), pod.at("status", "phase"), pod.at("status", "reason"))
		}
		if ready != count {
			return fmt.Sprintf("%d pods are ready, want %d:\n%s", ready, count, &states)
		}
		return ""
	})
}

// containers returns the ids and restart counts of all containers in the API.
func (m *vm) containers(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pod := range m.api.pods(t) {
		c := onlyContainer(pod)
		found[pod.at("metadata", "name")] = fmt.Sprint(c["containerID"], " ", c["restartCount"])
	}
	return found
}

// taken checks that another program has taken over the node with all its containers.
func (m *vm) taken(t *testing.T, before map[string]string) {
	t.Helper()
	time.Sleep(vmRest)
	m.awaitNode(t)
	m.awaitRunning(t, len(before))
	for name, now := range m.containers(t) {
		if now != before[name] {
			t.Errorf("pod %s: its container is %s, was %q", name, now, before[name])
		}
	}
}

// rest waits until the node has been at rest, and shows the memory that it uses.
func (m *vm) rest(t *testing.T, name string) {
	t.Helper()
	time.Sleep(vmRest)
	t.Logf("with %s:\n%s", name, m.run(t, vmUsage))
	if name == "podctl" {
		t.Log(m.run(t, "systemctl show -P NRestarts podctl-agent.service podctl-containerd.service\n"+
			"systemctl --failed --no-legend"))
	}
}
