package commands

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/runtime/kubeletconf"
)

// writeKubelet writes files of a kubelet and returns their directory. DIR in a text is that directory.
func writeKubelet(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil {
			err = os.WriteFile(path, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const kubeletHeader = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

// TestDoctorNode examines files as kubeadm writes them: the drop-in of the unit names the others.
func TestDoctorNode(t *testing.T) {
	dir := writeKubelet(t, map[string]string{
		"kubelet.service.d/10-kubeadm.conf": "[Service]\nEnvironment=\"C=--config=DIR/config.yaml --kubeconfig=/etc/kubernetes/kubelet.conf\"\n" +
			"EnvironmentFile=-DIR/flags.env\nEnvironmentFile=-DIR/absent\nExecStart=\nExecStart=/usr/bin/kubelet $C $KUBEADM\n",
		"kubelet.service.d/README": "not a drop-in",
		"flags.env":                "KUBEADM=\"--hostname-override=n1 --node-labels=a=b\"\n",
		"config.yaml":              kubeletHeader + "maxPods: 50\npodPidsLimit: 100\ncpuManagerPolicy: static\nstaticPodPath: DIR/pods\nclusterDNS: [10.96.0.10]\n",
	})
	code, stdout, stderr := call(t, "", "doctor", "--node", filepath.Join(dir, "kubelet.service.d"))
	for _, want := range []string{
		"  ✓ maxPods: 50 → --max-pods\n", "  ! cpuManagerPolicy: static has no effect. podctl assigns no", "  pod-max-pids: 100\n", "absent does not exist",
		"\nmax-pods: 50\n", "\nnode-labels: a=b\n", "\nstate-dir: /var/lib/kubelet\n", "  node-name: n1\n", "  - " + dir + "/pods\n",
		"  kubeconfig: /etc/kubernetes/kubelet.conf\n", "This kubelet can be replaced by podctl; 1 setting would have no effect.\n",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if code != exit.OK || stderr != "" || t.Failed() {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	config := stdout[strings.Index(stdout, "config.yaml):\n")+len("config.yaml):\n") : strings.LastIndex(stdout, "\nThis kubelet can")]
	file := filepath.Join(dir, "podctl.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr = call(t, "", "version", "--client", "--config", file); code != exit.OK {
		t.Errorf("the printed configuration: %s\n%s", stderr, config)
	}
}

// TestKubeletFiles checks the order of units and drop-ins, and which hide others, as in systemd.
func TestKubeletFiles(t *testing.T) {
	dir := writeKubelet(t, map[string]string{
		"usr/lib/systemd/system/kubelet.service":                 "[Service]",
		"usr/lib/systemd/system/kubelet.service.d/10-a.conf":     "[Service]",
		"usr/lib/systemd/system/kubelet.service.d/20-b.conf":     "[Service]",
		"usr/lib/systemd/system/kubelet.service.d/30-c.conf":     "[Service]",
		"etc/systemd/system/kubelet.service":                     "[Service]",
		"etc/systemd/system/kubelet.service.d/05-x.conf":         "[Service]",
		"etc/systemd/system/kubelet.service.d/20-b.conf":         "[Service]",
		"etc/systemd/system/k3s-agent.service":                   "[Service]",
		"etc/rancher/rke2/config.yaml":                           "token: t",
		"var/snap/microk8s/current/args/kubelet":                 "--max-pods=1",
		"var/lib/rancher/k3s/agent/etc/kubelet.conf.d/00-x.conf": kubeletHeader,
	})
	if err := os.Symlink(os.DevNull, filepath.Join(dir, "etc/systemd/system/kubelet.service.d/30-c.conf")); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"/etc/systemd/system/kubelet.service", "/etc/systemd/system/kubelet.service.d/05-x.conf",
		"/usr/lib/systemd/system/kubelet.service.d/10-a.conf", "/etc/systemd/system/kubelet.service.d/20-b.conf",
		"/etc/systemd/system/k3s-agent.service", "/var/lib/rancher/k3s/agent/etc/kubelet.conf.d", "/etc/rancher/rke2/config.yaml",
		"/var/snap/microk8s/current/args/kubelet",
	}
	units, files := kubeletFiles(dir)
	got := append(units, files...)
	for i := range got {
		got[i] = strings.TrimPrefix(got[i], dir)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

// TestDoctorNodeDropIns checks that a kubelet's directory has only files with its extension, that the others are
// listed, and that drop-ins follow the configuration when the flags are in another order.
func TestDoctorNodeDropIns(t *testing.T) {
	dir := writeKubelet(t, map[string]string{
		"d/10.conf":   kubeletHeader + "maxPods: 10\n",
		"d/20.yaml":   kubeletHeader + "maxPods: 20\n",
		"config.yaml": kubeletHeader + "maxPods: 5\n",
		"k.service":   "[Service]\nExecStart=/kubelet --config-dir=DIR/d --config=DIR/config.yaml\n",
	})
	_, stdout, stderr := call(t, "", "doctor", "--node", filepath.Join(dir, "k.service"))
	for _, want := range []string{"✓ maxPods: 10 →", "20.yaml was not examined"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in\n%s%s", want, stdout, stderr)
		}
	}
}

// TestDoctorNodeOtherFiles checks that files of other programs are no settings of a kubelet, and are not shown.
func TestDoctorNodeOtherFiles(t *testing.T) {
	dir := writeKubelet(t, map[string]string{
		"shadow":       "root:$6$hunter2:20228:0:99999:7:::\nbin:*:20228:0:99999:7:::\n",
		"keys":         "hunter2: x\nHunter2 Key: y\n",
		"kubeadm.yaml": "apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\ndiscovery: {bootstrapToken: {token: hunter2}}\n",
	})
	for _, name := range []string{"shadow", "keys", "kubeadm.yaml"} {
		code, stdout, stderr := call(t, "", "doctor", "--node", filepath.Join(dir, name))
		if code != exit.Error || stderr == "" || strings.Contains(stdout+stderr, "hunter2") {
			t.Errorf("%s: exit code %d\n%s%s", name, code, stdout, stderr)
		}
	}
}

// TestDoctorNodeRefuses examines settings that podctl cannot be used with, and invalid ones.
func TestDoctorNodeRefuses(t *testing.T) {
	dir := writeKubelet(t, map[string]string{"k.yaml": kubeletHeader + "runOnce: true\nsystemReserved: {cpu: x}\n"})
	code, stdout, _ := call(t, "", "doctor", "--node", "--kubelet-args", "--node-ip=1.2.3.4 --nope", filepath.Join(dir, "k.yaml"), "-o", "json")
	var doc nodeDocument
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil || code != exit.Error || doc.Usable {
		t.Fatalf("exit code %d: %v\n%s", code, err, stdout)
	}
	results := map[string]kubeletconf.Result{}
	for _, f := range doc.Findings {
		results[f.Name] = f.Result
	}
	if results["runOnce"] != kubeletconf.Refused || results["systemReserved"] != kubeletconf.Refused || results["--nope"] != kubeletconf.Invalid ||
		results["--node-ip"] != kubeletconf.Honoured {
		t.Error(results)
	}
	for _, args := range [][]string{
		{"doctor", "--kubelet-args", "x"},
		{"doctor", "file"},
		{"doctor", "--node", "--bundle", "b"},
		{"doctor", "--node", "--kubelet-args", "'"},
		{"doctor", "--node", filepath.Join(dir, "absent")},
	} {
		if code, _, stderr := call(t, "", args...); code != exit.Error || stderr == "" {
			t.Errorf("%v: exit code %d %s", args, code, stderr)
		}
	}
}

// badSettings returns values of a kubelet's fields and flags with which an agent does not start, by the settings of
// podctl. A field is a line of YAML.
func badSettings() map[string][]string {
	return map[string][]string{
		"sources":                {"staticPodURL: ftp://h/p"},
		"url-interval":           {"httpCheckFrequency: -1s"},
		"container-log-max-size": {"containerLogMaxSize: x", "containerLogMaxSize: '0'"}, "container-log-max-files": {"containerLogMaxFiles: 1"},
		"address": {"address: foo", "address: '1.2.3.4:5'"}, "port": {"port: 70000"}, "read-only-port": {"readOnlyPort: 70000"},
		"tls-cert-file": {"tlsCertFile: /a", "tlsCertFile: /a\ntlsPrivateKeyFile: /a\nserverTLSBootstrap: true"}, "tls-private-key-file": {"tlsPrivateKeyFile: /a"},
		"tls-cipher-suites": {"tlsCipherSuites: [FOO]"}, "tls-min-version": {"tlsMinVersion: VersionTLS99"},
		"rotate-server-certificates":                   {"serverTLSBootstrap: x"},
		"authentication-token-webhook-cache-ttl":       {"authentication: {webhook: {cacheTTL: -1s}}"},
		"anonymous-auth":                               {"authentication: {anonymous: {enabled: x}}"},
		"authorization-mode":                           {"authorization: {mode: Foo}"},
		"authorization-webhook-cache-authorized-ttl":   {"authorization: {webhook: {cacheAuthorizedTTL: -1s}}"},
		"authorization-webhook-cache-unauthorized-ttl": {"authorization: {webhook: {cacheUnauthorizedTTL: -1s}}"},
		"enable-system-log-handler":                    {"enableSystemLogHandler: x"},
		"log-format":                                   {"logging: {format: foo}"},
		"cluster-domain":                               {"clusterDomain: -a-"}, "cluster-dns": {"clusterDNS: [foo]", "--cluster-dns=1.2.3.4,foo"},
		"rotate-certificates":  {"rotateCertificates: x"},
		"register-with-taints": {"registerWithTaints: [{key: a, effect: Foo}]", "registerWithTaints: [{key: a b, effect: NoSchedule}]", "--register-with-taints=a"},
		"request-timeout":      {"runtimeRequestTimeout: -1s"}, "allowed-unsafe-sysctls": {"allowedUnsafeSysctls: ['*']"},
		"max-parallel-pulls": {"maxParallelImagePulls: -1"}, "image-gc-high-threshold": {"imageGCHighThresholdPercent: 200"},
		"image-gc-low-threshold": {"imageGCLowThresholdPercent: 90"},
		"image-minimum-gc-age":   {"imageMinimumGCAge: -1s"}, "image-maximum-gc-age": {"imageMaximumGCAge: 1m"},
		"enforce-node-allocatable":                   {"enforceNodeAllocatable: [pods, foo]", "--enforce-node-allocatable=none,pods"},
		"pod-max-pids":                               {"podPidsLimit: -2", "--pod-max-pids=x"},
		"seccomp-default":                            {"seccompDefault: 1", "--seccomp-default=x"},
		"image-pull-credentials-verification-policy": {"imagePullCredentialsVerificationPolicy: Foo"},
		"preloaded-images-verification-allowlist": {
			"preloadedImagesVerificationAllowlist: [a/b]",
			"imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\npreloadedImagesVerificationAllowlist: ['a:1']",
		},
		"max-pods": {"maxPods: -1"}, "system-reserved": {"systemReserved: {foo: '1'}", "kubeReserved: {memory: x}", "--system-reserved=cpu"},
		"eviction-hard": {"evictionHard: {memory.avail: 1Mi}", "evictionHard: {memory.available: x}", "--eviction-hard=memory.available"},
		"eviction-soft": {"evictionSoft: {memory.available: 1Mi}"}, "eviction-soft-grace-period": {"evictionSoftGracePeriod: {memory.available: 1x}", "evictionSoftGracePeriod: {foo: 1m}"},
		"eviction-max-pod-grace-period": {"evictionMaxPodGracePeriod: -1"}, "eviction-pressure-transition-period": {"evictionPressureTransitionPeriod: -1s"},
		"eviction-minimum-reclaim": {"evictionMinimumReclaim: {memory.available: x}", "evictionMinimumReclaim: {foo: 1Mi}", "evictionMinimumReclaim: {pid.available: x}"},
		"shutdown-grace-period":    {"shutdownGracePeriod: -1s"}, "shutdown-grace-period-critical-pods": {"shutdownGracePeriodCriticalPods: 1m"},
		"node-name": {"--hostname-override=a_b"}, "node-ip": {"--node-ip=foo", "--node-ip=127.0.0.1", "--node-ip=1.2.3.4,1.2.3.5"},
		"node-labels": {"--node-labels=a", "--node-labels=a%=b"}, "max-dead-containers": {"--maximum-dead-containers=x"},
		// Every text can be the name of a file, a directory, a socket or a machine.
		"kubeconfig": nil, "bootstrap-kubeconfig": nil, "client-ca-file": nil, "state-dir": nil, "log-root": nil, "cgroup-root": nil,
		"runtime-endpoint": nil, "image-endpoint": nil, "provider-id": nil,
	}
}

// TestDoctorNodeInvalid checks that no value is accepted with which podctl does not start, and that another setting
// stays accepted.
func TestDoctorNodeInvalid(t *testing.T) {
	bad := badSettings()
	for _, row := range kubeletconf.All() {
		if _, listed := bad[row.Setting]; row.Setting != "" && !listed {
			t.Errorf("there is no invalid value of --%s", row.Setting)
		}
	}
	for setting, values := range bad {
		for _, value := range values {
			args := []string{"doctor", "--node", "-o", "json", "--kubelet-args", "--node-labels=a=b --provider-id=p"}
			if strings.HasPrefix(value, "--") {
				args[len(args)-1] += " " + value
			} else {
				args = append(args, filepath.Join(writeKubelet(t, map[string]string{"k.yaml": kubeletHeader + value + "\n"}), "k.yaml"))
			}
			code, stdout, _ := call(t, "", args...)
			var doc nodeDocument
			if err := json.Unmarshal([]byte(stdout), &doc); err != nil || code != exit.Error || doc.Usable {
				t.Errorf("%s: %s: exit code %d %v", setting, value, code, err)
			}
			for _, f := range doc.Findings {
				if f.Setting == setting && f.Result == kubeletconf.Honoured || f.Setting == "provider-id" && f.Result != kubeletconf.Honoured {
					t.Errorf("%s: %+v", value, f)
				}
			}
		}
	}
	code, stdout, _ := call(t, "", "doctor", "--node", "--kubelet-args", "--hostname-override=Node1 --tls-cipher-suites=TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305")
	if code != exit.OK || !strings.Contains(stdout, "  node-name: node1\n") {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
}

// TestDoctorNodeUnused checks that values without a threshold are left out, because a kubelet ignores them.
func TestDoctorNodeUnused(t *testing.T) {
	dir := writeKubelet(t, map[string]string{"k.yaml": kubeletHeader + "evictionHard: {memory.available: 1Mi}\n" +
		"evictionMinimumReclaim: {memory.available: 2Mi, nodefs.available: 10%}\nevictionSoftGracePeriod: {memory.available: 1m}\n"})
	code, stdout, stderr := call(t, "", "doctor", "--node", filepath.Join(dir, "k.yaml"))
	for _, want := range []string{
		"no flag --kubeconfig was found", "nodefs.available=10% has no effect", "! evictionSoftGracePeriod: memory.available=1m has no effect. None of its", "\n  eviction-minimum-reclaim: memory.available=2Mi\n",
	} {
		if code != exit.OK || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, %q is missing in\n%s%s", code, want, stdout, stderr)
		}
	}
}

// TestDoctorNodePairs checks that settings that limit each other are checked together.
func TestDoctorNodePairs(t *testing.T) {
	for _, values := range []string{
		"imageMinimumGCAge: 1s\nimageMaximumGCAge: 1m", "imageGCHighThresholdPercent: 60\nimageGCLowThresholdPercent: 50",
		"evictionSoft: {memory.available: 1Mi}\nevictionSoftGracePeriod: {memory.available: 1m}",
	} {
		dir := writeKubelet(t, map[string]string{"k.yaml": kubeletHeader + values + "\n"})
		if code, stdout, _ := call(t, "", "doctor", "--node", filepath.Join(dir, "k.yaml")); code != exit.OK ||
			strings.Contains(stdout, "✗") {
			t.Errorf("exit code %d\n%s", code, stdout)
		}
	}
}

// TestKubeletSettingsExist checks that podctl has each setting of the table of a kubelet's settings, and that a setting
// of the agent with the name of a kubelet's flag or field is in that table.
func TestKubeletSettingsExist(t *testing.T) {
	root := New(&Env{Getenv: func(string) string { return "" }})
	agent, _, err := root.Find([]string{"agent"})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range kubeletconf.All() {
		flag := agent.Flags().Lookup(row.Setting)
		if flag == nil {
			flag = root.PersistentFlags().Lookup(row.Setting)
		}
		if row.Setting != "" && flag == nil {
			t.Errorf("there is no --%s", row.Setting)
		}
		name := row.Flag
		if name == "" {
			name = strings.ToLower(regexp.MustCompile("[A-Z]+").ReplaceAllString(row.Path, "-$0"))
		}
		if row.Setting != name && agent.Flags().Lookup(name) != nil && name != "config" && name != "v" && name != "version" {
			t.Errorf("podctl has --%s: change the row of the table", name)
		}
	}
}
