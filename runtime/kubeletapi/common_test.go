package kubeletapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/criconfig"
)

// measures names the path of each document.
type measures struct{}

func (measures) Summary(context.Context) (*statsapi.Summary, error) {
	used := &statsapi.FsStats{UsedBytes: new(uint64(5))}
	return &statsapi.Summary{
		Node: statsapi.NodeStats{NodeName: "n", Fs: used},
		Pods: []statsapi.PodStats{{Containers: []statsapi.ContainerStats{{Name: "c", Rootfs: used}}}},
	}, nil
}

func (measures) RequestBegun(string, string, string, bool) (ended func()) { return func() {} }

func (m measures) CPUAndMemory(ctx context.Context) (*statsapi.Summary, error) { return m.Summary(ctx) }

func (measures) ResourceMetrics() http.Handler  { return text("resource") }
func (measures) ContainerMetrics() http.Handler { return text("cadvisor") }
func (measures) OthersHandler() http.Handler    { return text("agent") }
func (measures) ProbesHandler() http.Handler    { return text("probes") }

func text(answer string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) })
}

// pods is an agent with pods.
type pods struct {
	mu     sync.Mutex
	shown  []*podspec.Desired
	status map[types.UID]v1.PodStatus
	// added are debug containers, which are only in pods with status.
	added []v1.EphemeralContainer
	sick  error
	away  error
}

func (p *pods) Shown(context.Context) ([]*podspec.Desired, error) { return p.shown, p.away }

func (p *pods) List(_ context.Context, want []*podspec.Desired) (list []*v1.Pod, _ error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range want {
		pod := d.Pod.DeepCopy()
		pod.Status = p.status[pod.UID]
		pod.Spec.EphemeralContainers = p.added
		list = append(list, pod)
	}
	return list, nil
}

func (p *pods) Healthy() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sick
}

// pod returns a pod of a source with one container.
func pod(namespace, name, uid, source string, containers ...v1.Container) *podspec.Desired {
	p := &v1.Pod{Spec: v1.PodSpec{Containers: containers}}
	p.Namespace, p.Name, p.UID = namespace, name, types.UID(uid)
	d := podspec.New(p, "", p.UID)
	d.Owner = source
	return d
}

// running returns the status of a pod whose container runs.
func running(container, id string) v1.PodStatus {
	return v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{
		Name: container, ContainerID: "containerd://" + id, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}},
	}}}
}

// fakeRuntime is a runtime with containers. Its processes repeat their input.
type fakeRuntime struct {
	runtimeapi.RuntimeServiceClient

	streams streaming.Server

	mu         sync.Mutex
	sandboxes  []*runtimeapi.PodSandbox
	containers []*runtimeapi.Container
	logs       map[string]string
	err        error
	// refusal is the error of calls that open streams.
	refusal error
	// asked are the calls that open streams. checked receives a value for each status of a container.
	asked   []string
	checked chan struct{}
	// credentials are the credentials that requests for streams had. conns are the connections of streams.
	credentials []string
	conns       []net.Conn
}

// stop breaks the connections of all streams.
func (m *fakeRuntime) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.conns {
		_ = c.Close()
	}
}

func newRuntime(t *testing.T) *fakeRuntime {
	t.Helper()
	m := &fakeRuntime{logs: map[string]string{}, checked: make(chan struct{}, 1000)}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		m.credentials = append(m.credentials, r.Header.Get("Authorization")+r.Header.Get("Cookie")+
			bearerIn(r.Header))
		m.mu.Unlock()
		m.streams.ServeHTTP(w, r)
	}))
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.conns = append(m.conns, c)
		return ctx
	}
	server.Start()
	over := make(chan struct{})
	t.Cleanup(func() {
		close(over)
		server.CloseClientConnections()
	})
	config := streaming.DefaultConfig
	config.Addr = server.Listener.Addr().String()
	var err error
	if m.streams, err = streaming.NewServer(config, processes{over}); err != nil {
		t.Fatal(err)
	}
	return m
}

// bearerIn returns the WebSocket protocols that are tokens.
func bearerIn(h http.Header) string {
	_, token, _ := strings.Cut(strings.Join(h.Values("Sec-Websocket-Protocol"), ","), "base64url.")
	return token
}

// run adds a pod's sandbox and a running container with a log.
func (m *fakeRuntime) run(d *podspec.Desired, container, id, log string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := int64(len(m.containers))
	m.sandboxes = append(m.sandboxes, &runtimeapi.PodSandbox{
		Id: "sandbox-of-" + id, CreatedAt: at, State: runtimeapi.PodSandboxState_SANDBOX_READY,
		Metadata: &runtimeapi.PodSandboxMetadata{Name: d.Pod.Name, Namespace: d.Pod.Namespace, Uid: string(d.Pod.UID)},
		Labels:   map[string]string{criconfig.LabelPodUID: string(d.Pod.UID)},
	})
	m.containers = append(m.containers, &runtimeapi.Container{
		Id: id, CreatedAt: at, State: runtimeapi.ContainerState_CONTAINER_RUNNING, Metadata: &runtimeapi.ContainerMetadata{Name: container},
		Image:  &runtimeapi.ImageSpec{Image: "image-of-" + container},
		Labels: map[string]string{criconfig.LabelPodUID: string(d.Pod.UID), criconfig.LabelContainerName: container},
	})
	m.logs[id] = log
}

// exit ends a container.
func (m *fakeRuntime) exit(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.containers {
		if c.GetId() == id {
			c.State = runtimeapi.ContainerState_CONTAINER_EXITED
		}
	}
}

func (m *fakeRuntime) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

func has(labels, wanted map[string]string) bool {
	for key, value := range wanted {
		if labels[key] != value {
			return false
		}
	}
	return true
}

func (m *fakeRuntime) ListPodSandbox(
	_ context.Context, r *runtimeapi.ListPodSandboxRequest, _ ...grpc.CallOption,
) (*runtimeapi.ListPodSandboxResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	reply := &runtimeapi.ListPodSandboxResponse{}
	for _, s := range m.sandboxes {
		if has(s.GetLabels(), r.GetFilter().GetLabelSelector()) && s.GetState() == r.GetFilter().GetState().GetState() {
			reply.Items = append(reply.Items, s)
		}
	}
	return reply, m.err
}

func (m *fakeRuntime) ListContainers(
	_ context.Context, r *runtimeapi.ListContainersRequest, _ ...grpc.CallOption,
) (*runtimeapi.ListContainersResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	reply := &runtimeapi.ListContainersResponse{}
	for _, c := range m.containers {
		if has(c.GetLabels(), r.GetFilter().GetLabelSelector()) && c.GetState() == r.GetFilter().GetState().GetState() {
			reply.Containers = append(reply.Containers, c)
		}
	}
	return reply, m.err
}

func (m *fakeRuntime) ContainerStatus(
	_ context.Context, r *runtimeapi.ContainerStatusRequest, _ ...grpc.CallOption,
) (*runtimeapi.ContainerStatusResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case m.checked <- struct{}{}:
	default:
	}
	i := slices.IndexFunc(m.containers, func(c *runtimeapi.Container) bool { return c.GetId() == r.GetContainerId() })
	if i < 0 {
		return nil, status.Error(codes.NotFound, "no such container")
	}
	return &runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{
		Id: r.GetContainerId(), State: m.containers[i].GetState(), LogPath: m.logs[r.GetContainerId()],
		Labels: m.containers[i].GetLabels(),
	}}, m.err
}

func (m *fakeRuntime) ExecSync(
	_ context.Context, r *runtimeapi.ExecSyncRequest, _ ...grpc.CallOption,
) (*runtimeapi.ExecSyncResponse, error) {
	switch command := r.GetCmd(); command[0] {
	case "false":
		return &runtimeapi.ExecSyncResponse{ExitCode: 1, Stderr: []byte("no")}, m.err
	default:
		return &runtimeapi.ExecSyncResponse{Stdout: []byte(strings.Join(command, "+")), Stderr: []byte(" in " + r.GetContainerId())}, m.err
	}
}

func (m *fakeRuntime) ask(call string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, call)
	return m.refusal
}

func (m *fakeRuntime) Exec(_ context.Context, r *runtimeapi.ExecRequest, _ ...grpc.CallOption) (*runtimeapi.ExecResponse, error) {
	if err := m.ask(fmt.Sprintf("exec %s %v", r.GetContainerId(), r.GetCmd())); err != nil {
		return nil, err
	}
	return m.streams.GetExec(r)
}

func (m *fakeRuntime) Attach(_ context.Context, r *runtimeapi.AttachRequest, _ ...grpc.CallOption) (*runtimeapi.AttachResponse, error) {
	if err := m.ask(fmt.Sprintf("attach %s tty=%v", r.GetContainerId(), r.GetTty())); err != nil {
		return nil, err
	}
	return m.streams.GetAttach(r)
}

func (m *fakeRuntime) PortForward(
	_ context.Context, r *runtimeapi.PortForwardRequest, _ ...grpc.CallOption,
) (*runtimeapi.PortForwardResponse, error) {
	if err := m.ask(fmt.Sprintf("forward %s %v", r.GetPodSandboxId(), r.GetPort())); err != nil {
		return nil, err
	}
	return m.streams.GetPortForward(r)
}

// processes are the processes of a runtime. The command wait runs until over is closed.
type processes struct{ over chan struct{} }

type exitError int

func (e exitError) Error() string   { return fmt.Sprintf("exit code %d", int(e)) }
func (e exitError) String() string  { return e.Error() }
func (e exitError) Exited() bool    { return true }
func (e exitError) ExitStatus() int { return int(e) }

// Exec repeats the input in upper case, reports the size of the terminal, and exits with the number in the command.
func (p processes) Exec( //nolint:revive // the signature is the library's
	ctx context.Context, id string, command []string,
	in io.Reader, out, errs io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize,
) error {
	if tty {
		select {
		case size := <-resize:
			fmt.Fprintf(out, "%d x %d ", size.Width, size.Height) //nolint:errcheck // the test sees it
		case <-ctx.Done():
		}
	}
	if command[0] == "wait" {
		io.WriteString(out, "it runs") //nolint:errcheck // the test sees it
		<-p.over
	}
	if in != nil {
		text, _ := io.ReadAll(in)
		io.WriteString(out, strings.ToUpper(string(text))) //nolint:errcheck // the test sees it
	}
	if errs != nil {
		fmt.Fprintf(errs, "%s in %s", command[0], id) //nolint:errcheck // the test sees it
	}
	if len(command) > 1 {
		return exitError(len(command[1]))
	}
	return nil
}

// Attach is like a command.
func (p processes) Attach( //nolint:revive // the signature is the library's
	ctx context.Context, id string,
	in io.Reader, out, errs io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize,
) error {
	return p.Exec(ctx, id, []string{"attached"}, in, out, errs, tty, resize)
}

// PortForward repeats the input after the number of the port.
func (processes) PortForward(_ context.Context, sandbox string, port int32, stream io.ReadWriteCloser) error {
	fmt.Fprintf(stream, "%s:%d ", sandbox, port) //nolint:errcheck // the test sees it
	buffer := make([]byte, 5)
	_, err := io.ReadFull(stream, buffer)
	stream.Write(buffer) //nolint:errcheck // the test sees it
	return errors.Join(err, stream.Close())
}

// served is a server on a port, with a client.
type served struct {
	*Server
	t      *testing.T
	url    string
	client *http.Client
}

// serve serves pods on a port of this machine.
func serve(t *testing.T, agent Agent, runtime Runtime, change ...func(*Settings, *limits)) *served {
	t.Helper()
	s := Settings{
		NodeName: "node", Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Certificates: certificates(t),
		Measures:     measures{}, Metrics: measures{},
		Configuration: func(context.Context) *kubeletconfig.KubeletConfiguration {
			return &kubeletconfig.KubeletConfiguration{MaxPods: 7}
		},
	}
	l := defaultLimits()
	for _, c := range change {
		c(&s, &l)
	}
	server := newServer(agent, runtime, s, l)
	port, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, port) }()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // the certificate is self-signed
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return &served{Server: server, t: t, url: "https://" + port.Addr().String(), client: &http.Client{Transport: transport}}
}

// certificates returns one self-signed certificate for all tests, because a key takes long to make.
var certificates = func() func(t *testing.T) Certificates {
	var once sync.Once
	var found Certificates
	return func(t *testing.T) Certificates {
		t.Helper()
		once.Do(func() {
			dir := filepath.Join(t.TempDir(), "state")
			err := os.Mkdir(dir, 0o700)
			if err == nil {
				found, err = SelfSigned(dir, []string{"node"}, []net.IP{net.IPv4(127, 0, 0, 1)}, time.Now)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
		return found
	}
}()

// do sends a request and returns the code and the body of the response.
func (s *served) do(method, path, body string, headers ...string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Errorf("%s %s: %v", method, path, err)
	}
	return response.StatusCode, string(text)
}

// expect checks the response to a request.
func (s *served) expect(method, path string, code int, want string) {
	s.t.Helper()
	if got, text := s.do(method, path, ""); got != code || text != want {
		s.t.Errorf("%s %s: %d %q, not %d %q", method, path, got, text, code, want)
	}
}

// web is a pod of the API server with a running container.
func web(t *testing.T) (*pods, *fakeRuntime, *podspec.Desired) {
	t.Helper()
	d := pod("ns", "web", "u1", "api", v1.Container{Name: "app"})
	m := newRuntime(t)
	m.run(d, "app", "c1", "")
	return &pods{shown: []*podspec.Desired{d}, status: map[types.UID]v1.PodStatus{"u1": running("app", "c1")}}, m, d
}

// born returns a time of the creation of a pod.
func born(second int64) metav1.Time { return metav1.Unix(second, 0) }
