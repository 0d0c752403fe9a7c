package kubernetes

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	clusterURL   = "https://" + nodeIP + ":6443"
	serviceRange = "10.96.0.0/16"
	nodeUser     = "system:node:" + nodeName
)

// cluster is a control plane with the access control of a real cluster, and podctl agent as its only node.
type cluster struct {
	// kubectl is the administrator.
	*kubectl
	*authority

	// t is the test that all programs run for.
	t    *testing.T
	node *node
	// controlPlane is the program with all of the control plane, and logs the directory of all logs.
	controlPlane, logs string
	images             *registry
	// serverFlags and agentFlags are flags of the API server and of the agent that not all tests have.
	serverFlags, agentFlags []string
	// agentServer is the URL at which the node reaches the API server, if that is not clusterURL.
	agentServer string
	*restartable
}

// restartable has the programs that a test may start again.
type restartable struct{ containerd, etcd, server, controllers, scheduler, agent *process }

// auditPolicy records all answers without their bodies.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

// TestCluster runs a cluster whose node is podctl agent: the scheduler, the controllers and kube-proxy of Kubernetes,
// and an API server that grants a node only its own objects.
func TestCluster(t *testing.T) {
	c := startCluster(t)
	for _, part := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"network", c.testNetwork}, // first, because other pods need the network
		{"certificates", c.testCertificates},
		{"services", c.testServices},
		{"names", c.testNames},
		{"access", c.testAccess},
		{"identities", c.testIdentities},
		{"metrics", c.testMetrics},
		{"deployment", c.testDeployment},
		{"statefulset", c.testStatefulSet},
		{"jobs", c.testJobs},
		{"drain", c.testDrain},
		{"applications", c.testApplications},
		{"outage", c.testOutage},
		{"node", c.testNodeDeleted},
		{"rotation", c.testRotation}, // late, because it waits until certificates are old
		{"kubelet", c.testKubelet},
		{"refusals", c.testRefusals}, // last, because it reads the log of all requests
	} {
		if !t.Run(part.name, part.run) && part.name == "network" {
			return
		}
	}
}

// startCluster starts all programs. The node has no network for pods yet. Before it joins, the functions can set flags.
func startCluster(t *testing.T, configure ...func(c *cluster)) *cluster {
	t.Helper()
	programs, err := given()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := &cluster{
		t: t, restartable: &restartable{}, node: &node{needed: programs}, authority: newAuthority(t, filepath.Join(dir, "pki")),
		controlPlane: setting(t, "CONTROLPLANE_BIN"), logs: os.Getenv("CLUSTER_LOGS"),
		images: &registry{dir: t.TempDir(), manifests: map[string]string{}},
	}
	if c.logs == "" {
		c.logs = dir
	} else if err = os.MkdirAll(c.logs, 0o755); err != nil {
		t.Fatal(err)
	}
	c.addClusterImages(t)
	c.images.serve(t)
	c.containerd = c.node.startContainerd(t, c.logs)
	c.startControlPlane(t, filepath.Join(dir, "front-proxy"))
	for _, set := range configure {
		set(c)
	}
	c.join(t)
	t.Cleanup(func() { c.keepSystem(t) })
	return c
}

// keepSystem stores the state of the system's pods and of the network with the logs of a failed test.
func (c *cluster) keepSystem(t *testing.T) {
	t.Helper()
	if !t.Failed() {
		return
	}
	text := c.call(t, "", "get", "pods,events", "-n", "kube-system", "-o", "wide").stdout
	for pod := range strings.FieldsSeq(c.call(t, "", "get", "pods", "-n", "kube-system", "-o", "name").stdout) {
		r := c.call(t, "", "logs", "-n", "kube-system", pod, "--all-containers", "--prefix")
		text += r.stdout + r.stderr
	}
	for _, command := range []string{"nft list ruleset", "ip address", "ip route"} {
		out, _ := exec.Command("sh", "-c", command).CombinedOutput() //nolint:noctx // it is short
		text += "$ " + command + "\n" + string(out)
	}
	write(t, filepath.Join(c.logs, "system.log"), text)
}

// program starts a program of the control plane.
func (c *cluster) program(name string, args ...string) *process {
	c.t.Helper()
	cmd := exec.Command(c.controlPlane, append([]string{name}, args...)...) //nolint:noctx // a signal ends it
	return start(c.t, filepath.Join(c.logs, name+".log"), cmd)
}

// startControlPlane starts etcd, the API server, the controllers and the scheduler, each with its own certificate. The
// API server proves to servers that extend it who it is with certificates of a second authority.
func (c *cluster) startControlPlane(t *testing.T, frontProxy string) {
	t.Helper()
	write(t, c.path("audit.yaml"), auditPolicy)
	c.issue(t, "server", subject{"kube-apiserver", nil}, []net.IP{net.ParseIP(nodeIP), net.ParseIP("10.96.0.1")},
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
	c.issue(t, "to-kubelet", subject{"kube-apiserver-kubelet-client", nil}, nil)
	front := newAuthority(t, frontProxy)
	front.issue(t, "client", subject{"front-proxy-client", nil}, nil)
	c.serverFlags = []string{
		"--enable-bootstrap-token-auth", "--kubelet-certificate-authority=" + c.path("ca.crt"),
		"--proxy-client-cert-file=" + front.path("client.crt"), "--proxy-client-key-file=" + front.path("client.key"),
		"--requestheader-client-ca-file=" + front.path("ca.crt"), "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
	}
	c.kubectl = &kubectl{
		program: setting(t, "KUBECTL_BIN"),
		config:  c.kubeconfig(t, clusterURL, "admin", "kubernetes-admin", "system:masters"),
	}
	c.startServers(t)
	c.startControllers(t)
	c.startScheduler(t)
}

// startScheduler starts the scheduler.
func (c *cluster) startScheduler(t *testing.T) {
	t.Helper()
	c.scheduler = c.program("kube-scheduler",
		"--kubeconfig="+c.kubeconfig(t, clusterURL, "scheduler", "system:kube-scheduler"),
		"--leader-elect=false", "--bind-address=127.0.0.1")
}

// startControllers starts the controllers.
func (c *cluster) startControllers(t *testing.T) {
	t.Helper()
	c.controllers = c.program("kube-controller-manager",
		"--kubeconfig="+c.kubeconfig(t, clusterURL, "controllers", "system:kube-controller-manager"),
		"--use-service-account-credentials", "--service-account-private-key-file="+c.path("sa.key"),
		"--root-ca-file="+c.path("ca.crt"), "--cluster-signing-cert-file="+c.path("ca.crt"),
		"--cluster-signing-key-file="+c.path("ca.key"), "--cluster-signing-duration="+signingDuration,
		"--leader-elect=false", "--bind-address=127.0.0.1")
}

// etcdDir has the objects of the cluster.
func (c *cluster) etcdDir() string { return c.path("etcd") }

// startServers starts etcd and the API server.
func (c *cluster) startServers(t *testing.T) {
	t.Helper()
	c.etcd = c.program("etcd", c.etcdDir())
	c.startAPIServer(t)
}

// stopServers stops both.
func (c *cluster) stopServers(t *testing.T) {
	t.Helper()
	c.server.end(t)
	c.etcd.end(t)
}

// replaceEtcd replaces the objects of the cluster; from is a directory, or empty for none.
func (c *cluster) replaceEtcd(t *testing.T, from string) {
	t.Helper()
	err := os.RemoveAll(c.etcdDir())
	if err == nil && from != "" {
		err = os.CopyFS(c.etcdDir(), os.DirFS(from))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// startAPIServer starts the API server and waits until it is ready.
func (c *cluster) startAPIServer(t *testing.T) {
	t.Helper()
	c.server = c.program("kube-apiserver", append([]string{
		"--etcd-servers=http://127.0.0.1:2379", "--bind-address=" + nodeIP, "--advertise-address=" + nodeIP,
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged",
		"--client-ca-file=" + c.path("ca.crt"), "--tls-cert-file=" + c.path("server.crt"),
		"--tls-private-key-file=" + c.path("server.key"), "--service-cluster-ip-range=" + serviceRange,
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.path("sa.pub"), "--service-account-signing-key-file=" + c.path("sa.key"),
		"--kubelet-client-certificate=" + c.path("to-kubelet.crt"), "--kubelet-client-key=" + c.path("to-kubelet.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--audit-policy-file=" + c.path("audit.yaml"), "--audit-log-path=" + filepath.Join(c.logs, "audit.log"),
	}, c.serverFlags...)...)
	until(t, func() string {
		c.server.alive(t)
		if r := c.call(t, "", "get", "--raw", "/readyz"); r.stdout != "ok" {
			return fmt.Sprintf("the API server is not ready: %s%s", r.stdout, r.stderr)
		}
		return ""
	})
}

// startNode starts podctl agent with its flags, and waits until the Node is registered.
func (c *cluster) startNode(t *testing.T, flags ...string) {
	t.Helper()
	c.agentFlags = append(c.agentFlags, flags...)
	conn, err := grpc.NewClient("unix://"+containerdSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	c.node.cri = runtimeapi.NewRuntimeServiceClient(conn)
	if err = os.Mkdir(c.path("manifests"), 0o755); err != nil {
		t.Fatal(err)
	}
	c.startAgent(t)
	c.awaitRegistered(t)
}

// awaitRegistered waits until the API server has the Node.
func (c *cluster) awaitRegistered(t *testing.T) {
	t.Helper()
	until(t, func() string {
		c.agent.alive(t)
		return c.call(t, "", "get", "node", nodeName).stderr
	})
}

// startAgent starts podctl agent.
func (c *cluster) startAgent(t *testing.T) {
	t.Helper()
	args := append([]string{
		"agent", "--kubeconfig", c.path("node.conf"), "--node-name", nodeName, "--node-ip", nodeIP,
		"--cluster-dns", "10.96.0.10", "--cluster-domain", "cluster.local",
		"--runtime-endpoint", "unix://" + containerdSocket,
		// The images and the disk of the machine must not matter.
		"--eviction=false", "--image-gc-high-threshold=100", c.path("manifests"),
	}, c.agentFlags...)
	cmd := exec.Command(c.node.podctl, args...) //nolint:noctx // a signal ends it
	c.agent = start(c.t, filepath.Join(c.logs, "agent.log"), cmd)
}

// in returns the cluster with a new namespace, in which kubectl works until the test ends. Then it checks that the node
// has no records of its pods any more.
func (c *cluster) in(t *testing.T, namespace string) *cluster {
	t.Helper()
	c.must(t, "create", "namespace", namespace)
	inside, user := *c, *c.kubectl
	user.namespace = namespace
	inside.kubectl = &user
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.call(t, "", "get", "all,events", "-o", "wide", "-n", namespace).stdout)
		}
		c.must(t, "delete", "namespace", namespace, "--timeout", patience.String())
		until(t, func() string {
			for _, what := range c.node.records(t) {
				if strings.HasPrefix(what, namespace+"/") {
					return "a record is left: " + what
				}
			}
			return ""
		})
	})
	return &inside
}
