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
		if strings.HasPrefix(text, "--") {
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
		if f.Origin != defaultOrigin && f.Result != Same {
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
		{"results", []string{header + "maxPods: 50\npodPidsLimit: 10\nrunOnce: true\npodCIDRs: a\nport: x\ncgroupsPerQOS: true\n"}, []string{
			"f0 maxPods 50: honoured max-pods", "f0 podCIDRs : invalid", "f0 podPidsLimit 10: no effect", "f0 port : invalid",
			"f0 runOnce true: refused",
		}},
		{"empty values are defaults", []string{header + "syncFrequency: 0s\nlogging: {}\nclusterDNS: []\nevictionHard: {}\npodCIDR: ''\ntracing:\n"}, nil},
		{"equal values", []string{header + "nodeStatusReportFrequency: 300s\nauthentication: {anonymous: {enabled: false}}\n"}, nil},
		{"a map in place of a value", []string{header + "maxPods: {a: 1}\nauthentication: 3\nclusterDNS: a\nfeatureGates: {A: {}}\n"}, []string{
			"f0 authentication : invalid", "f0 clusterDNS : invalid", "f0 featureGates : invalid", "f0 maxPods : invalid",
		}},
		{"an unknown field below a known one", []string{header + "logging: {options: {text: {x: 1}}}\nauthentication: {x509: {ca: 1}}\n"}, []string{
			"f0 authentication.x509.ca : invalid", "f0 logging.options.text.x : invalid",
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
				"f0 maxPods 9: honoured max-pods", "f0 port 2: honoured port", "f0 --node-labels a=b,c=d: honoured node-labels",
				"f1 registerWithTaints a=b:NoSchedule: honoured register-with-taints",
			},
		},
		{"taints", []string{header + "registerWithTaints: [{key: a, effect: NoSchedule}, {key: b, value: c, effect: NoExecute}]\n"}, []string{
			"f0 registerWithTaints a:NoSchedule,b=c:NoExecute: honoured register-with-taints",
		}},
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
	if got = of(header+"maxPods: 1\n", "token: t\n"); got["max-parallel-pulls"] != "1" || got["runtime-endpoint"] != "unix:///run/k3s/containerd/containerd.sock" {
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
