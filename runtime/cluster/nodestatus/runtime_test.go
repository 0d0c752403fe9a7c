package nodestatus

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// fakeRuntime is a container runtime that counts its calls.
type fakeRuntime struct {
	runtimeapi.RuntimeServiceClient
	runtimeapi.ImageServiceClient

	mu                       sync.Mutex
	up, network              bool
	version                  string
	statuses, lists, changed int
}

func (r *fakeRuntime) Status(
	context.Context, *runtimeapi.StatusRequest, ...grpc.CallOption,
) (*runtimeapi.StatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.statuses++; !r.up {
		return nil, errors.New("it does not answer")
	}
	return &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
		{Type: "RuntimeReady", Status: true}, {Type: "NetworkReady", Status: r.network},
	}}}, nil
}

func (r *fakeRuntime) Version(
	context.Context, *runtimeapi.VersionRequest, ...grpc.CallOption,
) (*runtimeapi.VersionResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &runtimeapi.VersionResponse{RuntimeName: "containerd", RuntimeVersion: r.version}, nil
}

func (r *fakeRuntime) ListImages(
	context.Context, *runtimeapi.ListImagesRequest, ...grpc.CallOption,
) (*runtimeapi.ListImagesResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lists++; r.lists == 2 {
		return nil, errors.New("it does not answer")
	}
	return &runtimeapi.ListImagesResponse{Images: []*runtimeapi.Image{{Id: "i"}}}, nil
}

func (r *fakeRuntime) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// TestRuntimeVersion checks that a Node shows the version of the runtime as a kubelet does.
func TestRuntimeVersion(t *testing.T) {
	for version, want := range map[string]string{
		"1.6.20~ds1": "1.6.20", "v2.1.4": "2.1.4", "2.0.0-rc.1": "2.0.0-rc.1", "2.1": "2.1", "": "", "git": "git",
	} {
		fake := &fakeRuntime{version: version}
		if got := (&Runtime{Client: fake}).version(t.Context()); got != "containerd://"+want {
			t.Errorf("%q: %q, want %q", version, got, want)
		}
	}
}

// TestRuntime checks how often the runtime is asked, and what its answers change.
func TestRuntime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeRuntime{version: "1"}
		r := &Runtime{Client: fake, Images: fake, Changed: func() { fake.set(func() { fake.changed++ }) }}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r.Run(ctx)
		}()
		expect := func(what string, statuses, lists, changed int) {
			t.Helper()
			synctest.Wait()
			fake.set(func() {
				if fake.statuses != statuses || fake.lists != lists || fake.changed != changed {
					t.Errorf("%s: %d, %d, %d", what, fake.statuses, fake.lists, fake.changed)
				}
				fake.statuses, fake.changed = 0, 0
			})
		}
		time.Sleep(950 * time.Millisecond)
		expect("down", 10, 1, 0)
		if s := r.State(); s.Facts != nil || !s.Early(time.Now(), time.Now()) {
			t.Errorf("%+v", s)
		}
		fake.set(func() { fake.up = true })
		time.Sleep(100 * time.Millisecond)
		expect("up", 1, 1, 1)
		if s := r.State(); s.Facts == nil || s.Facts.Version != "containerd://1" || len(s.Facts.Images) != 1 || s.Network == "" {
			t.Errorf("%+v", s)
		}
		fake.set(func() { fake.network, fake.version = true, "2" })
		time.Sleep(5 * time.Second)
		expect("the network", 1, 1, 1)
		time.Sleep(25 * time.Second)
		expect("without changes", 5, 2, 0)
		// The list has failed, and the version has changed.
		if s := r.State(); len(s.Facts.Images) != 1 || s.Facts.Version != "containerd://2" || s.Network != "" {
			t.Errorf("%+v", s.Facts)
		}
		fake.set(func() { fake.up = false })
		time.Sleep(40 * time.Second)
		if causes := r.State(); len(causes.Causes(time.Now(), time.Now(), false)) != 1 {
			t.Errorf("%+v", causes)
		}
		stop()
		<-ended
	})
}
