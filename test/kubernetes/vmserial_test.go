package kubernetes

import (
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// vmSerial makes a program a unit that the serial specs find, stop, and start with another configuration. podctl runs
// with the configuration that "podctl doctor --node" prints for that of the kubelet.
const vmSerial = `set -e
cd /opt/node
cat >/usr/local/bin/sudo <<'END'
#!/bin/sh
exec "$@"
END
cat >start <<'END'
#!/bin/sh
cd /opt/node
if [ "$(cat program)" = kubelet ]; then
	exec ./kubelet --config kubelet-config --kubeconfig kubeconfig --root-dir ` + kubeletDir + ` \
		--cert-dir ` + kubeletDir + `/pki --hostname-override ` + nodeName + ` --node-ip ` + vmIP + `
fi
./podctl doctor --node kubelet-config >doctor.log 2>&1 || { cat doctor.log; exit 1; }
sed -n '/^agent:/,/^$/p' doctor.log >config.yaml
exec ./podctl agent --config config.yaml --kubeconfig kubeconfig --node-name ` + nodeName + ` --node-ip ` + vmIP + ` \
	--state-dir ` + kubeletDir + ` --listen 127.0.0.1:10248
END
cat >/run/systemd/system/kubelet-node.service <<'END'
[Service]
Environment=PATH=/opt/node:/usr/sbin:/usr/bin:/sbin:/bin
ExecStart=/opt/node/start
KillMode=process
END
chmod 755 start /usr/local/bin/sudo
systemctl daemon-reload
`

// serialConfig are the settings beside those of the core, which some serial specs need.
const serialConfig = "readOnlyPort: 10255\nhealthzPort: 10248\n"

// TestMachineSerial runs specs that change, fill or restart the node in an emulated machine with cgroup v2 and systemd,
// one at a time, with podctl agent and with a kubelet. Ginkgo runs in the machine too. The test fails if a spec passes
// with the kubelet and not with podctl.
func TestMachineSerial(t *testing.T) {
	programs, err := given()
	if err != nil {
		t.Fatal(err)
	}
	base, _ := newSuite(t, nil, 1)
	if base.pattern == "" {
		t.Fatal("set SPEC: all specs would take days")
	}
	n := &node{needed: programs}
	api, images := n.startServer(t), n.serveImages(t, base)
	m := bootVM(t, api, vmConformanceMemory, n.podctl, n.podctl+"-node",
		filepath.Join(base.bin, "ginkgo"), filepath.Join(base.bin, "e2e_node.test"))
	m.startRuntime(t, images)
	m.run(t, vmSerial)
	s := &vmSuite{suite: base, m: m, outcomes: map[string]map[string]outcome{"podctl": {}, "kubelet": {}}}
	for _, program := range []string{"podctl", "kubelet"} {
		s.runSerial(t, program)
	}
	for _, missed := range s.worse() {
		t.Errorf("FAILED with podctl, passed with a kubelet: %s", missed.name)
	}
	s.summarize(t, 0)
}

// runSerial runs the specs on a program, at most until VM_TIME has passed.
func (s *vmSuite) runSerial(t *testing.T, program string) {
	t.Helper()
	s.m.run(t, "systemctl stop kubelet-node || true\ncd /opt/node\necho "+program+" >program\ncp kubelet.yaml kubelet-config\n"+
		"cat >>kubelet-config <<END\n"+serialConfig+"END\nsystemctl start kubelet-node")
	s.m.awaitNode(t)
	report := filepath.Join(s.m.share, program)
	write(t, filepath.Join(report, "specs.sh"), s.serialScript(program))
	s.m.run(t, "systemd-run --unit=specs --setenv=HOME=/root sh /mnt/share/"+program+"/specs.sh")
	t.Logf("running specs on %s; %s grows", program, filepath.Join(report, "log"))
	for end := vmEnd(t); time.Now().Before(end) && unix.Access(filepath.Join(report, "ended"), unix.F_OK) != nil; {
		time.Sleep(time.Second)
		s.m.qemu.alive(t)
	}
	// Ginkgo writes its report also after a signal.
	write(t, filepath.Join(s.report, program+".node.log"), s.m.run(t, "systemctl stop specs || true\n"+
		"journalctl --no-pager --cursor-file=/run/node.cursor -u kubelet-node.service"))
	s.m.copy(t, filepath.Join(s.report, program+".log"), filepath.Join(report, "log"))
	outcomes, err := readReport([]byte(read(t, filepath.Join(report, "report.json"))))
	if err != nil {
		t.Fatal(err)
	}
	s.record(t, program, outcomes)
}

// serialScript runs Ginkgo in the machine. Its last file is "ended".
func (s *vmSuite) serialScript(program string) string {
	return "cd /opt/node\nexport PATH=/opt/node:$PATH:/usr/sbin\nginkgo run --procs=1 --no-color --timeout=5h --focus='" + s.pattern +
		"' --output-dir=/mnt/share/" + program + " --json-report=report.json ./e2e_node.test -- --start-services=false " +
		"--prepull-images=false --config-dir=/opt/node/config.d --bearer-token=" + token + " --host=" + vmServer +
		" --node-name=" + nodeName + " --container-runtime-endpoint=unix://" + containerdSocket +
		" --image-service-endpoint=unix://" + containerdSocket + " >/mnt/share/" + program + "/log 2>&1\n" +
		"touch /mnt/share/" + program + "/ended\n"
}
