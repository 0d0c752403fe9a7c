package kubernetes

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	imageutils "k8s.io/kubernetes/test/utils/image"
)

const (
	kubeletDir       = "/var/lib/kubelet"
	containerdDir    = "/run/containerd"
	containerdSocket = containerdDir + "/containerd.sock"
	networkDir       = containerdDir + "/net.d"
	// conformanceEviction is what Kubernetes' tests give their own kubelet.
	conformanceEviction = "memory.available<250Mi,nodefs.available<1%,nodefs.inodesFree<1%"
)

// suite is what TestConformance reads from the environment.
type suite struct {
	// bin is the directory of the programs of Kubernetes, and sources the directory test/images of its source.
	bin, sources string
	// report is the directory for results and logs.
	report string
	// group and pattern select specs.
	group, pattern string
	// parallel is the number of specs that run at the same time.
	parallel int
	// flags are more flags of the tests.
	flags []string
}

// newSuite reads the environment, and returns the selected specs as well.
func newSuite(t *testing.T, all []spec, parallel int) (*suite, []spec) {
	t.Helper()
	s := &suite{
		bin: setting(t, "KUBERNETES_BIN"), sources: setting(t, "KUBERNETES_IMAGES"), report: setting(t, "CONFORMANCE_REPORT"),
		group: os.Getenv("CONFORMANCE_GROUP"), pattern: os.Getenv("CONFORMANCE_SPEC"), parallel: parallel,
	}
	chosen, err := selectSpecs(all, s.group, s.pattern)
	if err = errors.Join(err, os.RemoveAll(s.report), os.MkdirAll(s.report, 0o755)); err != nil {
		t.Fatal(err)
	}
	return s, chosen
}

// TestConformance runs Kubernetes' node tests against podctl agent. It fails if a spec that testdata/specs.txt expects
// to pass does not pass.
func TestConformance(t *testing.T) {
	s, chosen := newSuite(t, listedSpecs(t), 4)
	var outcomes []outcome
	// A subtest, so that its cleanup shows the logs only if the specs could not run.
	if !t.Run("suite", func(t *testing.T) { outcomes = s.run(t, chosen) }) {
		return
	}
	s.write(t, outcomes)
	broken, surprising, expected := judge(chosen, outcomes)
	for _, name := range surprising {
		t.Logf("PASSED, but %s does not expect it: %s", specsFile, name)
	}
	for _, line := range broken {
		t.Errorf("FAILED %s", line)
	}
	if len(outcomes) == 0 {
		t.Errorf("no spec matches %q", s.pattern)
	}
	t.Logf("%d of %d specs that must pass have passed; %d specs ran; reports are in %s",
		expected-len(broken), expected, len(outcomes), s.report)
}

// run starts a containerd, the API server and podctl agent, and returns the outcomes of the specs.
func (s *suite) run(t *testing.T, chosen []spec) []outcome {
	programs, err := given()
	if err != nil {
		t.Fatal(err)
	}
	n := &node{needed: programs}
	images := n.serveImages(t, s)
	write(t, filepath.Join(networkDir, "10-pods.conflist"), networkConfig)
	n.startContainerd(t, s.report)
	pull(t, images)
	api := n.startServer(t)
	agent := n.startAgent(t, api, s.report, "--state-dir", kubeletDir, "--runtime-endpoint", "unix://"+containerdSocket,
		"--eviction-hard", conformanceEviction)
	api.awaitNode(t, agent)
	return s.runSpecs(t, chosen)
}

// serveImages serves the images of the specs.
func (n *node) serveImages(t *testing.T, s *suite) *registry {
	t.Helper()
	images := &registry{dir: t.TempDir(), manifests: map[string]string{}}
	n.addImages(t, images, s.bin, s.sources)
	images.serve(t)
	return images
}

// containerdConfig has the runtime handler that the specs of RuntimeClasses name. All pulls go to the registry of the
// tests.
const containerdConfig = `version = 3
root = "/var/lib/containerd"
state = "%[1]s"
[grpc]
  address = "%[2]s"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = %[3]q
[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = "%[1]s/registries"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = %[4]t
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["/var/lib/cni/bin", "/opt/cni/bin", "/usr/lib/cni"]
    conf_dir = "%[1]s/net.d"
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    options = {SystemdCgroup = %[5]t}
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.test-handler]
    runtime_type = "io.containerd.runc.v2"
    options = {SystemdCgroup = %[5]t}
`

// containerd1Config is the same for containerd 1.
const containerd1Config = `version = 2
root = "/var/lib/containerd"
state = "%[1]s"
[grpc]
  address = "%[2]s"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %[3]q
  restrict_oom_score_adj = %[4]t
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "%[1]s/registries"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/var/lib/cni/bin"
    conf_dir = "%[1]s/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.test-handler]
    runtime_type = "io.containerd.runc.v2"
`

const pullsConfig = `[host."http://%s"]
  capabilities = ["pull", "resolve"]
`

const networkConfig = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "pods0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.88.0.0/16"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
`

// hasContainerd1 reports whether the runtime is containerd 1.
func (n *node) hasContainerd1(t *testing.T) bool {
	t.Helper()
	version, err := exec.CommandContext(t.Context(), n.containerd, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(` v?1\.`).Match(version)
}

// startContainerd starts containerd. Its network configuration is in networkDir.
func (n *node) startContainerd(t *testing.T, logs string) *process {
	t.Helper()
	config := filepath.Join(containerdDir, "config.toml")
	// The capability to lower the out-of-memory score of a process.
	capable, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, unix.CAP_SYS_RESOURCE, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	text := containerdConfig
	if n.hasContainerd1(t) {
		text = containerd1Config
	}
	pause := imageutils.GetE2EImage(imageutils.Pause)
	write(t, config, fmt.Sprintf(text, containerdDir, containerdSocket, pause, capable == 0, false))
	write(t, filepath.Join(containerdDir, "registries/_default/hosts.toml"), fmt.Sprintf(pullsConfig, registryAddress))
	cmd := exec.Command(n.containerd, "--config", config) //nolint:noctx // a signal ends it
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(n.containerd)+":"+os.Getenv("PATH"))
	return start(t, filepath.Join(logs, "containerd.log"), cmd)
}

// pull pulls all images, so that no spec waits for a pull of an image that exists.
func pull(t *testing.T, images *registry) {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+containerdSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // it was read
	client := runtimeapi.NewImageServiceClient(conn)
	for name := range images.manifests {
		until(t, func() string {
			_, err := client.PullImage(t.Context(), &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: name}})
			if err != nil {
				return fmt.Sprintf("cannot pull %s: %v", name, err)
			}
			return ""
		})
	}
}

// runSpecs runs Ginkgo and returns the outcomes of the specs.
func (s *suite) runSpecs(t *testing.T, chosen []spec) []outcome {
	t.Helper()
	pattern, what := focus(chosen), fmt.Sprintf("%d specs", len(chosen))
	if len(chosen) == 0 {
		pattern, what = s.pattern, "specs outside of "+specsFile+" that match "+s.pattern
	}
	dir := t.TempDir()
	args := []string{
		"run", "--procs=" + strconv.Itoa(s.parallel), "--no-color", "--timeout=5h", "--focus=" + pattern,
		"--output-dir=" + s.report, "--json-report=report.json", filepath.Join(s.bin, "e2e_node.test"), "--",
		"--start-services=false", "--prepull-images=false", "--config-dir=" + dir, "--bearer-token=" + token,
		"--host=" + serverURL, "--node-name=" + nodeName, "--container-runtime-endpoint=unix://" + containerdSocket,
		"--image-service-endpoint=unix://" + containerdSocket,
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(s.bin, "ginkgo"), append(args, s.flags...)...)
	cmd.Dir = dir
	log, err := os.Create(filepath.Join(s.report, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // Ginkgo has it
	cmd.Stdout, cmd.Stderr = log, log
	t.Logf("running %s; %s grows", what, log.Name())
	failed := cmd.Run() // also if a spec fails
	text, err := os.ReadFile(filepath.Join(s.report, "report.json"))
	if err != nil {
		t.Fatalf("Ginkgo wrote no report (%v): %v", failed, err)
	}
	outcomes, err := readReport(text)
	if err != nil {
		t.Fatal(err)
	}
	return outcomes
}

// write writes passed.txt, and failed.txt with the reasons.
func (s *suite) write(t *testing.T, outcomes []outcome) {
	t.Helper()
	var passing, failing strings.Builder
	for _, o := range outcomes {
		if o.state == passed {
			fmt.Fprintln(&passing, o.name)
		} else {
			fmt.Fprintf(&failing, "%s\t%s: %s\n", o.name, o.state, o.reason)
		}
	}
	write(t, filepath.Join(s.report, "passed.txt"), passing.String())
	write(t, filepath.Join(s.report, "failed.txt"), failing.String())
}
