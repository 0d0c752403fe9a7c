package kubeletconf

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// TestExport exports the settings of an agent, decodes the result as a kubelet does, and examines it again: podctl needs
// the same settings.
func TestExport(t *testing.T) {
	a := Agent{SystemdCgroup: new(true), Sources: []string{"/etc/pods", "https://h/x", "/more", "https://u:p@h/y?token=t"}, Values: map[string]string{
		"state-dir": "/var/lib/podctl", "kubeconfig": "/k", "node-name": "n1", "node-ip": "[10.0.0.1]", "node-labels": "a=b",
		"max-pods": "50", "cluster-dns": "[10.96.0.10,10.96.0.11]", "cluster-domain": "c.local", "client-ca-file": "/ca",
		"eviction-hard": "memory.available<5Mi,nodefs.available<10%", "system-reserved": "cpu=750m,memory=1Gi", "anonymous-auth": "true",
		"register-with-taints": "[a=b:NoSchedule,c:NoExecute]", "max-parallel-pulls": "4", "request-timeout": "1m0s", "bootstrap-kubeconfig": "",
		"runtime-endpoint": "unix:///x", "tls-cipher-suites": "[]", "shutdown-grace": "1m0s", "shutdown-grace-period": "30s", "max-dead-containers": "-1", "port": "10251",
		"eviction": "false", "log-format": "json",
	}}
	e := Export(a)
	text, err := json.Marshal(e.Configuration)
	if err != nil {
		t.Fatal(err)
	}
	var c kubeletconfig.KubeletConfiguration
	if err = yaml.UnmarshalStrict(text, &c); err != nil {
		t.Fatal(err)
	}
	if c.CgroupDriver != "systemd" || c.MaxPods != 50 || *c.SerializeImagePulls || *c.MaxParallelImagePulls != 4 || c.StaticPodPath != "/etc/pods" ||
		c.StaticPodURL != "https://h/x" || len(c.RegisterWithTaints) != 2 || *c.FailSwapOn || c.ShutdownGracePeriod.Seconds() != 30 {
		t.Errorf("%s", text)
	}
	flags := "--kubeconfig=/k --hostname-override=n1 --node-ip=10.0.0.1 --node-labels=a=b --root-dir=/var/lib/podctl --cert-dir=/var/lib/podctl/pki"
	if diff := cmp.Diff(flags, strings.Join(e.Flags, " ")); diff != "" {
		t.Error(diff)
	}
	notes := strings.Join(e.Notes, "\n")
	if !strings.Contains(notes, "/more is left out") || strings.Contains(notes, "p@") || strings.Contains(notes, "token=t") || !strings.Contains(notes, "evicts") {
		t.Error(notes)
	}
	again := examine(t, string(text), strings.Join(e.Flags, " "))
	for _, s := range again.Settings {
		want := strings.Trim(a.Values[s.Name], "[]")
		if s.Name != "sources" && s.Value != want && s.Name != "enable-system-log-handler" {
			t.Errorf("--%s=%s, want %s", s.Name, s.Value, want)
		}
	}
	if again.Count(Invalid)+again.Count(Refused) > 0 || len(again.Settings) < 18 {
		t.Errorf("%+v", again)
	}
	if a.SystemdCgroup, a.Values["max-parallel-pulls"] = nil, "1"; Export(a).Configuration["serializeImagePulls"] != true {
		t.Error("one pull at a time")
	}
	if a.Values["bootstrap-kubeconfig"] = "/b"; Export(a).Configuration["rotateCertificates"] != true {
		t.Error("certificates are not replaced")
	}
	a.Values["shutdown-grace-period"] = "0s"
	if e := Export(a); e.Configuration["shutdownGracePeriod"] != nil && e.Configuration["shutdownGracePeriod"] != "0s" ||
		!strings.Contains(strings.Join(e.Notes, "\n"), "shutdownGracePeriod") {
		t.Errorf("pods that podctl starts again after a shutdown end for good: %v", e)
	}
	if a.SystemdCgroup = new(false); Export(a).Configuration["cgroupDriver"] != "cgroupfs" {
		t.Error("the driver cgroupfs")
	}
}
