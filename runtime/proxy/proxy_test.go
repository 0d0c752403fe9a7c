package proxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/netfilter"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/volume"
)

// lab is a node without a kernel.
type lab struct {
	*Proxy
	t      *testing.T
	layout state.Layout
	store  *objects.Store

	mu sync.Mutex
	// ready are the ready pods by name. listed are the names of the queried pods in order.
	ready  map[string]bool
	listed []string
	// written are the rules that the kernel has received. fails is the error of the kernel.
	written []netfilter.Rules
	fails   error
	// opened makes the kernel need a guard.
	opened bool
	// during is called while pods are queried.
	during func()
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{t: t, layout: state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}, ready: map[string]bool{}}
	locker := &state.Locker{Layout: l.layout, Waiting: func(string) {}}
	l.store = objects.New(locker, time.Now)
	l.Proxy = New(World{Locker: locker, Services: l.store, Lister: l, Kernel: l})
	return l
}

// Write records the rules.
func (l *lab) Write(_ string, r netfilter.Rules, _ netfilter.Record) error {
	l.written = append(l.written, r)
	return l.fails
}

// Guard does nothing, as if the guard were present.
func (l *lab) Guard(string) error { return l.fails }

// Open reports whether the test has set route_localnet on an interface.
func (l *lab) Open() bool { return l.opened }

// List returns pods with an address for each.
func (l *lab) List(_ context.Context, pods []*podspec.Desired) ([]*v1.Pod, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []*v1.Pod
	for _, d := range pods {
		l.listed = append(l.listed, d.Pod.Name)
		pod := d.Pod.DeepCopy()
		pod.Status = v1.PodStatus{Phase: v1.PodRunning, PodIPs: []v1.PodIP{{IP: "10.0.0." + strings.TrimPrefix(d.Pod.Name, "web-")}}}
		if l.ready[d.Pod.Name] {
			pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
		}
		found = append(found, pod)
	}
	if l.during != nil {
		l.during()
	}
	return found, nil
}

// pod applies a pod, with a hosts file.
func (l *lab) pod(name string) *podspec.Desired {
	l.t.Helper()
	d := podspectest.Desired(l.t, fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: %s, "+
		"labels: {app: web}}, spec: {containers: [{name: a, image: i}]}}", name))
	pod := l.layout.Pod(d.Pod.UID)
	err := pod.Checkpoint().Write(&state.Checkpoint{Memory: model.Memory{Applied: d}})
	if err = errors.Join(err, volume.WriteEtcHosts(pod, []byte("127.0.0.1\tlocalhost\n"))); err != nil {
		l.t.Fatal(err)
	}
	return d
}

func (l *lab) serve(name string) {
	l.t.Helper()
	s := &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: v1.ServiceSpec{
		Type:     v1.ServiceTypeClusterIP,
		Selector: map[string]string{"app": "web"},
		Ports:    []v1.ServicePort{{Protocol: v1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(8080)}},
	}}
	if err := l.store.Put(l.t.Context(), []*podspec.Object{{Service: s}}, func(objects.Change) {}); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// endpoints returns the endpoints of the first route that the kernel received last.
func (l *lab) endpoints() string {
	last := l.written[len(l.written)-1]
	if len(last.Routes) == 0 {
		return "no route"
	}
	return fmt.Sprint(last.Routes[0].Endpoints)
}

// hosts returns the hosts file of a pod.
func (l *lab) hosts(d *podspec.Desired) string {
	l.t.Helper()
	text, err := os.ReadFile(l.layout.Pod(d.Pod.UID).EtcHosts())
	l.must(err)
	return string(text)
}

// TestWithoutServices checks that without Services nothing is queried or written.
func TestWithoutServices(t *testing.T) {
	l := newLab(t)
	l.pod("web-1")
	l.Changed(t.Context(), "x")
	l.must(l.Wait())
	if len(l.listed)+len(l.written) > 0 {
		t.Errorf("listed %v, written %v", l.listed, l.written)
	}
	if _, err := os.Stat(l.layout.ServiceNames().Path()); err == nil {
		t.Error("names are written")
	}
}

// TestServicesComeAndGo checks that rules, names and hosts files follow pods and Services, and that nothing remains of
// the last Service. Hosts files are written in place, because containers have them mounted.
func TestServicesComeAndGo(t *testing.T) {
	l := newLab(t)
	one, two := l.pod("web-1"), l.pod("web-2")
	l.ready["web-1"] = true
	mounted, err := os.Open(l.layout.Pod(one.Pod.UID).EtcHosts())
	l.must(err)
	defer mounted.Close() //nolint:errcheck // read only
	l.serve("web")
	l.must(l.Sync(t.Context()))
	if got := l.endpoints(); got != "[10.0.0.1:8080]" || len(l.written[0].Pods) != 2 {
		t.Errorf("%s of %+v", got, l.written[0])
	}
	now, err := os.Stat(mounted.Name())
	l.must(err)
	before, err := mounted.Stat()
	l.must(err)
	if !strings.HasSuffix(l.hosts(two), "\tweb.default\tweb\n") || !os.SameFile(now, before) {
		t.Error(l.hosts(two))
	}
	l.must(l.store.Delete(t.Context(), state.ObjectKey{Namespace: "default", Kind: podspec.KindService, Name: "web"}))
	l.must(l.Sync(t.Context()))
	if got := l.endpoints(); got != "no route" || l.hosts(two) != "127.0.0.1\tlocalhost\n" {
		t.Errorf("%s\n%s", got, l.hosts(two))
	}
	l.written = nil
	if l.must(l.Sync(t.Context())); len(l.written) > 0 {
		t.Error("the empty rules are written to the kernel again")
	}
}

// TestPodsOfAPIServer checks that podctl's Services can lead to pods of the API server, whose hosts files have none of
// their names.
func TestPodsOfAPIServer(t *testing.T) {
	l := newLab(t)
	l.serve("web")
	own, d := l.pod("web-1"), l.pod("web-2")
	l.ready["web-2"] = true
	d.Owner = podspec.OwnerAPI
	l.must(l.layout.Pod(d.Pod.UID).Checkpoint().Write(&state.Checkpoint{Memory: model.Memory{Applied: d}}))
	l.must(l.Sync(t.Context()))
	if got := l.hosts(d); strings.Contains(got, "web") || !strings.Contains(l.hosts(own), "web") {
		t.Errorf("hosts %q, own %q", got, l.hosts(own))
	}
	if got := l.endpoints(); got != "[10.0.0.2:8080]" {
		t.Errorf("endpoints %s", got)
	}
}

// TestOnlyChangedPodsAreQueried checks that only changed pods are queried, including those that changed while others
// were queried.
func TestOnlyChangedPodsAreQueried(t *testing.T) {
	l := newLab(t)
	one := l.pod("web-1")
	l.pod("web-2")
	l.serve("web")
	l.must(l.Sync(t.Context()))
	l.listed, l.ready["web-1"] = nil, true
	l.must(l.Sync(t.Context()))
	if len(l.listed) > 0 || l.endpoints() != "[]" {
		t.Errorf("%v were listed although nothing has changed", l.listed)
	}
	l.during = func() {
		if l.during = nil; l.ready["web-1"] {
			l.ready["web-1"] = false
			l.Changed(t.Context(), one.Pod.UID)
		}
	}
	l.Changed(t.Context(), one.Pod.UID)
	l.must(l.Wait())
	if fmt.Sprint(l.listed) != "[web-1 web-1]" || l.endpoints() != "[]" {
		t.Errorf("listed %v, traffic goes to %s", l.listed, l.endpoints())
	}
}

// TestFailures checks that errors are returned, are reported each time, and do not stop the rest.
func TestFailures(t *testing.T) {
	l := newLab(t)
	d := l.pod("web-1")
	l.serve("web")
	var logged []error
	l.Failed = func(err error) { logged = append(logged, err) }
	l.fails = errors.New("no such kernel")
	l.Changed(t.Context(), "")
	if err := l.Wait(); err == nil || len(logged) == 0 || !strings.Contains(l.hosts(d), "web.default") {
		t.Errorf("%v %v %s", err, logged, l.hosts(d))
	}
	l.fails = nil
	l.Changed(t.Context(), "")
	if err := l.Wait(); err != nil || logged[len(logged)-1] != nil {
		t.Errorf("%v %v", err, logged)
	}
	if err := l.layout.ServiceNames().Write([]byte("{")); err != nil {
		t.Fatal(err)
	}
	if err := l.Sync(t.Context()); err != nil {
		t.Errorf("names that are damaged: %v", err)
	}
}

// TestWithoutRules checks that names lead to pods without rules of the kernel.
func TestWithoutRules(t *testing.T) {
	l := newLab(t)
	d := l.pod("web-1")
	l.ready["web-1"] = true
	l.Kernel = nil
	l.serve("web")
	l.must(l.Sync(t.Context()))
	if got := l.hosts(d); !strings.Contains(got, "10.0.0.1\tweb.default") {
		t.Error(got)
	}
}

// Watch reports one removal of the rules.
func (*lab) Watch(_ context.Context, removed func()) error {
	removed()
	return errUnwatched
}

var errUnwatched = errors.New("not watched any more")

// TestRemovedRulesAreRestored checks that removed rules are restored at once.
func TestRemovedRulesAreRestored(t *testing.T) {
	l := newLab(t)
	l.serve("web")
	synced := make(chan struct{}, 8)
	l.Failed = func(error) { synced <- struct{}{} }
	if err := l.Restore(t.Context()); !errors.Is(err, errUnwatched) {
		t.Error(err)
	}
	<-synced
	if len(l.written) != 1 {
		t.Errorf("the kernel got %+v", l.written)
	}
}

// TestAnOpenKernelIsGuarded checks that an open kernel gets a guard although there are no Services: it receives empty
// rules, with whether pods have hostPorts.
func TestAnOpenKernelIsGuarded(t *testing.T) {
	l := newLab(t)
	l.pod("web-1")
	l.must(l.Sync(t.Context()))
	if len(l.written) != 0 {
		t.Errorf("nothing is open, but the kernel got %+v", l.written)
	}
	l.opened = true
	l.must(l.Sync(t.Context()))
	if len(l.written) != 1 || len(l.written[0].Routes) != 0 || l.written[0].HostPorts {
		t.Errorf("the kernel got %+v", l.written)
	}
	d := podspectest.Desired(t, `{apiVersion: v1, kind: Pod, metadata: {name: web-2}, spec: {containers: [
		{name: a, image: i, ports: [{containerPort: 80, hostPort: 8080}]}]}}`)
	l.must(l.layout.Pod(d.Pod.UID).Checkpoint().Write(&state.Checkpoint{Memory: model.Memory{Applied: d}}))
	l.must(l.Sync(t.Context()))
	if len(l.written) != 2 || !l.written[1].HostPorts {
		t.Errorf("the kernel got %+v", l.written)
	}
}

// TestRecordOfInterfaces checks that the record is stored in a file, which is removed with the last name.
func TestRecordOfInterfaces(t *testing.T) {
	l := newLab(t)
	r := record{l.layout.Localnet()}
	l.must(r.Replace([]string{"cni0", "cni1"}))
	if names, err := r.Interfaces(); err != nil || !slices.Equal(names, []string{"cni0", "cni1"}) {
		t.Error(names, err)
	}
	l.must(l.layout.Localnet().Write([]byte("[")))
	if names, err := r.Interfaces(); err == nil {
		t.Error("a damaged record is read as", names)
	}
	l.must(r.Replace(nil))
	if _, err := os.Stat(l.layout.Localnet().Path()); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
