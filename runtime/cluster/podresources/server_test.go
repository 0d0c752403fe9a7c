package podresources

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/kubelet/pkg/apis/podresources/v1alpha1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// keeping is an agent with pods.
type keeping struct {
	pods []*v1.Pod
	err  error
}

func (k *keeping) Shown(context.Context) (shown []*podspec.Desired, _ error) {
	for _, pod := range k.pods {
		shown = append(shown, podspec.New(pod, "x", pod.UID))
	}
	return shown, k.err
}

func (*keeping) List(_ context.Context, pods []*podspec.Desired) (list []*v1.Pod, _ error) {
	for _, d := range pods {
		list = append(list, d.Pod)
	}
	return list, nil
}

// DevicesOf returns the devices of one container.
func (*keeping) DevicesOf(pod types.UID, container string) []model.Device {
	if pod != "web" || container != "main" {
		return nil
	}
	const gpu = "example.com/gpu"
	return []model.Device{{Resource: gpu, ID: "0"}, {Resource: gpu, ID: "1", NUMA: []int64{0, 1}}}
}

func (k *keeping) HealthyDevices() []model.Device { return k.DevicesOf("web", "main")[:1] }

func pod(name string, phase v1.PodPhase) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(name)},
		Spec: v1.PodSpec{
			InitContainers: []v1.Container{
				{Name: "init"}, {Name: "sidecar", RestartPolicy: new(v1.ContainerRestartPolicyAlways)},
			},
			Containers: []v1.Container{{Name: "main"}},
		},
		Status: v1.PodStatus{Phase: phase},
	}
}

// TestServer checks the answers on a real socket, the errors of a kubelet, and the limit of calls.
func TestServer(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	k := &keeping{pods: []*v1.Pod{pod("web", v1.PodRunning), pod("ended", v1.PodFailed), pod("new", v1.PodPending)}}
	ended, counted := make(chan error), map[string]int{}
	count := func(version, method string, err error) { counted[fmt.Sprint(version, method, status.Code(err))]++ }
	server := New(k, k, func(d *podspec.Desired) string { return d.Pod.Name + "-n" })
	go func() { ended <- server.Serve(ctx, l, count) }()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // the test ends
	client := podresourcesapi.NewPodResourcesListerClient(conn)
	list, err := client.List(t.Context(), &podresourcesapi.ListPodResourcesRequest{})
	if err != nil || len(list.GetPodResources()) != 2 || list.GetPodResources()[1].GetName() != "new-n" {
		t.Errorf("%v %v", list, err)
	}
	one, err := client.Get(t.Context(), &podresourcesapi.GetPodResourcesRequest{PodNamespace: "a", PodName: "web-n"})
	var names []string
	for _, c := range one.GetPodResources().GetContainers() {
		names = append(names, c.GetName())
	}
	if err != nil || !slices.Equal(names, []string{"sidecar", "main"}) {
		t.Errorf("%v %v", one, err)
	}
	devices := one.GetPodResources().GetContainers()[1].GetDevices()
	if len(devices) != 3 || devices[0].GetTopology() != nil || devices[2].GetTopology().GetNodes()[0].GetID() != 1 {
		t.Errorf("%v", devices)
	}
	for _, name := range []string{"web", "ended-n"} {
		_, err = client.Get(t.Context(), &podresourcesapi.GetPodResourcesRequest{PodNamespace: "a", PodName: name})
		if status.Convert(err).Message() != "pod "+name+" in namespace a not found" {
			t.Error(err)
		}
	}
	all, err := client.GetAllocatableResources(t.Context(), &podresourcesapi.AllocatableResourcesRequest{})
	if err != nil || len(all.GetDevices()) != 1 || all.GetDevices()[0].GetDeviceIds()[0] != "0" {
		t.Errorf("%v %v", all, err)
	}
	old, err := v1alpha1.NewPodResourcesListerClient(conn).List(t.Context(), &v1alpha1.ListPodResourcesRequest{})
	if err != nil || len(old.GetPodResources()) != 3 || old.GetPodResources()[1].GetName() != "ended-n" {
		t.Errorf("v1alpha1: %v %v", old, err)
	}
	regular := old.GetPodResources()[0].GetContainers()
	if len(regular) != 1 || len(regular[0].GetDevices()) != 3 || regular[0].GetDevices()[1].GetDeviceIds()[0] != "1" {
		t.Errorf("v1alpha1: %v", regular)
	}
	k.err = errors.New("starting")
	if _, err = client.List(t.Context(), &podresourcesapi.ListPodResourcesRequest{}); status.Code(err) != codes.Unavailable {
		t.Error(err)
	}
	for range 1000 {
		if _, err = client.List(t.Context(), &podresourcesapi.ListPodResourcesRequest{}); status.Code(err) == codes.ResourceExhausted {
			break
		}
	}
	if status.Convert(err).Message() != "rejected by rate limit" {
		t.Errorf("no limit of calls: %v", err)
	}
	cancel()
	if err = <-ended; err != nil {
		t.Error(err)
	}
	lists := counted["v1ListUnavailable"]
	if counted["v1GetUnknown"] != 2 || lists < 1 || lists > 1000 || counted["v1alpha1ListOK"] != 1 {
		t.Errorf("counted %v", counted)
	}
}
