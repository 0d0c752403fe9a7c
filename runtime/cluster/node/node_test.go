package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/admission"
	"github.com/podctl/podctl/runtime/agent"
	"github.com/podctl/podctl/runtime/agent/daemon"
	"github.com/podctl/podctl/runtime/agent/eviction"
	"github.com/podctl/podctl/runtime/agent/housekeeping"
	"github.com/podctl/podctl/runtime/cluster"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/imageaccess"
	"github.com/podctl/podctl/runtime/kubeletconf"
	"github.com/podctl/podctl/runtime/logfile"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
)

// TestSettings checks that settings of the user are kept, and which names are refused.
func TestSettings(t *testing.T) {
	own := daemon.ClusterSettings{NodeName: "n1", NodeIPs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}
	if s := own; completeSettings(&s) != nil || s.NodeName != "n1" || len(s.NodeIPs) != 1 {
		t.Errorf("%+v", s)
	}
	bad := daemon.ClusterSettings{NodeName: "a_b", NodeIPs: own.NodeIPs}
	if err := completeSettings(&bad); err == nil || !strings.Contains(err.Error(), `"a_b" cannot be the name of a Node`) {
		t.Error(err)
	}
	unnamed := daemon.ClusterSettings{NodeIPs: own.NodeIPs}
	if err := completeSettings(&unnamed); err != nil || unnamed.NodeName != hostName() {
		t.Errorf("%q, %v", unnamed.NodeName, err)
	}
}

// TestCheck checks which errors a node reports before its agent restarts, and that the check leaves no file.
func TestCheck(t *testing.T) {
	valid := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{clusters: [{name: c, cluster: {server: "https://a:1"}}], users: [{name: u, user: {token: t}}],
  contexts: [{name: x, context: {cluster: c, user: u}}], current-context: x}`
	if err := os.WriteFile(valid, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(t.TempDir(), "state")
	for want, s := range map[string]daemon.ClusterSettings{
		"":                             {Kubeconfig: valid, NodeName: "n1"},
		"/absent: no such file":        {Kubeconfig: "/absent", NodeName: "n1"},
		"cannot be the name of a Node": {Kubeconfig: valid, NodeName: "a_b"},
		"/absent.crt: no such file":    {Kubeconfig: valid, NodeName: "n1", Server: daemon.ServerSettings{CertFile: "/absent.crt", KeyFile: "k"}},
		"/absent-ca.crt: no such file": {Kubeconfig: valid, NodeName: "n1", Server: daemon.ServerSettings{ClientCAFile: "/absent-ca.crt"}},
		"/absent-token: no such file":  {Kubeconfig: "/absent", Bootstrap: "/absent-token", NodeName: "n1"},
	} {
		s.NodeIPs = []netip.Addr{netip.MustParseAddr("192.0.2.1")}
		err := Check(&daemon.Settings{
			Layout: state.Layout{Root: root}, Cluster: &s, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		})
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := os.Stat(root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the check has created the state directory: %v", err)
	}
}

// TestPreparation checks which steps the start of a container soon follows. The status shows all others at once.
func TestPreparation(t *testing.T) {
	for _, c := range []struct {
		kind    executor.EventKind
		step    plan.Step
		prepare bool
	}{
		{executor.StepStarted, plan.Step{Kind: plan.CreateCgroup}, true},
		{executor.StepDone, plan.Step{Kind: plan.RunSandbox}, true},
		{executor.StepFailed, plan.Step{Kind: plan.RunSandbox}, false},
		{executor.StepProgress, plan.Step{Kind: plan.PullImage}, true},
		{executor.StepStarted, plan.Step{Kind: plan.StartContainer}, true},
		{executor.StepDone, plan.Step{Kind: plan.StartContainer}, false},
		{executor.StepStarted, plan.Step{Kind: plan.StartContainer, Attempt: 1}, false},
		{executor.StepStarted, plan.Step{Kind: plan.StopSandbox}, false},
	} {
		e := &agent.Event{Kind: agent.Stepped, Step: executor.Event{Kind: c.kind, Step: &c.step}}
		if got := isPreparation(e); got != c.prepare {
			t.Errorf("%s %s, attempt %d: %t", c.step.Kind, c.kind, c.step.Attempt, got)
		}
	}
	for _, e := range []*agent.Event{{Kind: agent.Passed}, {Kind: agent.Stepped, Step: executor.Event{Kind: executor.Warning}}} {
		if isPreparation(e) {
			t.Errorf("%+v", e)
		}
	}
}

// TestListen checks that a port that is in use, and a certificate that cannot be read, are errors before the agent
// starts.
func TestListen(t *testing.T) {
	used, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test listens on a port of its own
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close() //nolint:errcheck // the test is over
	port := netip.MustParseAddrPort(used.Addr().String()).Port()
	for name, c := range map[string]struct {
		server daemon.ServerSettings
		want   string
	}{
		"a port in use":  {daemon.ServerSettings{Port: int(port)}, "address already in use"},
		"no certificate": {daemon.ServerSettings{CertFile: "/absent/cert", KeyFile: "/absent/key"}, "/absent/cert"},
		"no authorities": {daemon.ServerSettings{ClientCAFile: "/absent/ca"}, "the certificate authorities of clients: "},
		"the other port": {daemon.ServerSettings{Address: "127.0.0.1", ReadOnlyPort: int(port)}, "address already in use"},
		"any free port":  {daemon.ServerSettings{}, ""},
	} {
		n := &node{
			ClusterSettings: &daemon.ClusterSettings{NodeName: "n", Server: c.server}, client: &cluster.Client{},
			member: &daemon.Member{Settings: daemon.Settings{
				Layout: state.Layout{Root: filepath.Join(t.TempDir(), "state")}, Now: time.Now, Log: slog.New(slog.DiscardHandler),
			}},
		}
		if err = n.member.Layout.Prepare(); err != nil {
			t.Fatal(err)
		}
		err = n.listen(t.Context())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err == nil {
			n.ports.secure.Close() //nolint:errcheck // the test is over
		}
	}
}

// TestAccess checks which settings accept every client, and that /configz has them.
func TestAccess(t *testing.T) {
	for name, c := range map[string]struct {
		server   daemon.ServerSettings
		everyone bool
		mode     kubeletconfig.KubeletAuthorizationMode
	}{
		"default":               {daemon.ServerSettings{}, false, "Webhook"},
		"anonymous":             {daemon.ServerSettings{Anonymous: true}, false, "Webhook"},
		"always":                {daemon.ServerSettings{AlwaysAllow: true, Anonymous: true}, true, "AlwaysAllow"},
		"always, authenticated": {daemon.ServerSettings{AlwaysAllow: true}, false, "AlwaysAllow"},
	} {
		found, err := accessOf(&daemon.ClusterSettings{NodeName: "n", Server: c.server}, nil, slog.New(slog.DiscardHandler))
		if err != nil || (found == nil) != c.everyone {
			t.Errorf("%s: %v, %v", name, found, err)
		}
		config := &kubeletconfig.KubeletConfiguration{}
		if setServer(config, &c.server); config.Authorization.Mode != c.mode || *config.Authentication.Anonymous.Enabled != c.server.Anonymous {
			t.Errorf("%s: %+v", name, config)
		}
	}
}

// systemdRuntime is a runtime that uses the cgroup driver of systemd.
type systemdRuntime struct {
	runtimeapi.RuntimeServiceClient
}

// Version answers.
func (systemdRuntime) Version(
	context.Context, *runtimeapi.VersionRequest, ...grpc.CallOption,
) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{}, nil
}

// Status answers.
func (systemdRuntime) Status(
	context.Context, *runtimeapi.StatusRequest, ...grpc.CallOption,
) (*runtimeapi.StatusResponse, error) {
	return &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{}}, nil
}

// RuntimeConfig returns the driver.
func (systemdRuntime) RuntimeConfig(
	context.Context, *runtimeapi.RuntimeConfigRequest, ...grpc.CallOption,
) (*runtimeapi.RuntimeConfigResponse, error) {
	return &runtimeapi.RuntimeConfigResponse{
		Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: runtimeapi.CgroupDriver_SYSTEMD},
	}, nil
}

// TestClusterDNS checks that /configz and the stored identity have the DNS of the cluster, and that /configz has the
// cgroup driver although no pod was read yet, and the limit of tasks.
func TestClusterDNS(t *testing.T) {
	layout := state.Layout{Root: filepath.Join(t.TempDir(), "state")}
	if err := layout.Prepare(); err != nil {
		t.Fatal(err)
	}
	client := &cri.Client{RuntimeServiceClient: systemdRuntime{}}
	host := observe.NewHost(client, layout, observe.Sources{
		Machine: func() criconfig.Node { return criconfig.Node{Name: "m"} }, PodPIDs: 77,
		Images: imageaccess.Policy{Name: imageaccess.NeverVerifyAllowlistedImages, Allowlist: "a,b/*"},
	})
	n := &node{
		ClusterSettings: &daemon.ClusterSettings{
			NodeName: "n", ClusterDomain: "d.local",
			ClusterDNS: []netip.Addr{netip.MustParseAddr("10.0.0.10"), netip.MustParseAddr("fd00::a")},
		},
		member: &daemon.Member{
			Settings: daemon.Settings{Layout: layout, Resources: admission.Settings{}},
			Engine:   &runtime.Engine{Client: client, Host: host},
		},
	}
	if err := n.writeIdentity(); err != nil {
		t.Fatal(err)
	}
	const want = "[10.0.0.10 fd00::a] d.local"
	other := observe.NewHost(client, layout, observe.Sources{Machine: func() criconfig.Node { return criconfig.Node{} }})
	seen := other.NodeOf(podspectest.FromAPI(t, podspectest.Minimal))
	if got := fmt.Sprintf("%v %s", seen.ClusterDNS, seen.ClusterDomain); got != want {
		t.Errorf("another process sees %s", got)
	}
	c := n.configuration(t.Context())
	if got := fmt.Sprintf("%v %s", c.ClusterDNS, c.ClusterDomain); got != want || c.CgroupDriver != "systemd" || *c.PodPidsLimit != 77 {
		t.Errorf("/configz has %s, driver %s, limit of tasks %d", got, c.CgroupDriver, *c.PodPidsLimit)
	}
	const images = "NeverVerifyAllowlistedImages [a b/*]"
	if got := fmt.Sprint(c.ImagePullCredentialsVerificationPolicy, " ", c.PreloadedImagesVerificationAllowlist); got != images {
		t.Errorf("/configz has the policy of images %s", got)
	}
}

// TestOwnConfiguration checks that /configz has what podctl does for each setting: doctor finds none that would have no
// effect in podctl.
func TestOwnConfiguration(t *testing.T) {
	client := &cri.Client{RuntimeServiceClient: systemdRuntime{}}
	layout := state.Layout{Root: t.TempDir(), LogRoot: "/var/log/pods"}
	host := observe.NewHost(client, layout, observe.Sources{Machine: func() criconfig.Node { return criconfig.Node{Name: "m"} }})
	n := &node{
		ClusterSettings: &daemon.ClusterSettings{
			NodeName: "n",
			Taints:   []v1.Taint{{Key: "k", Value: "v", Effect: v1.TaintEffectNoSchedule}}, RotateCertificates: true,
			Server: daemon.ServerSettings{Port: 10350, RotateCertificates: true, CertFile: "/c", KeyFile: "/k"},
		},
		member: &daemon.Member{
			Settings: daemon.Settings{
				Layout: layout, Listen: &daemon.Address{Port: "10248"}, Resources: admission.Settings{
					MaxPods: 50, UnsafeSysctls: []string{"kernel.msg*"}, Enforce: true,
					Reserved: v1.ResourceList{model.ResourcePIDs: resource.MustParse("7")},
				},
				Logs: logfile.Limits{Size: 1 << 20, Files: 3}, Images: housekeeping.Thresholds{High: 70, Low: 60}, Pulls: 6,
			},
			Engine: &runtime.Engine{Client: client, Host: host},
		},
	}
	c := n.configuration(t.Context())
	c.APIVersion, c.Kind = kubeletconfig.SchemeGroupVersion.String(), "KubeletConfiguration"
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	files := kubeletconf.NewFiles()
	if err = errors.Join(files.Add("configz", text), files.Check()); err != nil {
		t.Fatal(err)
	}
	honoured := map[string]string{}
	for _, f := range files.Examine().Findings {
		switch {
		case f.Result == kubeletconf.Honoured:
			honoured[f.Name] = f.Value
		case f.Result != kubeletconf.Same && !strings.HasPrefix(f.Name, "healthz") && f.Name != "cgroupDriver":
			t.Errorf("%s: %s is %s: %s", f.Name, f.Value, f.Result, f.Note)
		}
	}
	want := map[string]string{
		"--root-dir": "/var/lib/kubelet", "allowedUnsafeSysctls": "kernel.msg*", "maxPods": "50", "port": "10350",
		"containerLogMaxFiles": "3", "containerLogMaxSize": "1Mi", "serializeImagePulls": "false",
		"imageGCHighThresholdPercent": "70", "imageGCLowThresholdPercent": "60", "maxParallelImagePulls": "6",
		"registerWithTaints": "k=v:NoSchedule", "rotateCertificates": "true", "serverTLSBootstrap": "true",
		"tlsCertFile": "/c", "tlsPrivateKeyFile": "/k", "systemReserved": "pid=7",
	}
	if !maps.Equal(honoured, want) || !slices.Equal(c.EnforceNodeAllocatable, []string{"pods"}) {
		t.Errorf("honoured: %q, enforced %v", honoured, c.EnforceNodeAllocatable)
	}
	n.member.Resources = admission.Settings{}
	if c = n.configuration(t.Context()); !slices.Equal(c.EnforceNodeAllocatable, []string{"none"}) {
		t.Errorf("not enforced: %v", c.EnforceNodeAllocatable)
	}
}

// TestConfiguredEviction checks that /configz has the thresholds in the terms of a kubelet.
func TestConfiguredEviction(t *testing.T) {
	texts := eviction.Texts{
		Hard: "memory.available<5%,pid.available<10", Soft: "memory.available<1Gi",
		SoftGracePeriod: "memory.available=90s", MinimumReclaim: "memory.available=1Mi",
	}
	all, err := texts.Parse()
	if err != nil {
		t.Fatal(err)
	}
	c := &kubeletconfig.KubeletConfiguration{}
	setEviction(c, eviction.Config{Thresholds: all, Transition: time.Minute, MaxGrace: 7})
	got := fmt.Sprint(c.EvictionHard, c.EvictionSoft, c.EvictionSoftGracePeriod, c.EvictionMinimumReclaim,
		c.EvictionPressureTransitionPeriod.Duration, c.EvictionMaxPodGracePeriod)
	const want = "map[memory.available:5% pid.available:10] map[memory.available:1Gi] map[memory.available:1m30s] " +
		"map[memory.available:1Mi] 1m0s 7"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
