package kubernetes

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	imageutils "k8s.io/kubernetes/test/utils/image"
)

const (
	vmConformanceMemory = 3072
	// vmBatch is the number of specs after which another program becomes the node.
	vmBatch = 12
	// vmHost is this machine, as the emulated machine sees it.
	vmHost   = "10.0.2.2"
	coreFile = "testdata/core.txt"
)

// vmRuntime starts containerd with the configuration of TestConformance and the systemd driver.
const vmRuntime = `set -e
systemctl mask --now containerd.service
mkdir -p /opt/node/manifests ` + containerdDir + `
cp /mnt/share/files/* /opt/node
chmod 600 /opt/node/kubeconfig
cp -r /mnt/share/containerd/* ` + containerdDir + `
systemd-run --unit=runtime --property=Delegate=yes --property=KillMode=process --setenv=PATH="/opt/node:$PATH:/usr/sbin" \
	/opt/node/containerd --config ` + containerdDir + `/config.toml
until [ -S ` + containerdSocket + ` ]; do sleep 1; done
`

const vmKubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: /opt/node/manifests
containerRuntimeEndpoint: unix://` + containerdSocket + `
cgroupDriver: systemd
makeIPTablesUtilChains: false
evictionHard: {memory.available: 250Mi, nodefs.available: 1%, nodefs.inodesFree: 1%}
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
`

// vmPrograms are the programs that become the node, and their arguments.
var vmPrograms = map[string]string{
	"podctl": "/opt/node/podctl agent --kubeconfig /opt/node/kubeconfig --node-name " + nodeName + " --node-ip " + vmIP +
		" --authorization-mode AlwaysAllow --state-dir " + kubeletDir + " --runtime-endpoint unix://" + containerdSocket +
		" --eviction-hard '" + conformanceEviction + "' /opt/node/manifests",
	"kubelet": "/opt/node/kubelet --config /opt/node/kubelet.yaml --kubeconfig /opt/node/kubeconfig --root-dir " + kubeletDir +
		" --cert-dir " + kubeletDir + "/pki --hostname-override " + nodeName + " --node-ip " + vmIP,
}

// vmSuite runs specs on the nodes of an emulated machine. Results are in the report as soon as a batch has ended.
type vmSuite struct {
	*suite

	m *vm
	// program is the node; empty at the beginning.
	program string
	batches int
	// outcomes has the last outcome of each spec, by program and name.
	outcomes map[string]map[string]outcome
}

// TestMachineConformance runs the core of Kubernetes' node tests on an emulated machine with cgroup v2 and systemd,
// against podctl agent and against a kubelet. The machine is so slow that specs fail for their own timeouts. The test
// fails if a spec passes with the kubelet and fails twice with podctl.
func TestMachineConformance(t *testing.T) {
	programs, err := given()
	if err != nil {
		t.Fatal(err)
	}
	list := coreSpecs(t)
	if os.Getenv("CONFORMANCE_GROUP")+os.Getenv("CONFORMANCE_SPEC") != "" {
		list = listedSpecs(t)
	}
	base, chosen := newSuite(t, list, 3)
	batches := slices.Collect(slices.Chunk(chosen, vmBatch))
	if len(chosen) == 0 {
		batches = [][]spec{nil} // the pattern selects from all specs of Kubernetes
	}
	base.expectVersion2(t)
	n := &node{needed: programs}
	api, images := n.startServer(t), n.serveImages(t, base)
	m := bootVM(t, api, vmConformanceMemory, n.podctl, n.podctl+"-node")
	m.startRuntime(t, images)
	s := &vmSuite{suite: base, m: m, outcomes: map[string]map[string]outcome{"podctl": {}, "kubelet": {}}}
	end, order := vmEnd(t), []string{"podctl", "kubelet"}
	for _, batch := range batches {
		if time.Now().After(end) {
			break
		}
		for _, program := range order {
			s.runBatch(t, program, batch)
		}
		slices.Reverse(order) // the next batch begins with the same node
	}
	if again := s.worse(); len(again) > 0 {
		s.runBatch(t, "podctl", again)
	}
	for _, missed := range s.worse() {
		t.Errorf("FAILED twice with podctl, passed with a kubelet: %s", missed.name)
	}
	s.summarize(t, len(chosen))
}

// expectVersion2 makes the specs expect a node with cgroup v2. They look for the version on their own machine, which has
// to meet no other requirement.
func (s *suite) expectVersion2(t *testing.T) {
	t.Helper()
	if err := mount("cgroup2", cgroupsDir, "cgroup2", 0, ""); err != nil {
		t.Fatal(err)
	}
	requirements := filepath.Join(t.TempDir(), "requirements.yaml")
	write(t, requirements, "os: Linux\nkernelSpec: {versions: [.]}\n")
	s.flags = []string{"--system-spec-file=" + requirements}
}

// vmEnd returns the time after which no batch starts.
func vmEnd(t *testing.T) time.Time {
	t.Helper()
	limit, err := time.ParseDuration(setting(t, "VM_TIME"))
	if err != nil {
		t.Fatal(err)
	}
	return time.Now().Add(limit)
}

// coreSpecs returns the specs in testdata/core.txt in their order.
func coreSpecs(t *testing.T) []spec {
	t.Helper()
	byName := map[string]spec{}
	for _, s := range listedSpecs(t) {
		byName[s.name] = s
	}
	var core []spec
	for line := range strings.Lines(read(t, coreFile)) {
		name := strings.TrimSpace(line)
		if strings.HasPrefix(name, "#") {
			continue
		}
		s, known := byName[name]
		if !known {
			t.Fatalf("%s has %q, %s has not", coreFile, name, specsFile)
		}
		core = append(core, s)
	}
	return core
}

func TestCoreSpecs(t *testing.T) {
	core := coreSpecs(t)
	if len(core) != 199 {
		t.Errorf("%d specs, want 199", len(core))
	}
}

func TestWorse(t *testing.T) {
	s := &vmSuite{outcomes: map[string]map[string]outcome{
		"podctl":  {"a": {state: passed}, "b": {state: "failed"}, "c": {state: "failed"}, "d": {state: passed}},
		"kubelet": {"a": {state: passed}, "b": {state: passed}, "c": {state: "failed"}, "d": {state: "failed"}, "e": {state: passed}},
	}}
	if got, want := s.worse(), []spec{{name: "b"}, {name: "e"}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// startRuntime starts containerd in the machine and pulls the images.
func (m *vm) startRuntime(t *testing.T, images *registry) {
	t.Helper()
	_, port, _ := strings.Cut(registryAddress, ":")
	pause := imageutils.GetE2EImage(imageutils.Pause)
	for name, text := range map[string]string{
		"files/kubeconfig":                          read(t, filepath.Join(m.share, "kubeconfig")),
		"files/kubelet.yaml":                        vmKubeletConfig,
		"containerd/config.toml":                    fmt.Sprintf(containerdConfig, containerdDir, containerdSocket, pause, false, true),
		"containerd/registries/_default/hosts.toml": fmt.Sprintf(pullsConfig, vmHost+":"+port),
		"containerd/net.d/10-pods.conflist":         networkConfig,
	} {
		write(t, filepath.Join(m.share, name), text)
	}
	m.run(t, vmRuntime)
	for name := range images.manifests {
		m.run(t, "/opt/node/podctl image pull --runtime-endpoint unix://"+containerdSocket+" "+name)
	}
}

// become makes a program the node, and waits until the API server reaches it and it has read the driver of the cgroups.
func (s *vmSuite) become(t *testing.T, program string) {
	t.Helper()
	if s.program == program {
		return
	}
	s.program = program
	s.m.run(t, "systemctl stop node.service || true\n"+
		"systemd-run --unit=node --property=KillMode=process --setenv=PATH=\"/opt/node:$PATH:/usr/sbin\" "+vmPrograms[program])
	s.m.until(t, func() string {
		text, err := fetch(t.Context(), serverURL+"/api/v1/nodes/"+nodeName+"/proxy/configz", token)
		if err != nil || !strings.Contains(string(text), `"cgroupDriver":"systemd"`) {
			return fmt.Sprintf("%s: %v %s\n%s", program, err, text, s.m.run(t, "journalctl --no-pager -n 20 -u node.service"))
		}
		return ""
	})
	s.m.awaitNode(t)
}

// runBatch runs specs on a program, and adds the results to results.txt.
func (s *vmSuite) runBatch(t *testing.T, program string, specs []spec) {
	t.Helper()
	s.become(t, program)
	s.batches++
	batch := *s.suite
	batch.report = filepath.Join(s.report, fmt.Sprintf("%02d-%s", s.batches, program))
	if err := os.Mkdir(batch.report, 0o755); err != nil {
		t.Fatal(err)
	}
	s.record(t, program, batch.runSpecs(t, specs))
	write(t, filepath.Join(batch.report, "node.log"),
		s.m.run(t, "journalctl --no-pager --cursor-file=/run/node.cursor -u node.service -u runtime.service"))
}

// record keeps outcomes, and adds them to results.txt.
func (s *vmSuite) record(t *testing.T, program string, outcomes []outcome) {
	t.Helper()
	results, err := os.OpenFile(filepath.Join(s.report, "results.txt"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer results.Close() //nolint:errcheck // each write is checked
	for _, o := range outcomes {
		s.outcomes[program][o.name] = o
		if _, err = fmt.Fprintf(results, "%s\t%s\t%.0f s\t%s\t%s\n", program, o.state, o.took.Seconds(), o.name, o.reason); err != nil {
			t.Fatal(err)
		}
	}
}

// worse returns the specs that have passed with the kubelet and not with podctl.
func (s *vmSuite) worse() []spec {
	var specs []spec
	for _, name := range slices.Sorted(maps.Keys(s.outcomes["kubelet"])) {
		if s.outcomes["kubelet"][name].state == passed && s.outcomes["podctl"][name].state != passed {
			specs = append(specs, spec{name: name})
		}
	}
	return specs
}

// summarize logs how many specs have passed, and how long they took.
func (s *vmSuite) summarize(t *testing.T, chosen int) {
	t.Helper()
	for program, outcomes := range s.outcomes {
		passing, took := 0, time.Duration(0)
		for _, o := range outcomes {
			took += o.took
			if o.state == passed {
				passing++
			}
		}
		t.Logf("%s: %d of %d specs passed in %s; %d were not run", program, passing, len(outcomes), took.Round(time.Second),
			max(0, chosen-len(outcomes)))
	}
	t.Logf("results are in %s", filepath.Join(s.report, "results.txt"))
}
