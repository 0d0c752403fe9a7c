package podsapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/podctl/podctl/podspec"
)

// keeping is an agent with pods and their phases.
type keeping struct {
	mu     sync.Mutex
	phases map[types.UID]v1.PodPhase
	err    error
	looks  int
}

func (k *keeping) set(uid types.UID, phase v1.PodPhase) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.phases[uid] = phase
	if phase == "" {
		delete(k.phases, uid)
	}
}

func (k *keeping) fail(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.err = err
}

func (k *keeping) Shown(context.Context) (shown []*podspec.Desired, _ error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for uid := range k.phases {
		p := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "a"}}}}
		p.Namespace, p.Name, p.UID = "ns", "pod-"+string(uid), uid
		shown = append(shown, podspec.New(p, "", uid))
	}
	slices.SortFunc(shown, func(a, b *podspec.Desired) int { return -byUID(a, b) })
	return shown, nil
}

func (k *keeping) List(_ context.Context, pods []*podspec.Desired) (list []*v1.Pod, _ error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil {
		return nil, k.err
	}
	for _, d := range pods {
		k.looks++
		p := d.Pod.DeepCopy()
		p.Status.Phase = k.phases[p.UID]
		list = append(list, p)
	}
	return list, errors.New("one cannot be observed")
}

// serve serves an agent on a socket, and connects a client.
func serve(t *testing.T, k *keeping) (*Server, podsv1alpha1.PodsClient) {
	t.Helper()
	s := New(k, func() {})
	socket := filepath.Join(t.TempDir(), "pods.sock")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return s, podsv1alpha1.NewPodsClient(conn)
}

// describe describes a pod of the API: its name, its phase, and whether it has a spec.
func describe(t *testing.T, data []byte) string {
	t.Helper()
	if data == nil {
		return ""
	}
	var p v1.Pod
	if err := p.Unmarshal(data); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(" %s/%s=%s", p.Namespace, p.Name, p.UID)
	if len(p.Spec.Containers) > 0 {
		text += ":" + string(p.Status.Phase)
	}
	return text
}

// TestCalls checks that the list is in UID order with the current status, and that one pod is found by its UID
// (kubelet: TestListPods, TestGetPod, TestStatusOverlay of pkg/kubelet/apis/pods).
func TestCalls(t *testing.T) {
	k := &keeping{phases: map[types.UID]v1.PodPhase{"1": v1.PodRunning, "2": v1.PodPending}}
	_, client := serve(t, k)
	list, err := client.ListPods(t.Context(), &podsv1alpha1.ListPodsRequest{})
	if err != nil || len(list.GetPods()) != 2 ||
		describe(t, list.GetPods()[0])+describe(t, list.GetPods()[1]) != " ns/pod-1=1:Running ns/pod-2=2:Pending" {
		t.Errorf("the list is %v, %v", list, err)
	}
	k.set("2", v1.PodRunning)
	one, err := client.GetPod(t.Context(), &podsv1alpha1.GetPodRequest{PodUID: "2"})
	if err != nil || describe(t, one.GetPod()) != " ns/pod-2=2:Running" {
		t.Errorf("the pod is %v, %v", one, err)
	}
	_, err = client.GetPod(t.Context(), &podsv1alpha1.GetPodRequest{PodUID: "pod-2"})
	if status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), "pod with UID pod-2 not found") {
		t.Errorf("a pod that is not there: %v", err)
	}
	k.fail(errors.New("the runtime is away"))
	_, err = client.ListPods(t.Context(), &podsv1alpha1.ListPodsRequest{})
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "the runtime is away") {
		t.Errorf("without the runtime: %v", err)
	}
}

// TestLimit checks that a client that calls too often is refused (kubelet: WithRateLimiter).
func TestLimit(t *testing.T) {
	_, client := serve(t, &keeping{})
	for range 5000 {
		if _, err := client.ListPods(t.Context(), &podsv1alpha1.ListPodsRequest{}); err != nil {
			if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "rejected by rate limit") {
				t.Error(err)
			}
			return
		}
	}
	t.Error("5000 calls in a row are answered")
}

// TestWatch checks that a watch sends all pods, the end of the initial list, and then each change once (kubelet:
// TestWatchPods, TestStartEventLoop of pkg/kubelet/apis/pods).
func TestWatch(t *testing.T) {
	k := &keeping{phases: map[types.UID]v1.PodPhase{"1": v1.PodPending, "2": v1.PodRunning}}
	s, client := serve(t, k)
	stream, err := client.WatchPods(t.Context(), &podsv1alpha1.WatchPodsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	receive := func(stream podsv1alpha1.Pods_WatchPodsClient, wants ...string) {
		t.Helper()
		for _, want := range wants {
			e, failure := stream.Recv()
			if got := e.GetType().String() + describe(t, e.GetPod()); failure != nil || got != want {
				t.Fatalf("%s, %v; want %s", got, failure, want)
			}
		}
	}
	receive(stream, "ADDED ns/pod-1=1:Pending", "ADDED ns/pod-2=2:Running", "INITIAL_SYNC_COMPLETE")
	s.Changed("2") // No event follows, because nothing has changed.
	k.set("1", v1.PodRunning)
	s.Changed("1")
	receive(stream, "MODIFIED ns/pod-1=1:Running")
	k.set("3", v1.PodPending)
	s.ListChanged()
	receive(stream, "ADDED ns/pod-3=3:Pending")
	k.set("3", v1.PodFailed)
	s.Ended("3") // The pod exists again.
	receive(stream, "DELETED ns/pod-3=3", "ADDED ns/pod-3=3:Failed")
	k.set("1", "")
	s.ListChanged()
	receive(stream, "DELETED ns/pod-1=1")

	k.fail(errors.New("the runtime is away"))
	second, err := client.WatchPods(t.Context(), &podsv1alpha1.WatchPodsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if e, failure := second.Recv(); status.Code(failure) != codes.Unavailable {
		t.Errorf("a watch that cannot begin: %v, %v", e, failure)
	}
	k.set("2", v1.PodFailed)
	s.Changed("2")
	k.fail(nil)
	s.ListChanged()
	receive(stream, "MODIFIED ns/pod-2=2:Failed")
	second, err = client.WatchPods(t.Context(), &podsv1alpha1.WatchPodsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	receive(second, "ADDED ns/pod-2=2:Failed", "ADDED ns/pod-3=3:Failed", "INITIAL_SYNC_COMPLETE")
	k.set("3", v1.PodRunning)
	s.Changed("3")
	receive(stream, "MODIFIED ns/pod-3=3:Running")
	receive(second, "MODIFIED ns/pod-3=3:Running")
}

// TestNoWatches checks that no pod is read and nothing is recorded without a watch.
func TestNoWatches(t *testing.T) {
	k := &keeping{phases: map[types.UID]v1.PodPhase{"1": v1.PodRunning}}
	s := New(k, func() {})
	quiet := func(when string) {
		t.Helper()
		s.Changed("1")
		s.Ended("1")
		s.ListChanged()
		if len(s.watches.wakeup) > 0 || len(s.watches.changed) > 0 || len(s.watches.sent) > 0 {
			t.Errorf("%s: %d news, %d changes and %d pods are remembered", when, len(s.watches.wakeup),
				len(s.watches.changed), len(s.watches.sent))
		}
	}
	quiet("before a watch")
	one := s.watches.add()
	<-s.watches.wakeup
	s.watches.turn(t.Context())
	looks := k.looks
	s.watches.remove(one)
	<-s.watches.wakeup
	s.watches.turn(t.Context())
	quiet("after it")
	if looks != 1 || k.looks != looks {
		t.Errorf("%d looks with a watch, %d after it", looks, k.looks-looks)
	}
}

// TestSlowWatches checks that a slow watch is ended with an error and counted, and that others continue (kubelet:
// TestBroadcaster_SlowClient, TestErrorsAndMetrics of pkg/kubelet/apis/pods).
func TestSlowWatches(t *testing.T) {
	k := &keeping{phases: map[types.UID]v1.PodPhase{"1": v1.PodRunning}}
	drops := 0
	s := New(k, func() { drops++ })
	slow, quick := s.watches.add(), s.watches.add()
	for i := range queued + 5 {
		k.set("1", v1.PodPhase(fmt.Sprint(i)))
		s.Changed("1")
		s.watches.turn(t.Context())
		if events := <-quick.queue; len(events) == 0 {
			t.Fatal("a watch that reads is dropped")
		}
	}
	received := 0
	for range slow.queue {
		received++
	}
	if received != queued || drops != 1 || status.Code(slow.end) != codes.ResourceExhausted {
		t.Errorf("%d of %d heard, %d drops, %v", received, queued, drops, slow.end)
	}
}
