package observe

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/state"
)

// lab is an observer of an in-memory runtime in which tests create records one by one.
type lab struct {
	t        *testing.T
	server   *runtimetest.Server
	clock    *runtimetest.Clock
	cgroups  *runtimetest.Cgroups
	client   *cri.Client
	layout   state.Layout
	host     *Host
	observer *Observer
	lister   *Lister

	mu    sync.Mutex
	calls map[string][]any
}

func newLab(t *testing.T, names ...string) *lab {
	t.Helper()
	server, clock, endpoint := runtimetest.Start(t, names...)
	client, err := cri.Connect(cri.Endpoint{Address: endpoint, Origin: "test"}, "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	l := &lab{
		t: t, server: server, clock: clock, cgroups: runtimetest.NewCgroups(server), client: client,
		layout: state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}, calls: map[string][]any{},
	}
	w := World{Client: client, Layout: l.layout, Cgroups: l.cgroups, Now: clock.Now}
	l.host = NewHost(client, l.layout, Sources{
		Machine: func() criconfig.Node { return criconfig.Node{Name: "node", MemoryBytes: 1 << 30} },
	})
	l.observer = New(w, l.host, NewDigests(l.layout))
	l.lister = NewLister(l.observer)
	for _, method := range []string{"ListPodSandbox", "ListContainers", "PodSandboxStatus", "ContainerStatus", "ImageStatus", "Version"} {
		server.Fail(runtimetest.Fault{Method: method, Times: 1, Only: func(request any) bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.calls[method] = append(l.calls[method], proto.Clone(request.(proto.Message)))
			return false
		}})
	}
	return l
}

// count returns how often a method was called since the last reset.
func (l *lab) count(method string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.calls[method])
}

func (l *lab) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.calls)
}

func loadPod(t *testing.T, text string) *podspec.Desired {
	t.Helper()
	m, err := load.Load(t.Context(), input.Reader{Stdin: strings.NewReader(text)}, "-")
	if err != nil || m.Err() != nil {
		t.Fatal(err, m.Err())
	}
	return m.Pods[0]
}

// podText returns a manifest of a pod with container a.
func podText(name string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec:\n  containers: [{name: a, image: 'i:1'}]\n"
}

// secretPod is like podText, with a Secret.
func secretPod() string {
	env := "image: 'i:1', env: [{name: P, valueFrom: {secretKeyRef: {name: s, key: p}}}]"
	return strings.Replace(podText("web"), "image: 'i:1'", env, 1) +
		"---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {p: correct horse}\n"
}

func (l *lab) pod(name string) *podspec.Desired { return loadPod(l.t, podText(name)) }

// labelsOf returns a kubelet's labels on the records of a pod.
func labelsOf(ref model.PodRef) map[string]string {
	return map[string]string{
		criconfig.LabelPodName:      ref.Name,
		criconfig.LabelPodNamespace: ref.Namespace,
		criconfig.LabelPodUID:       string(ref.UID),
	}
}

// sandbox creates a sandbox of a pod and returns its ID.
func (l *lab) sandbox(ref model.PodRef, attempt uint32) string {
	return l.sandboxWith(ref, attempt, &runtimeapi.PodSandboxConfig{Labels: labelsOf(ref)})
}

func (l *lab) sandboxWith(ref model.PodRef, attempt uint32, config *runtimeapi.PodSandboxConfig) string {
	l.t.Helper()
	config.Metadata = &runtimeapi.PodSandboxMetadata{Name: ref.Name, Namespace: ref.Namespace, Uid: string(ref.UID), Attempt: attempt}
	reply, err := l.client.RunPodSandbox(l.t.Context(), &runtimeapi.RunPodSandboxRequest{Config: config})
	if err != nil {
		l.t.Fatal(err)
	}
	return reply.GetPodSandboxId()
}

// container creates a running container of a pod and returns its ID.
func (l *lab) container(ref model.PodRef, sandbox, name string, attempt uint32) string {
	labels := labelsOf(ref)
	labels[criconfig.LabelContainerName] = name
	return l.containerWith(sandbox, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: name, Attempt: attempt}, Labels: labels,
		Annotations: map[string]string{criconfig.AnnotationRestartCount: fmt.Sprint(attempt)},
	})
}

func (l *lab) containerWith(sandbox string, config *runtimeapi.ContainerConfig) string {
	l.t.Helper()
	config.Image = &runtimeapi.ImageSpec{Image: "i:1"}
	reply, err := l.client.CreateContainer(l.t.Context(), &runtimeapi.CreateContainerRequest{PodSandboxId: sandbox, Config: config})
	if err == nil {
		_, err = l.client.StartContainer(l.t.Context(), &runtimeapi.StartContainerRequest{ContainerId: reply.GetContainerId()})
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return reply.GetContainerId()
}

// remember writes podctl's record of a pod.
func (l *lab) remember(d *podspec.Desired, j *state.Checkpoint) {
	l.t.Helper()
	j.Applied = d
	if err := l.layout.Pod(d.Pod.UID).Checkpoint().Write(j); err != nil {
		l.t.Fatal(err)
	}
}
