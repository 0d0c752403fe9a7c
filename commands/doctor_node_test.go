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
		"config.yaml":              kubeletHeader + "maxPods: 50\npodPidsLimit: 100\nstaticPodPath: DIR/pods\nclusterDNS: [10.96.0.10]\n",
	})
	code, stdout, stderr := call(t, "", "doctor", "--node", filepath.Join(dir, "kubelet.service.d"))
	for _, want := range []string{
		"  ✓ maxPods: 50 → --max-pods\n", "  ! podPidsLimit: 100 has no effect. podctl sets no limit", "absent does not exist",
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

// TestKubeletFiles checks that drop-ins follow the units of all directories, as in systemd.
func TestKubeletFiles(t *testing.T) {
	files := kubeletFiles()
	dropIn := slices.IndexFunc(files, func(path string) bool { return strings.HasSuffix(path, ".service.d") })
	unit := slices.Index(files, "/etc/systemd/system/kubelet.service")
	if unit < 0 || dropIn < unit {
		t.Errorf("the drop-ins are at %d, and the last unit is at %d", dropIn, unit)
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
	if results["runOnce"] != kubeletconf.Refused || results["systemReserved"] != kubeletconf.Invalid || results["--nope"] != kubeletconf.Invalid ||
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
