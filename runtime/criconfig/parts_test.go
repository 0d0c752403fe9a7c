package criconfig

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// envRow is a container's environment computed by a kubelet.
type envRow struct {
	ID         string         `json:"id"`
	Pod        *v1.Pod        `json:"pod"`
	PodIPs     []string       `json:"podIPs"`
	ConfigMaps []recordedData `json:"configMaps"`
	Secrets    []recordedData `json:"secrets"`
	Node       struct {
		Name        string           `json:"name"`
		Addresses   []v1.NodeAddress `json:"addresses"`
		Allocatable v1.ResourceList  `json:"allocatable"`
	} `json:"node"`
	Expect struct {
		Error string `json:"error"`
		Env   []struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"env"`
		Command     []string `json:"command"`
		Args        []string `json:"args"`
		SubPathExpr []struct {
			MountPath string `json:"mountPath"`
			SubPath   string `json:"subPath"`
			Error     string `json:"error"`
		} `json:"subPathExpr"`
	} `json:"expect"`
}

type recordedData struct {
	Name string            `json:"name"`
	Data map[string]string `json:"data"`
}

func (r *envRow) input() ContainerInput {
	d := &podspec.Desired{Pod: r.Pod, Objects: podspec.Objects{ConfigMaps: map[string]*v1.ConfigMap{}, Secrets: map[string]*v1.Secret{}}}
	for _, c := range r.ConfigMaps {
		d.Objects.ConfigMaps[c.Name] = &v1.ConfigMap{Data: c.Data}
	}
	for _, s := range r.Secrets {
		data := map[string][]byte{}
		for k, v := range s.Data {
			data[k] = []byte(v)
		}
		d.Objects.Secrets[s.Name] = &v1.Secret{Data: data}
	}
	node := Node{Name: r.Node.Name, Allocatable: r.Node.Allocatable}
	for _, a := range r.Node.Addresses {
		if a.Type == v1.NodeInternalIP {
			node.IPs = append(node.IPs, a.Address)
		}
	}
	ref, _ := podspec.FindContainer(d.Pod, "app")
	return ContainerInput{Desired: d, Container: ref, Node: node, PodIPs: r.PodIPs}
}

func TestEnvironmentIsTheKubelets(t *testing.T) {
	eachRow(t, "env", func(r *envRow) string { return r.ID }, func(t *testing.T, r *envRow) {
		t.Helper()
		corev1.SetObjectDefaults_Pod(r.Pod)
		in := r.input()
		env, err := environment(&in)
		if (err != nil) != (r.Expect.Error != "") {
			t.Fatalf("error %v, the kubelet's is %q", err, r.Expect.Error)
		}
		if err != nil {
			return
		}
		want := []string{}
		for _, e := range r.Expect.Env {
			want = append(want, e.Name+"="+e.Value)
		}
		got := []string{}
		for _, e := range variables(env) {
			got = append(got, e.GetKey()+"="+string(e.GetValue()))
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("env (-kubelet +podctl)\n%s", diff)
		}
		command, args, err := env.Command(in.Container.Command, in.Container.Args)
		if err != nil || !slices.Equal(command, r.Expect.Command) || !slices.Equal(args, r.Expect.Args) {
			t.Errorf("command %q %q %v, want %q %q", command, args, err, r.Expect.Command, r.Expect.Args)
		}
		compareSubPaths(t, r, in)
	})
}

func compareSubPaths(t *testing.T, r *envRow, in ContainerInput) {
	t.Helper()
	for _, want := range r.Expect.SubPathExpr {
		i := slices.IndexFunc(in.Container.VolumeMounts, func(m v1.VolumeMount) bool { return m.MountPath == want.MountPath })
		got, err := SubPath(in, i)
		if got != want.SubPath && want.Error == "" || (err != nil) != (want.Error != "") {
			t.Errorf("%s: subPath %q %v, want %q %q", want.MountPath, got, err, want.SubPath, want.Error)
		}
	}
}

// resourcesRow is a kubelet's result for a pod's resources on a machine with cgroup v2.
type resourcesRow struct {
	ID     string  `json:"id"`
	Pod    *v1.Pod `json:"pod"`
	Valid  bool    `json:"valid"`
	Expect struct {
		QOSClass       v1.PodQOSClass `json:"qosClass"`
		CgroupfsParent string         `json:"cgroupfsParent"`
		SystemdParent  string         `json:"systemdParent"`
		Containers     map[string]struct {
			CPUPeriod      int64             `json:"cpuPeriod"`
			CPUQuota       int64             `json:"cpuQuota"`
			CPUShares      int64             `json:"cpuShares"`
			HugepageLimits map[string]uint64 `json:"hugepageLimits"`
			Memory         int64             `json:"memoryLimitInBytes"`
			OOMScoreAdj    int64             `json:"oomScoreAdj"`
			Unified        map[string]string `json:"unified"`
		} `json:"containers"`
		PodCgroup struct {
			CPUPeriod *uint64 `json:"cpuPeriod"`
			CPUQuota  *int64  `json:"cpuQuota"`
			CPUShares *uint64 `json:"cpuShares"`
			Memory    *int64  `json:"memory"`
		} `json:"podCgroup"`
		SandboxResources *runtimeapi.LinuxContainerResources `json:"sandboxResources"`
		SandboxOverhead  *runtimeapi.LinuxContainerResources `json:"sandboxOverhead"`
	} `json:"expect"`
}

func TestResourcesAreTheKubelets(t *testing.T) {
	node := Node{MemoryBytes: 24 << 30, CgroupV2: true, HugePageSizes: []string{"2MB", "1GB"}}
	eachRow(t, "resources", func(r *resourcesRow) string { return r.ID }, func(t *testing.T, r *resourcesRow) {
		t.Helper()
		if !r.Valid {
			return
		}
		corev1.SetObjectDefaults_Pod(r.Pod)
		systemd := node
		systemd.SystemdCgroup = true
		got := []string{string(podspec.QOSClass(r.Pod)), CgroupParent(r.Pod, node), CgroupParent(r.Pod, systemd)}
		if diff := cmp.Diff([]string{string(r.Expect.QOSClass), r.Expect.CgroupfsParent, r.Expect.SystemdParent}, got); diff != "" {
			t.Errorf("cgroup (-kubelet +podctl)\n%s", diff)
		}
		for name, want := range r.Expect.Containers {
			ref, _ := podspec.FindContainer(r.Pod, name)
			res := Resources(r.Pod, ref, node)
			text := fmt.Sprint(res.GetCpuPeriod(), res.GetCpuQuota(), res.GetCpuShares(),
				res.GetMemoryLimitInBytes(), res.GetOomScoreAdj(), res.GetUnified())
			wanted := fmt.Sprint(want.CPUPeriod, want.CPUQuota, want.CPUShares,
				want.Memory, want.OOMScoreAdj, want.Unified)
			if text != wanted {
				t.Errorf("%s: %s, want %s", name, text, wanted)
			}
			for _, h := range res.GetHugepageLimits() {
				if want.HugepageLimits[h.GetPageSize()] != h.GetLimit() {
					t.Errorf("%s: %d of %s, want %d", name, h.GetLimit(), h.GetPageSize(), want.HugepageLimits[h.GetPageSize()])
				}
			}
		}
		pod := PodCgroup(r.Pod, node)
		gotPod, wantPod := asJSON(t, []any{pod.CPUPeriod, pod.CPUQuota, pod.CPUShares, pod.Memory}), asJSON(t, []any{
			r.Expect.PodCgroup.CPUPeriod, r.Expect.PodCgroup.CPUQuota, r.Expect.PodCgroup.CPUShares, r.Expect.PodCgroup.Memory,
		})
		if gotPod != wantPod || pod.Pids != nil {
			t.Errorf("pod cgroup %s, want %s", gotPod, wantPod)
		}
		limited := node
		limited.PodPIDs = 7
		if pids := PodCgroup(r.Pod, limited).Pids; pids == nil || *pids != 7 {
			t.Error("the tasks of the pod have no limit")
		}
		compare(t, r.Expect.SandboxResources, sandboxResources(r.Pod, node))
		compare(t, r.Expect.SandboxOverhead, overheadResources(r.Pod, node))
	})
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// dnsRow is a kubelet's result for a pod's names and resolver.
type dnsRow struct {
	ID         string   `json:"id"`
	Pod        *v1.Pod  `json:"pod"`
	Valid      bool     `json:"valid"`
	PodIPs     []string `json:"podIPs"`
	ResolvConf string   `json:"resolvConf"`
	NodeHosts  string   `json:"nodeHosts"`
	Expect     struct {
		Hostname      string `json:"hostname"`
		HostDomain    string `json:"hostDomain"`
		HostnameError string `json:"hostnameError"`
		DNS           *struct {
			Servers  []string `json:"servers"`
			Searches []string `json:"searches"`
			Options  []string `json:"optionsSorted"`
		} `json:"dns"`
		DNSError  string `json:"dnsError"`
		HostsFile string `json:"hostsFile"`
	} `json:"expect"`
}

func TestNamesAreTheKubelets(t *testing.T) {
	eachRow(t, "dns_hosts", func(r *dnsRow) string { return r.ID }, func(t *testing.T, r *dnsRow) {
		t.Helper()
		if !r.Valid {
			return
		}
		corev1.SetObjectDefaults_Pod(r.Pod)
		node := Node{ResolvConf: []byte(r.ResolvConf), HostsFile: []byte(r.NodeHosts)}
		hostname, domain, err := Hostname(r.Pod, "")
		if (err != nil) != (r.Expect.HostnameError != "") || hostname != r.Expect.Hostname || domain != r.Expect.HostDomain {
			t.Errorf("hostname %q %q %v, want %q %q %q",
				hostname, domain, err, r.Expect.Hostname, r.Expect.HostDomain, r.Expect.HostnameError)
		}
		hosts, err := HostsFile(r.Pod, node, r.PodIPs)
		if diff := cmp.Diff(r.Expect.HostsFile, string(hosts)); err == nil && diff != "" {
			t.Errorf("hosts (-kubelet +podctl)\n%s", diff)
		}
		compareDNS(t, r, node)
	})
}

func compareDNS(t *testing.T, r *dnsRow, node Node) {
	t.Helper()
	dns, err := DNS(r.Pod, node)
	if (err != nil) != (r.Expect.DNSError != "") {
		t.Fatalf("DNS: %v, want %q", err, r.Expect.DNSError)
	}
	if err != nil || r.Expect.DNS == nil {
		return
	}
	options := slices.Sorted(slices.Values(dns.GetOptions()))
	got := strings.Join(slices.Concat(dns.GetServers(), []string{"|"}, dns.GetSearches(), []string{"|"}, options), " ")
	want := strings.Join(slices.Concat(
		r.Expect.DNS.Servers,
		[]string{"|"},
		r.Expect.DNS.Searches,
		[]string{"|"},
		r.Expect.DNS.Options,
	), " ")
	if got != want {
		t.Errorf("DNS %s\nwant %s", got, want)
	}
}

// containerRow is a kubelet's message for a pod, without environment and mounts.
type containerRow struct {
	ID           string  `json:"id"`
	Pod          *v1.Pod `json:"pod"`
	Attempt      uint32  `json:"attempt"`
	RestartCount uint32  `json:"restartCount"`
	Expect       struct {
		Sandbox      *runtimeapi.PodSandboxConfig `json:"sandbox"`
		SandboxError string                       `json:"sandboxError"`
		Containers   map[string]struct {
			*runtimeapi.ContainerConfig
			Error string `json:"error"`
		} `json:"containers"`
	} `json:"expect"`
}

func TestConfigurationIsTheKubelets(t *testing.T) {
	node := recordingNode()
	eachRow(t, "containerconfig", func(r *containerRow) string { return r.ID }, func(t *testing.T, r *containerRow) {
		t.Helper()
		corev1.SetObjectDefaults_Pod(r.Pod)
		d := &podspec.Desired{Pod: r.Pod}
		sandbox, err := Sandbox(d, node, Paths{LogDir: r.Expect.Sandbox.GetLogDirectory()}, r.Attempt)
		if (err != nil) != (r.Expect.SandboxError != "") {
			t.Fatalf("sandbox: %v, want %q", err, r.Expect.SandboxError)
		}
		if err == nil {
			sandbox.DnsConfig = nil
			dropOwn(sandbox.GetAnnotations())
			dropUserns(sandbox.GetLinux().GetSecurityContext().GetNamespaceOptions())
			dotSysctls(r.Expect.Sandbox)
			compare(t, r.Expect.Sandbox, sandbox)
		}
		for name, want := range r.Expect.Containers {
			got, err := configured(t, d, name, r.RestartCount)
			if (err != nil) != (want.Error != "") {
				t.Errorf("%s: %v, want %q", name, err, want.Error)
			}
			if err == nil && want.Error == "" {
				compare(t, want.ContainerConfig, got)
			}
		}
	})
}

// dotSysctls converts the names of sysctls to the sent form, because the kubelet does so before it builds the recorded
// message.
func dotSysctls(c *runtimeapi.PodSandboxConfig) {
	values := c.GetLinux().GetSysctls()
	for name, value := range values {
		delete(values, name)
		values[podspec.SysctlName(name)] = value
	}
}

// dropUserns removes the mode NODE: the recording's runtime had no support for user namespaces, a real one gets the
// mode (see cri_config).
func dropUserns(n *runtimeapi.NamespaceOption) {
	if n.GetUsernsOptions().GetMode() == runtimeapi.NamespaceMode_NODE {
		n.UsernsOptions = nil
	}
}

// recordingNode is the machine of the recording.
func recordingNode() Node {
	return Node{MemoryBytes: 24 << 30, CgroupV2: true, HugePageSizes: []string{"2MB", "1GB"}, SeccompRoot: "/fakeSeccompProfileRoot"}
}

// configured returns the message of one container, without environment and mounts.
func configured(t *testing.T, d *podspec.Desired, name string, attempt uint32) (*runtimeapi.ContainerConfig, error) {
	t.Helper()
	ref, ok := podspec.FindContainer(d.Pod, name)
	if !ok {
		t.Fatalf("no container %s", name)
	}
	bare := ref.DeepCopy()
	bare.VolumeMounts, bare.Env, bare.EnvFrom = nil, nil, nil
	ref.Container = bare
	got, err := Container(ContainerInput{
		Desired: d, Container: ref, Node: recordingNode(), Attempt: attempt,
		Images: map[string]model.Image{ref.Image: {ID: "sha256:feed", UID: new(int64)}},
	})
	if err != nil {
		return nil, err
	}
	dropOwn(got.GetAnnotations())
	got.Envs, got.Mounts = nil, nil
	dropUserns(got.GetLinux().GetSecurityContext().GetNamespaceOptions())
	return got, nil
}

// TestUserNamespace checks that a pod with its own users has the mapping on its sandbox, its containers and every
// mount. It is refused if the runtime does not support that.
func TestUserNamespace(t *testing.T) {
	pod := &v1.Pod{}
	pod.Name, pod.Spec.HostUsers = "p", new(bool)
	pod.Spec.Containers = []v1.Container{{Name: "app", TerminationMessagePath: "/dev/termination-log"}}
	corev1.SetObjectDefaults_Pod(pod)
	d := &podspec.Desired{Pod: pod}
	able := Node{Handlers: map[string]Handler{"": {UserNamespaces: true}}}
	users := &IDMapping{HostID: 131072, Length: 65536}
	if _, err := Sandbox(d, Node{}, Paths{UserNS: users}, 0); err == nil || !strings.Contains(err.Error(), "spec.hostUsers") {
		t.Errorf("a runtime that cannot: %v", err)
	}
	if _, err := Sandbox(d, able, Paths{}, 0); err == nil {
		t.Error("a sandbox without ids is created")
	}
	sandbox, err := Sandbox(d, able, Paths{UserNS: users}, 0)
	if err != nil {
		t.Fatal(err)
	}
	ref, _ := podspec.FindContainer(pod, "app")
	container, err := Container(ContainerInput{
		Desired: d, Container: ref, Node: able, PodIPs: []string{"10.0.0.1"}, Images: map[string]model.Image{"": {ID: "sha256:1"}},
		Paths: Paths{UserNS: users, EtcHosts: "/h", TerminationLog: "/t"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, ns := range []*runtimeapi.NamespaceOption{
		sandbox.GetLinux().GetSecurityContext().GetNamespaceOptions(), container.GetLinux().GetSecurityContext().GetNamespaceOptions(),
	} {
		o := ns.GetUsernsOptions()
		if o.GetMode() != runtimeapi.NamespaceMode_POD ||
			len(o.GetUids()) != 1 || o.GetUids()[0].GetHostId() != 131072 || o.GetGids()[0].GetLength() != 65536 {
			t.Errorf("user namespace %v", o)
		}
	}
	for _, m := range container.GetMounts() {
		if len(m.GetUidMappings()) != 1 || len(m.GetGidMappings()) != 1 {
			t.Errorf("mount %s has no mappings", m.GetContainerPath())
		}
	}
	if len(container.GetMounts()) != 2 {
		t.Errorf("%d mounts", len(container.GetMounts()))
	}
}
