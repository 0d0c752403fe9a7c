package kubeletconf

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const header = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

// examine examines files in their order. A text that begins with -- is a command line.
func examine(t *testing.T, texts ...string) Report {
	t.Helper()
	f := NewFiles()
	for i, text := range texts {
		if strings.HasPrefix(text, "--") && !strings.HasSuffix(text, "\n") {
			words, err := Words(text)
			if err != nil {
				t.Fatal(err)
			}
			f.AddArguments("flags", words)
		} else if err := f.Add(fmt.Sprintf("f%d", i), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Check(); err != nil {
		t.Fatal(err)
	}
	return f.Examine()
}

// lines returns the findings, without defaults and without values that are the same.
func lines(r Report) (all []string) {
	for _, f := range r.Findings {
		if !strings.HasPrefix(f.Origin, "default of ") && f.Result != Same {
			all = append(all, strings.Join(strings.Fields(fmt.Sprintf("%s %s %s: %s %s", f.Origin, f.Name, f.Value, f.Result, f.Setting)), " "))
		}
	}
	return all
}

// TestExamine checks configurations, drop-ins, units, variables, k3s and flags, and which of them takes precedence.
func TestExamine(t *testing.T) {
	for _, c := range []struct {
		name  string
		texts []string
		want  []string
	}{
		{"results", []string{header + "maxPods: 50\npodPidsLimit: 10\nqosReserved: {memory: 50%}\nrunOnce: true\npodCIDRs: a\nport: x\ncgroupsPerQOS: true\n"}, []string{
			"f0 maxPods 50: honoured max-pods", "f0 podCIDRs : no effect", "f0 podPidsLimit 10: honoured pod-max-pids", "f0 port : invalid",
			"f0 qosReserved memory=50%: no effect", "f0 runOnce true: refused",
		}},
		{"empty values are defaults", []string{header + "syncFrequency: 0s\nlogging: {}\nclusterDNS: []\nevictionHard: {}\npodCIDR: ''\ntracing:\n"}, nil},
		{"equal values", []string{header + "nodeStatusReportFrequency: 300s\nauthentication: {anonymous: {enabled: false}}\n"}, nil},
		{"a map in place of a value", []string{header + "maxPods: {a: 1}\nauthentication: 3\nclusterDNS: a\nfeatureGates: {A: {}}\n"}, []string{
			"f0 authentication : invalid", "f0 clusterDNS : invalid", "f0 featureGates : invalid", "f0 maxPods : invalid",
		}},
		{"an unknown field below a known one", []string{header + "logging: {options: {text: {x: 1}}}\nauthentication: {x509: {ca: 1}}\n"}, []string{
			"f0 authentication.x509.ca : no effect", "f0 logging.options.text.x : no effect",
		}},
		{
			"a drop-in replaces lists, merges maps and removes values",
			[]string{
				header + "clusterDNS: [a]\nevictionHard: {memory.available: 1Mi}\nmaxPods: 3\n",
				header + "clusterDNS: [b, c]\nevictionHard: {nodefs.available: 5%}\nmaxPods: null\n",
			},
			[]string{"f1 clusterDNS b,c: honoured cluster-dns", "f1 evictionHard memory.available<1Mi,nodefs.available<5%: honoured eviction-hard"},
		},
		{"a flag takes precedence", []string{"--max-pods=7 --cluster-dns=a --cluster-dns b --v=4 -v=5", header + "maxPods: 50\n"}, []string{
			"flags maxPods 7: honoured max-pods", "flags clusterDNS a,b: honoured cluster-dns", "flags logging.verbosity 5: no effect",
		}},
		{"a boolean flag has no word after it", []string{"--runonce kubelet --fail-swap-on=false --nope x"}, []string{
			"flags runOnce true: refused", "flags --nope : invalid",
		}},
		{
			"a unit",
			[]string{
				"[Unit]\nDescription=x --max-pods=1\n[Service]\nExecStart=/usr/bin/kubelet --max-pods=1\n",
				"# a drop-in\n[Service]\nEnvironment=\"A=--node-ip=10.0.0.1 --port=1\" B=b\nExecStart=\nExecStart=/usr/bin/kubelet \\\n  $A $UNSET --root-dir=/x/${B} $C\n",
				"C='--hostname-override=n'\nD=--runonce\n",
			},
			[]string{
				"f1 --node-ip 10.0.0.1: honoured node-ip", "f1 port 1: honoured port", "f1 --root-dir /x/b: honoured state-dir",
				"f1 --hostname-override n: honoured node-name",
			},
		},
		{"variables without a unit", []string{"# kubeadm\nKUBELET_KUBEADM_ARGS=\"--node-labels=a=b --pod-infra-container-image=p\"\n"}, []string{
			"the variable KUBELET_KUBEADM_ARGS --node-labels a=b: honoured node-labels",
			"the variable KUBELET_KUBEADM_ARGS --pod-infra-container-image p: no effect",
		}},
		{
			"k3s",
			[]string{"token: t\nnode-label: [a=b, c=d]\nkubelet-arg: [max-pods=9, --port=2]\n", "kubelet-arg+: [runonce=false]\nnode-taint+: ['a=b:NoSchedule']\n"},
			[]string{
				"f1 registerWithTaints a=b:NoSchedule: honoured register-with-taints", "f0 --node-labels a=b,c=d: honoured node-labels",
				"f0 maxPods 9: honoured max-pods", "f0 port 2: honoured port",
			},
		},
		{
			"a drop-in of k3s replaces values",
			[]string{"node-label: [a=b]\nkubelet-arg: [max-pods=9]\n", "node-label: [c=d]\nkubelet-arg: [port=2]\n"},
			[]string{"f1 --node-labels c=d: honoured node-labels", "f1 port 2: honoured port"},
		},
		{
			"the command line of k3s adds to lists of files, and replaces variables",
			[]string{
				"[Service]\nExecStart=/usr/local/bin/k3s agent '--kubelet-arg=max-pods=7' --kubelet-arg v=2 \\\n  --token secret -t x '--node-label' 'c=d'\n",
				"node-label: [a=b]\nkubelet-arg: [port=2, v=1]\n", "K3S_TOKEN='secret'\nK3S_NODE_NAME=n\nK3S_NODE_IP=1.2.3.4\n",
			},
			[]string{
				"f0 --hostname-override n: honoured node-name", "f0 --node-labels a=b,c=d: honoured node-labels",
				"f1 port 2: honoured port", "f0 logging.verbosity 2: no effect", "f0 maxPods 7: honoured max-pods",
			},
		},
		{
			"kubelet-arg replaces flags of k3s, or adds to them",
			[]string{"node-label: [a=b]\nnode-ip: 1.2.3.4\nnode-name: n1\nkubelet-arg: ['node-labels+=c=d', node-ip=1.2.3.5, 'max-pods+=3', runonce]\n"},
			[]string{
				"f0 --hostname-override n1: honoured node-name", "f0 --node-labels a=b,c=d: honoured node-labels", "f0 --node-ip 1.2.3.5: honoured node-ip",
				"f0 maxPods 3: honoured max-pods", "f0 runOnce true: refused",
			},
		},
		{"letters for flags of k3s", []string{"[Service]\nExecStart=/k3s agent -i 1.2.3.4 -t secret\n"}, []string{"f0 --node-ip 1.2.3.4: honoured node-ip"}},
		{"a unit with comments in a command", []string{"[Service]\nExecStart=/kubelet --max-pods=3 \\\n# a comment\n --port=2 \\\n; another\n --runonce\n"}, []string{
			"f0 maxPods 3: honoured max-pods", "f0 port 2: honoured port", "f0 runOnce true: refused",
		}},
		{"a copy of a file of microk8s", []string{"--kubeconfig=${SNAP_DATA}/k\n--root-dir=${SNAP_COMMON}/r\n--cluster-dns=\n"}, []string{
			"f0 --kubeconfig /var/snap/microk8s/current/k: honoured kubeconfig", "f0 --root-dir /var/snap/microk8s/common/r: honoured state-dir",
		}},
		{"a file of flags", []string{"# a comment\n--max-pods=3\n--node-labels=\"a=b,c=d\"\n"}, []string{
			"f0 maxPods 3: honoured max-pods", "f0 --node-labels a=b,c=d: honoured node-labels",
		}},
		{"variables with lines and comments", []string{"; a comment\nA=\"--max-pods=3 \\\n--port=2 \\\r\n \"\n"}, []string{
			"the variable A maxPods 3: honoured max-pods", "the variable A port 2: honoured port",
		}},
		{
			"values of another type",
			[]string{
				header + "maxPods: '3'\nclusterDomain: 5\nfailSwapOn: 'false'\nshutdownGracePeriod: 60\nkubeReserved: {cpu: 1}\nevictionHard: {nodefs.available: 5}\n" +
					"featureGates: {A: true}\nlogging: {flushFrequency: 0, options: {text: {infoBufferSize: 0}}}\n",
			},
			[]string{
				"f0 clusterDomain : invalid", "f0 evictionHard : invalid", "f0 failSwapOn : invalid", "f0 featureGates A=true: no effect",
				"f0 kubeReserved : invalid", "f0 maxPods : invalid", "f0 shutdownGracePeriod : invalid",
			},
		},
		{"taints", []string{header + "registerWithTaints: [{key: a, effect: NoSchedule}, {key: b, value: c, effect: NoExecute}]\n"}, []string{
			"f0 registerWithTaints a:NoSchedule,b=c:NoExecute: honoured register-with-taints",
		}},
		{"reserved process IDs", []string{header + "systemReserved: {pid: '1000'}\n", "--kube-reserved=cpu=1,pid=2"}, []string{
			"f0 systemReserved pid=1000: honoured system-reserved", "flags kubeReserved cpu=1,pid=2: honoured system-reserved",
		}},
		{"pods are limited by default", []string{header + "enforceNodeAllocatable: [pods]\n"}, nil},
		{"no limit of all pods", []string{header + "enforceNodeAllocatable: []\n"}, []string{
			"f0 enforceNodeAllocatable none: honoured enforce-node-allocatable",
		}},
		{"no limit of all pods by a flag", []string{header + "enforceNodeAllocatable: [pods]\n", "--enforce-node-allocatable="}, []string{
			"flags enforceNodeAllocatable none: honoured enforce-node-allocatable",
		}},
		{"limits of the system", []string{header + "enforceNodeAllocatable: [pods, system-reserved]\n"}, []string{
			"f0 enforceNodeAllocatable system-reserved: no effect",
		}},
		{"limits of the system only", []string{header + "enforceNodeAllocatable: [kube-reserved-compressible]\n"}, []string{
			"f0 enforceNodeAllocatable kube-reserved-compressible: no effect", "f0 enforceNodeAllocatable none: honoured enforce-node-allocatable",
		}},
		{"fields of taints", []string{header + "registerWithTaints: [{key: a, effect: NoSchedule, x: 1, timeAdded: t}, {key: a, effect: NoExecute, x: 2}]\n"}, []string{
			"f0 registerWithTaints.timeAdded : no effect", "f0 registerWithTaints.x : no effect",
			"f0 registerWithTaints a:NoSchedule,a:NoExecute: honoured register-with-taints",
		}},
		{"taints of another type", []string{header + "registerWithTaints: [{key: a, effect: NoSchedule, value: 1}]\n"}, []string{
			"f0 registerWithTaints : invalid",
		}},
		{"a flag with another sign", []string{"--max_pods=7"}, []string{"flags maxPods 7: honoured max-pods"}},
		{"secrets", []string{header + "staticPodURL: https://u:p@h/x\nstaticPodURLHeader: {Authorization: [Bearer p]}\n"}, []string{
			"f0 staticPodURL (not shown): honoured sources", "f0 staticPodURLHeader (not shown): refused",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, lines(examine(t, c.texts...))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestSettings checks the settings that podctl needs.
func TestSettings(t *testing.T) {
	of := func(texts ...string) map[string]string {
		all := map[string]string{}
		r := examine(t, texts...)
		for _, s := range r.Settings {
			all[s.Name] += s.String()
		}
		return all
	}
	got := of(header + "kubeReserved: {cpu: 500m, memory: 1Gi}\nsystemReserved: {cpu: 250m, pid: '100'}\nserializeImagePulls: false\nmaxParallelImagePulls: 5\n" +
		"staticPodURL: https://u:p@h/x?token=p\n")
	if got["system-reserved"] != "cpu=750m,memory=1Gi,pid=100" || got["max-parallel-pulls"] != "5" || strings.Contains(got["sources"], "p@") ||
		strings.Contains(got["sources"], "token=p") || got["state-dir"] != "/var/lib/kubelet" {
		t.Error(got)
	}
	if got = of(header + "serializeImagePulls: false\n"); got["max-parallel-pulls"] != "0" {
		t.Error(got)
	}
	if got = of(header+"maxPods: 1\n", "token: t\n"); got["max-parallel-pulls"] != "0" || got["eviction-hard"] != "imagefs.available<5%,nodefs.available<5%" ||
		got["tls-cert-file"] != "/var/lib/rancher/k3s/agent/serving-kubelet.crt" || got["runtime-endpoint"] != "unix:///run/k3s/containerd/containerd.sock" {
		t.Error(got)
	}
	if got = of(header + "containerRuntimeEndpoint: unix:///x\n"); got["runtime-endpoint"] != "unix:///x" || got["kubeconfig"] != "" {
		t.Error(got)
	}
}

// TestNotes checks that no value of k3s and no other document is examined or shown.
func TestNotes(t *testing.T) {
	r := examine(t, "token: hunter2\nserver: s\n", "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n")
	text := strings.Join(r.Notes, "\n")
	if !strings.Contains(text, "server, token") || strings.Contains(text, "hunter2") || !strings.Contains(text, "ClusterConfiguration") {
		t.Error(text)
	}
}

// TestNotExamined checks that words and files without a setting are listed, without their text.
func TestNotExamined(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"--fail-swap-on false", "a word that is no flag"},
		{"--nope hunter2", "a word that is no flag"},
		{"[Service]\nExecStart=/bin/sh -c \"exec kubelet --max-pods=3 $hunter2\"\n", "f0 does not start a kubelet itself"},
		{"[Service]\nExecStart=/usr/local/bin/k3s server --token hunter2\n", "keys of k3s were not examined: token"},
		{"[Service]\nExecStart=/usr/local/bin/k3s server\n", "no file has the settings that k3s computes"},
	} {
		text := strings.Join(examine(t, c.text).Notes, "\n")
		if !strings.Contains(text, c.want) || strings.Contains(text, "hunter2") {
			t.Errorf("%s: %s", c.text, text)
		}
	}
	notes := func(texts ...string) string { return strings.Join(examine(t, texts...).Notes, "\n") }
	if got := notes("--max-pods 3 kubelet", "[Service]\nExecStart=-/usr/bin/kubelet --port=1\n", "PATH=/bin\n"); got != "" {
		t.Error(got)
	}
	if got := notes("[Service]\nExecStart=/k3s server --node-name=m\n", "node-name: n\n"); !strings.Contains(got, "f0: node-name replaces that of f1") {
		t.Error(got)
	}
	if got := notes("[Service]\nExecStart=/k3s server --with-node-id\nEnvironment=K3S_NODE_IP=1.2.3.4 K3S_URL=hunter2\n"); !strings.Contains(got, "set node-name") ||
		!strings.Contains(got, "were not examined: K3S_NODE_IP, K3S_URL") {
		t.Error(got)
	}
	if got := notes("--config-dir=d"); !strings.Contains(got, "the path after --config-dir is relative") {
		t.Error(got)
	}
	if got := notes(header + "staticPodURL: https://u:hunter2@h/x\n"); !strings.Contains(got, "staticPodURL: the configuration hides parts") ||
		strings.Contains(got, "hunter2") {
		t.Error(got)
	}
	if got := examine(t, header+"kubeReserved: {cpu: 1}\n").Findings[0].Note; got != "It must have a text in quotes as the value of cpu." {
		t.Error(got)
	}
	if got := notes("kubelet-arg: v=2\n", "kubelet-arg: v=3\n"); !strings.Contains(got, "f1: kubelet-arg replaces that of f0") {
		t.Error(got)
	}
}

// TestK3sDirectories checks the directories of k3s, rke2 and data-dir.
func TestK3sDirectories(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"/etc/rancher/k3s/config.yaml":             {"token: t\n", "/var/lib/rancher/k3s/agent/kubelet.kubeconfig"},
		"/etc/rancher/rke2/config.yaml":            {"token: t\n", "/var/lib/rancher/rke2/agent/kubelet.kubeconfig"},
		"/etc/systemd/system/rke2-agent.service":   {"[Service]\nExecStart=/usr/bin/rke2 agent\n", "/var/lib/rancher/rke2/agent/kubelet.kubeconfig"},
		"/etc/systemd/system/k3s.service.d/x.conf": {"[Service]\nExecStart=/k3s server --data-dir /d\n", "/d/agent/kubelet.kubeconfig"},
	} {
		f := NewFiles()
		if err := f.Add(name, []byte(c.text)); err != nil {
			t.Fatal(err)
		}
		r, found := f.Examine(), false
		for _, s := range r.Settings {
			found = found || s == Setting{"kubeconfig", c.want}
		}
		if !found {
			t.Errorf("%s: %v", name, r.Settings)
		}
	}
}

// TestK3sOrder checks that k3s' own file, its keys, a file of a flag, drop-ins and flags take precedence in this order.
func TestK3sOrder(t *testing.T) {
	const dir = "/var/lib/rancher/k3s/agent/etc/kubelet.conf.d/"
	f := NewFiles()
	for _, file := range []struct{ name, text string }{
		{"/etc/rancher/k3s/config.yaml", "node-taint: a=k:NoSchedule\nresolv-conf: /k\nprotect-kernel-defaults: true\nkubelet-arg: [config=/a, config-dir=/b, port=6]\n"},
		{dir + "50.conf", header + "maxPods: 5\nport: 5\nclusterDomain: five\n"},
		{dir + "00-k3s-defaults.conf", header + "maxPods: 0\nresolvConf: /old\nclusterDomain: zero\nprotectKernelDefaults: false\n"},
		{"/a", header + "maxPods: 1\nresolvConf: /one\n"},
		{"/b/x.conf", header + "maxPods: 2\nproviderID: two\n"},
	} {
		if err := f.Add(file.name, []byte(file.text)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"/etc/rancher/k3s/config.yaml registerWithTaints a=k:NoSchedule: honoured register-with-taints",
		"/etc/rancher/k3s/config.yaml protectKernelDefaults true: no effect",
		"/a resolvConf /one: no effect", dir + "50.conf clusterDomain five: honoured cluster-domain", dir + "50.conf maxPods 5: honoured max-pods",
		"/etc/rancher/k3s/config.yaml port 6: honoured port", "/b/x.conf providerID two: honoured provider-id",
	}
	if diff := cmp.Diff(want, lines(f.Examine())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestUnused checks which usual files a command line replaces.
func TestUnused(t *testing.T) {
	for _, c := range []struct {
		name, text, path string
		want             bool
	}{
		{"kubelet.service", "[Service]\nExecStart=/kubelet --config=/etc/k.yaml\n", "/var/lib/kubelet/config.yaml", true},
		{"kubelet.service", "[Service]\nExecStart=/bin/sh -c x\n", "/var/lib/kubelet/config.yaml", false},
		{"k3s.service", "[Service]\nExecStart=/k3s server\n", "/var/lib/kubelet/config.yaml", true},
		{"kubelet.service", "[Service]\nExecStart=/kubelet\n", "/etc/rancher/k3s/config.yaml", false},
		{"k3s.service", "[Service]\nExecStart=/k3s server -c /c\n", "/etc/rancher/k3s/config.yaml", true},
		{"k3s.service", "[Service]\nExecStart=/k3s server -c /c\n", "/etc/rancher/rke2/config.yaml", false},
		{"k3s.service", "[Service]\nEnvironment=K3S_CONFIG_FILE=/c\nExecStart=/k3s server -c /etc/rancher/k3s/config.yaml\n", "/etc/rancher/k3s/config.yaml.d", true},
		{"k3s.service", "[Service]\nExecStart=/k3s server -c /etc/rancher/k3s/config.yaml\n", "/etc/rancher/k3s/config.yaml.d", false},
	} {
		f := NewFiles()
		if err := f.Add(c.name, []byte(c.text)); err != nil || f.Unused(c.path) != c.want {
			t.Errorf("%s: %v, want %t", c.text, err, c.want)
		}
	}
}

// TestNamed checks which files are read too.
func TestNamed(t *testing.T) {
	f := NewFiles()
	unit := "[Service]\nEnvironmentFile=-/a/flags.env\nExecStart=/kubelet --config /a/config.yaml --config-dir=/a/d --config=relative\n"
	if err := f.Add("u", []byte(unit)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/a/flags.env", "/a/d"}, f.Named()); diff != "" {
		t.Error(diff)
	}
	f = NewFiles()
	if err := f.Add("/x/k3s.service.d/y.conf", []byte("[Service]\nEnvironmentFile=-/d/%N\nExecStart=/k3s server --config /c\n")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/d/k3s", "/c", "/c.d"}, f.Named()); diff != "" {
		t.Error(diff)
	}
	if f = NewFiles(); f.Add("u", []byte(strings.ReplaceAll(unit, " --config=relative", ""))) != nil || len(f.Named()) != 3 {
		t.Error(f.Named())
	}
}

// TestRefusedFiles checks files that are not read.
func TestRefusedFiles(t *testing.T) {
	for name, text := range map[string]string{
		"large":                      strings.Repeat("# a\n", MaxBytes/4+1),
		"another version":            strings.Replace(header, "v1beta1", "v1", 1),
		"not YAML":                   "a: [",
		"a key twice":                header + "maxPods: 1\nmaxPods: 2\n",
		"a quote that is not closed": "A=\"--x\n",
		"a unit with such a quote":   "[Service]\nEnvironment=\"A\n",
		"aliases that expand":        "a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n",
		"a map for k3s":              "kubelet-arg: [{a: b}]\n",
		"a key that k3s cannot have": "root:$6$hunter2:20228:0:99999:7:::\n",
		"many words":                 "A=" + strings.Repeat("a ", wordsMax+2),
	} {
		if err := NewFiles().Add("f", []byte(text)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	f := NewFiles()
	if err := f.Add("f", []byte("A=\""+strings.Repeat("a ", wordsMax+2)+"\"\n")); err != nil || f.Check() == nil {
		t.Errorf("many words in quotes: %v %v", err, f.Check())
	}
	// A variable that a unit uses many times.
	f = NewFiles()
	text := "[Service]\nEnvironment=\"A=" + strings.Repeat("a ", 100) + "\"\nExecStart=/k " + strings.Repeat("$A ", 100) + "\n"
	if err := f.Add("f", []byte(text)); err != nil || f.Check() == nil {
		t.Errorf("many words: %v %v", err, f.Check())
	}
}

// FuzzFiles checks that no text makes the program fail.
func FuzzFiles(f *testing.F) {
	f.Add(header+"maxPods: 1\nevictionHard: {a: b}\n", "--max-pods 3 --v=1")
	f.Add("[Service]\nEnvironment=\"A=b\"\nExecStart=/k $A ${A}\n", "--node-labels a=b")
	f.Add("kubelet-arg: [a=b]\ntoken: t\n", "-v 3")
	f.Add("A='--b c'\n", "")
	f.Fuzz(func(t *testing.T, text, line string) {
		files := NewFiles()
		if files.Add("f", []byte(text)) != nil {
			return
		}
		if words, err := Words(line); err == nil {
			files.AddArguments("flags", words)
		}
		_ = files.Check()
		_ = files.Named()
		r := files.Examine()
		for i := range r.Findings {
			if r.Findings[i].Name == "" || r.Findings[i].Result == "" {
				t.Errorf("%+v", r.Findings[i])
			}
		}
	})
}
