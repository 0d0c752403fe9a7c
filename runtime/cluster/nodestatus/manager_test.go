package nodestatus

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"

	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/cluster/apitest"
	"github.com/podctl/podctl/runtime/cluster/membership"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// lab is a manager with its server.
type lab struct {
	*Manager

	t      *testing.T
	server *apiServer
	dir    string
	log    *apitest.Log
	stop   func()

	mu       sync.Mutex
	facts    Facts
	recorded []Event
	// other is the error of Confirm; before is the record before the last registration.
	other  error
	before *membership.Record
}

// inLab runs a test with a manager that has not started, on the clock of the test.
func inLab(t *testing.T, do func(t *testing.T, l *lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, config := newAPIServer()
		l := &lab{t: t, server: server, dir: stateDir(t), log: &apitest.Log{}, facts: usualFacts(), stop: func() {}}
		set, err := apiclient.New(config)
		if err != nil {
			t.Fatal(err)
		}
		dialer := connrotation.NewDialer(config.Dial)
		own := rest.CopyConfig(config)
		own.Dial = dialer.DialContext
		heartbeat, err := NewHeartbeat(own, dialer.CloseAll)
		if err != nil {
			t.Fatal(err)
		}
		l.Manager = NewManager(Settings{
			Node: Node{Name: "n", HostName: "h"}, Cluster: l, Client: set, Heartbeat: heartbeat,
			Facts: func() Facts {
				l.mu.Lock()
				defer l.mu.Unlock()
				return l.facts
			},
			Record: func(e Event) {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.recorded = append(l.recorded, e)
			},
			Random: func() float64 { return 0.5 }, Log: slog.New(slog.NewTextHandler(l.log, nil)),
		})
		do(t, l)
		l.stop()
		server.end(t)
		heartbeat.CloseAll()
		synctest.Wait()
	})
}

// Confirm returns the error of the test.
func (l *lab) Confirm(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.other
}

// IsNew reports whether no registration is recorded.
func (l *lab) IsNew() bool {
	known, err := membership.Read(l.dir)
	return err == nil && known == nil
}

// Registered records a registration.
func (l *lab) Registered(uid types.UID, bootID string) (before *membership.Record, err error) {
	if before, err = membership.Read(l.dir); err != nil {
		return nil, err
	}
	l.before = before
	now := membership.Record{Name: "n", UID: uid, BootID: bootID}
	return before, now.Write(l.dir)
}

// stateDir returns a state directory.
func stateDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// start starts the manager.
func (l *lab) start() {
	ctx, cancel := context.WithCancel(l.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.Run(ctx)
	}()
	l.stop = func() {
		cancel()
		l.server.CloseClientConnections()
		<-ended
	}
}

// after lets time pass, and returns the requests in it.
func (l *lab) after(d time.Duration) string {
	apitest.Sleep(d)
	return l.server.log()
}

func (l *lab) expect(what, got, want string) {
	l.t.Helper()
	if got != want {
		l.t.Errorf("%s: %q, want %q\n%s", what, got, want, l.log)
	}
}

func (l *lab) set(change func(*Facts)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	runtime := *l.facts.Runtime
	l.facts.Runtime = &runtime
	change(&l.facts)
}

// events returns the reasons of the events since the last call.
func (l *lab) events() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := reasons(l.recorded)
	l.recorded = nil
	return all
}

// TestNewNode checks the requests of a node that is new and ready.
func TestNewNode(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.start()
		l.expect("at the start", l.after(0), "0s POST, 0s PATCH")
		l.expect("events", l.events(), "Starting NodeHasSufficientMemory NodeHasNoDiskPressure NodeHasSufficientPID")
		l.expect("without changes", l.after(299*time.Second), "")
		l.expect("the next", l.after(12*time.Second), "5m6s PATCH")
		l.expect("the one after", l.after(310*time.Second), "10m12s PATCH")
		l.expect("events without a change", l.events(), "")
		record, err := membership.Read(l.dir)
		if err != nil || *record != (membership.Record{Name: "n", UID: l.server.node.UID, BootID: "b1"}) {
			t.Errorf("%+v, %v", record, err)
		}
		if info, err := os.Stat(membership.Path(l.dir)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
	})
}

// TestLease checks the lease of the node.
func TestLease(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		renewals := 0
		l.server.fault = func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/kube-node-lease/leases/n") && r.Method == http.MethodPut {
				renewals++
			}
			return false
		}
		l.start()
		l.after(101 * time.Second)
		lease := l.server.lease
		owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "n", UID: l.server.node.UID}
		if *lease.Spec.HolderIdentity != "n" || *lease.Spec.LeaseDurationSeconds != 40 || len(lease.OwnerReferences) != 1 ||
			lease.OwnerReferences[0] != owner || renewals < 9 || renewals > 10 {
			t.Errorf("%d renewals, %+v", renewals, lease)
		}
	})
}

// TestSent checks that the times of the last heartbeats are those of successful requests.
func TestSent(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		if sent := l.Sent(); sent != (Sent{}) {
			t.Errorf("before the start: %+v", sent)
		}
		begun := time.Now()
		l.start()
		l.after(25 * time.Second)
		if sent := l.Sent(); !sent.Status.Equal(begun) || time.Since(sent.Lease) > 11*time.Second {
			t.Errorf("status sent after %s, lease renewed after %s", sent.Status.Sub(begun), sent.Lease.Sub(begun))
		}
		l.server.change(func() {
			l.server.fault = func(w http.ResponseWriter, _ *http.Request) bool {
				refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError)
				return true
			}
		})
		before := l.Sent()
		if l.after(10 * time.Minute); l.Sent() != before {
			t.Errorf("refused requests count: %+v, then %+v", before, l.Sent())
		}
	})
}

// TestLeaseOfAnother checks that a renewal continues after another program has changed, or deleted, the lease.
func TestLeaseOfAnother(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		var requests []string
		faults := map[string]int{}
		l.server.fault = func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/leases") {
				return false
			}
			requests = append(requests, r.Method)
			code := faults[r.Method]
			delete(faults, r.Method)
			if code != 0 {
				refuse(w, code, map[int]metav1.StatusReason{
					http.StatusConflict: metav1.StatusReasonConflict, http.StatusNotFound: metav1.StatusReasonNotFound,
				}[code])
			}
			return code != 0
		}
		l.start()
		l.after(time.Second)
		for _, step := range []struct {
			code int
			want string
		}{
			{0, "PUT"},
			{http.StatusConflict, "PUT GET PUT"},
			{http.StatusInternalServerError, "PUT PUT"},
		} {
			l.server.change(func() { requests, faults[http.MethodPut] = nil, step.code })
			l.after(10*time.Second + computeEvery/25)
			l.server.change(func() { l.expect("requests", strings.Join(requests, " "), step.want) })
		}
		l.server.change(func() {
			requests = nil
			faults[http.MethodPut], faults[http.MethodGet] = http.StatusConflict, http.StatusNotFound
		})
		l.after(10*time.Second + computeEvery/25)
		l.server.change(func() { l.expect("a deleted lease", strings.Join(requests, " "), "PUT GET POST PUT") })
	})
}

// TestExistingNode checks that the start of an agent changes nothing on a Node with the same facts, and that edits of
// others stay.
func TestExistingNode(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		facts := usualFacts()
		facts.Now = time.Now()
		node := newNode(&l.Node, &facts)
		node.UID = "u"
		node.Labels["other"], node.Labels[v1.LabelHostname] = "x", "old"
		node.Spec.Taints = []v1.Taint{{Key: "t", Effect: v1.TaintEffectNoSchedule}}
		gpu := v1.ResourceName("example.com/gpu") // a device of an earlier machine
		node.Status.Capacity[gpu], node.Status.Allocatable[gpu] = resource.MustParse("8"), resource.MustParse("8")
		l.server.store(node)
		l.start()
		l.expect("at the start", l.after(0), "0s POST, 0s GET, 0s PATCH, 0s PATCH")
		if n := l.server.node.Status.Capacity[gpu]; !n.IsZero() {
			t.Errorf("the Node shows %s devices of an earlier machine", n.String())
		}
		l.expect("events", l.events(), "Starting")
		if now := l.server.node; now.Labels["other"] != "x" || now.Labels[v1.LabelHostname] != "h" || len(now.Spec.Taints) != 1 {
			t.Errorf("%+v", now)
		}
		if copied := l.Get(); copied == nil || copied.UID != "u" {
			t.Errorf("%+v", copied)
		}
	})
}

// TestUnrecorded checks that a registration that could not be recorded is recorded later.
func TestUnrecorded(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		if err := errors.Join(os.Remove(l.dir), os.WriteFile(l.dir, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		l.start()
		l.after(time.Minute)
		if n := strings.Count(l.log.String(), "not recorded"); n != 1 || l.Get() == nil {
			t.Errorf("%d failures: %s", n, l.log)
		}
		if err := errors.Join(os.Remove(l.dir), os.Mkdir(l.dir, 0o700)); err != nil {
			t.Fatal(err)
		}
		l.after(11 * time.Second)
		if r, err := membership.Read(l.dir); err != nil || r == nil || r.UID != l.Get().UID {
			t.Errorf("%+v %v\n%s", r, err, l.log)
		}
	})
}

// TestUnreachable checks the pauses between tries of the registration, and that a failure is logged once.
func TestUnreachable(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.server.fault = func(w http.ResponseWriter, _ *http.Request) bool {
			refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError)
			return true
		}
		l.start()
		l.expect("tries", l.after(27*time.Second),
			"0s POST, 100ms POST, 300ms POST, 700ms POST, 1.5s POST, 3.1s POST, 6.3s POST, 12.7s POST, 19.7s POST, 26.7s POST")
		if n := strings.Count(l.log.String(), "cannot register"); n != 1 {
			t.Errorf("%d times: %s", n, l.log)
		}
		l.server.change(func() { l.server.fault = nil })
		l.expect("then", l.after(7*time.Second), "33.7s POST, 33.7s PATCH")
		l.expect("events", l.events(), "Starting NodeHasSufficientMemory NodeHasNoDiskPressure NodeHasSufficientPID")
	})
}

// TestForbidden checks that a node that may not be created uses its existing Node.
func TestForbidden(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		facts := usualFacts()
		node := newNode(&l.Node, &facts)
		node.UID = "u"
		l.server.store(node)
		l.server.fault = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost && !strings.Contains(r.URL.Path, "leases") {
				refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden)
				return true
			}
			return false
		}
		l.start()
		l.expect("at the start", l.after(0), "0s POST, 0s GET, 0s PATCH")
	})
}

// TestBecomesReady checks that readiness is sent within 100 ms after the start, and other changes at the interval.
func TestBecomesReady(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.set(func(f *Facts) { f.Causes, f.Early = []string{"x"}, true })
		l.start()
		l.expect("early", l.after(1050*time.Millisecond), "0s POST")
		l.set(func(f *Facts) { f.Early = false })
		l.expect("not ready", l.after(time.Second), "1.1s PATCH")
		l.set(func(f *Facts) { f.Causes = nil })
		l.expect("ready", l.after(100*time.Millisecond), "2.1s PATCH")
		l.expect("events", l.events(), "Starting NodeHasSufficientMemory NodeHasNoDiskPressure NodeHasSufficientPID NodeReady")
		l.expect("then", l.after(30*time.Second), "")
	})
}

// TestEarly checks that a restart of the agent does not change a Node before the runtime has answered and listed its
// records. The first status then follows at once, and not at the interval.
func TestEarly(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		facts := usualFacts()
		facts.Now = time.Now()
		node := newNode(&l.Node, &facts)
		node.UID = "u"
		l.server.store(node)
		l.set(func(f *Facts) { f.Causes, f.Version, f.Early = []string{"not listed"}, "new", true })
		l.start()
		l.Wake()
		l.expect("early", l.after(12050*time.Millisecond), "0s POST, 0s GET")
		l.set(func(f *Facts) { f.Causes, f.Early = nil, false })
		l.expect("then", l.after(time.Second), "12.1s PATCH")
		if now := l.server.node; now.Status.NodeInfo.KubeletVersion != "new" || statusOf(now, v1.NodeReady) != v1.ConditionTrue {
			t.Errorf("%+v", now.Status)
		}
		l.expect("events", l.events(), "Starting")
		l.expect("later", l.after(30*time.Second), "")
	})
}

// TestNotReadyForLong checks that the fast computations end.
func TestNotReadyForLong(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.set(func(f *Facts) { f.Causes = []string{"x"} })
		l.start()
		l.expect("not ready", l.after(121*time.Second), "0s POST, 0s PATCH")
		l.set(func(f *Facts) { f.Causes = nil })
		l.expect("ready", l.after(time.Second), "")
		l.expect("at the interval", l.after(10*time.Second), "2m2.4s PATCH")
	})
}

// TestChanges checks when changes are sent.
func TestChanges(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.start()
		l.after(15 * time.Second)
		l.events()
		l.set(func(f *Facts) { f.Pressures = []v1.NodeConditionType{v1.NodeDiskPressure} })
		l.Wake()
		l.expect("a condition", l.after(0), "15s PATCH")
		l.expect("events", l.events(), "NodeHasDiskPressure")
		l.set(func(f *Facts) { f.Runtime.Images = []v1.ContainerImage{} })
		l.Wake()
		l.expect("an image", l.after(2*time.Second), "")
		l.expect("at the interval", l.after(10*time.Second), "20.4s PATCH")
		for range 10 {
			l.set(func(f *Facts) { f.Causes = append(f.Causes, "x") })
			l.Wake()
			l.after(100 * time.Millisecond)
		}
		l.expect("events of many changes", l.events(), "NodeNotReady")
	})
}

// TestShutdown checks that a node is not ready at once when the machine shuts down, and that its lease is renewed until
// the agent ends.
func TestShutdown(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.start()
		l.after(15 * time.Second)
		state := RuntimeState{ReadyAt: time.Now(), Facts: l.facts.Runtime}
		l.set(func(f *Facts) { f.Causes = state.Causes(time.Now(), time.Now(), true) })
		l.Wake()
		l.expect("at once", l.after(0), "15s PATCH")
		c := conditionOf(&l.server.node.Status, v1.NodeReady)
		if c.Status != v1.ConditionFalse || c.Reason != "KubeletNotReady" || c.Message != "node is shutting down" {
			t.Errorf("%+v", c)
		}
		before := l.server.renewed()
		l.after(25 * time.Second)
		if renewed := l.server.renewed().Sub(before); renewed < 20*time.Second {
			t.Errorf("the lease was renewed %s later", renewed)
		}
	})
}

// TestForeignChanges checks that conditions that another program sets are replaced at once, and that a cordon is an
// event.
func TestForeignChanges(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.start()
		l.after(15 * time.Second)
		l.events()
		l.server.edit(func(n *v1.Node) { n.Status.Conditions[3].Status = v1.ConditionUnknown })
		l.expect("readiness", l.after(0), "15s PATCH")
		l.expect("events", l.events(), "NodeReady")
		l.server.edit(func(n *v1.Node) { n.Spec.Unschedulable = true })
		l.expect("a cordon", l.after(2*time.Second), "")
		l.expect("events", l.events(), "NodeNotSchedulable")
		l.server.edit(func(n *v1.Node) { n.Spec.Unschedulable, n.Labels["a"] = false, "b" })
		l.after(2 * time.Second)
		l.expect("events", l.events(), "NodeSchedulable")
		if l.Get().Labels["a"] != "b" {
			t.Error("the copy is old")
		}
		for range 100 {
			l.server.edit(func(n *v1.Node) { n.Status.Conditions[3].Status = v1.ConditionUnknown })
			time.Sleep(100 * time.Millisecond)
		}
		if n := strings.Count(l.after(0), "PATCH"); n < 5 || n > 12 {
			t.Errorf("%d answers to a dispute of 10 s", n)
		}
	})
}

// TestTries checks that an update has five tries, and that only the first starts from the copy.
func TestTries(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.start()
		l.after(15 * time.Second)
		l.server.change(func() {
			l.server.fault = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPatch {
					refuse(w, http.StatusConflict, metav1.StatusReasonConflict)
					return true
				}
				return false
			}
		})
		l.set(func(f *Facts) { f.Port++ })
		l.expect("tries", l.after(6*time.Second), "20.4s PATCH, 20.4s GET, 20.4s PATCH, 20.4s GET, 20.4s PATCH, "+
			"20.4s GET, 20.4s PATCH, 20.4s GET, 20.4s PATCH")
		l.server.change(func() { l.server.fault = nil })
		l.expect("then", l.after(10*time.Second), "30.6s PATCH")
		if !strings.Contains(l.log.String(), "cannot update the status") || strings.Contains(l.log.String(), "10251") {
			t.Error(l.log)
		}
	})
}

// TestHangs checks that a request without an answer ends, and that the lease is renewed over another connection.
func TestHangs(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.start()
		l.after(15 * time.Second)
		hang := true
		l.server.change(func() {
			l.server.fault = func(_ http.ResponseWriter, r *http.Request) bool {
				l.server.mu.Lock()
				hanging := hang && !r.URL.Query().Has("watch")
				l.server.mu.Unlock()
				if hanging {
					<-r.Context().Done()
				}
				return hanging
			}
		})
		l.set(func(f *Facts) { f.Port++ })
		l.after(25 * time.Second)
		before := l.server.renewed()
		l.server.change(func() { hang = false })
		l.after(11 * time.Second)
		if renewed := l.server.lease.Spec.RenewTime.Time; !renewed.After(before) {
			t.Errorf("renewed at %s", renewed)
		}
		if port := l.server.node.Status.DaemonEndpoints.KubeletEndpoint.Port; port != 10251 {
			t.Error(port)
		}
	})
}

// TestDeleted checks that a Node that was deleted is registered again only by another start.
func TestDeleted(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.start()
		l.after(time.Second)
		first := l.server.node.UID
		l.server.change(func() { l.server.node = nil })
		l.server.CloseClientConnections()
		l.after(5*time.Minute + 20*time.Second)
		if l.server.node != nil || strings.Count(l.log.String(), "start the agent again") != 1 ||
			strings.Count(l.log.String(), "cannot update the status") != 1 {
			t.Errorf("%v: %s", l.server.node, l.log)
		}
		l.stop()
		l.start()
		l.after(time.Second)
		if l.server.node == nil || l.before == nil || l.before.UID != first || !strings.Contains(l.log.String(), "was deleted") {
			t.Errorf("%+v: %s", l.before, l.log)
		}
	})
}

// TestNewer checks which of two copies counts.
func TestNewer(t *testing.T) {
	node := func(uid types.UID, version string) *v1.Node {
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: version}}
	}
	c := copies{changed: func() {}}
	to := c.store()
	for i, step := range []struct {
		do   func()
		want string
	}{
		{func() { c.answered(node("u", "5")) }, "5"},
		{func() { _ = to.Update(node("u", "4")) }, "5"},
		{func() { _ = to.Add(node("u", "10")) }, "10"},
		{func() { c.answered(node("u", "9")) }, "10"},
		{func() { _ = to.Replace([]any{node("u", "3")}, "") }, "3"},
		{func() { _ = to.Update(node("v", "1")) }, "1"},
		{func() { _ = to.Delete(node("u", "20")) }, "1"},
		{func() { _ = to.Update(&v1.Pod{}) }, "1"},
		{func() { _ = to.Delete(node("v", "20")) }, ""},
		{func() { _ = to.Replace(nil, "") }, ""},
	} {
		step.do()
		got := ""
		if c.newest() != nil {
			got = c.newest().ResourceVersion
		}
		if got != step.want {
			t.Errorf("%d: %q, want %q", i, got, step.want)
		}
	}
}

// TestAnotherCluster checks that no request is sent to another cluster, and that the node is registered when that ends.
func TestAnotherCluster(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.other = errors.New("another cluster")
		l.start()
		l.expect("another cluster", l.after(10*time.Minute), "")
		if strings.Count(l.log.String(), "another cluster") != 1 {
			t.Errorf("log: %s", l.log)
		}
		l.mu.Lock()
		l.other = nil
		l.mu.Unlock()
		if l.after(30 * time.Second); l.Get() == nil {
			t.Fatalf("not registered: %s", l.log)
		}
		l.mu.Lock()
		l.other = errors.New("another cluster")
		l.mu.Unlock()
		l.set(func(f *Facts) { f.Causes = []string{"x"} })
		l.Wake()
		l.after(time.Second)
		l.expect("another cluster while the node runs", l.after(10*time.Minute), "")
	})
}

// TestLeaseOfAnotherCluster checks that another cluster gets no lease, although the tries to create it began before.
func TestLeaseOfAnotherCluster(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		fails, requests := true, 0
		l.server.fault = func(w http.ResponseWriter, r *http.Request) bool {
			is := strings.Contains(r.URL.Path, "/leases")
			if is {
				requests++
			}
			if is && fails {
				refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError)
			}
			return is && fails
		}
		l.start()
		l.after(time.Minute)
		l.mu.Lock()
		l.other = errors.New("another cluster")
		l.mu.Unlock()
		l.after(time.Second)
		l.server.change(func() { fails, requests = false, 0 })
		l.after(10 * time.Minute)
		l.server.change(func() {
			if requests > 0 || l.server.lease != nil {
				t.Errorf("%d requests", requests)
			}
		})
		l.mu.Lock()
		l.other = nil
		l.mu.Unlock()
		l.after(11 * time.Second)
		l.server.change(func() {
			if l.server.lease == nil {
				t.Error("there is no lease")
			}
		})
	})
}

// TestBadAnswers checks that no answer of a proxy registers the node, that the log reports it once, and that the node
// is registered afterwards.
func TestBadAnswers(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"an empty object": apitest.JSON(http.StatusOK, "{}"),
		"success":         apitest.JSON(http.StatusOK, `{"kind":"Status","apiVersion":"v1","status":"Success"}`),
		"half an object":  apitest.JSON(http.StatusOK, `{"kind":"Node","metadata":{"name":"n"`),
		"another node":    apitest.JSON(http.StatusCreated, `{"kind":"Node","apiVersion":"v1","metadata":{"name":"x","uid":"u"}}`),
		"no answer":       apitest.Disconnect,
		"exists, no node": existsWithout,
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, func(t *testing.T, l *lab) {
				l.server.change(func() {
					l.server.fault = func(w http.ResponseWriter, r *http.Request) bool { answer(w, r); return true }
				})
				l.start()
				l.after(10 * time.Minute)
				if r, err := membership.Read(l.dir); r != nil || err != nil || l.Get() != nil {
					t.Errorf("registered: %v, %v", r, err)
				}
				if lines := strings.Count(l.log.String(), "\n"); lines != 1 {
					t.Errorf("the log has %d lines: %s", lines, l.log)
				}
				l.server.change(func() { l.server.fault = nil })
				l.after(time.Minute)
				if r, err := membership.Read(l.dir); r == nil || r.UID == "" || err != nil || l.Get() == nil {
					t.Errorf("afterwards: %v, %v", r, err)
				}
			})
		})
	}
}

// existsWithout answers that the Node exists, and gives an empty one.
func existsWithout(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		apitest.Refusal(http.StatusConflict, metav1.StatusReasonAlreadyExists, 0)(w, r)
		return
	}
	apitest.JSON(http.StatusOK, "{}")(w, r)
}

// TestSlowRegistration checks that a server that needs 45 s for each update registers a Node that exists.
func TestSlowRegistration(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		facts := usualFacts()
		node := newNode(&l.Node, &facts)
		node.UID, node.Labels = "u", nil
		l.server.store(node)
		l.server.fault = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPatch {
				return false
			}
			select {
			case <-r.Context().Done():
				return true
			case <-time.After(45 * time.Second):
				return false
			}
		}
		l.start()
		l.after(3 * time.Minute)
		if l.Get() == nil || strings.Count(l.log.String(), "cannot register") != 1 {
			t.Errorf("%+v\n%s", l.Get(), l.log)
		}
	})
}

// TestExpiredWatch checks that a watch that is silent for too long is replaced, and that a server that always reports
// the end of the history does not get one request after the other.
func TestExpiredWatch(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.start()
		l.after(15 * time.Second)
		var watches atomic.Int32
		l.server.change(func() {
			l.server.node = nil
			l.server.fault = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Query().Get("watch") != "true" {
					return false
				}
				if watches.Add(1) > 3000 {
					apitest.Hang(w, r)
				}
				refuse(w, http.StatusGone, metav1.StatusReasonExpired)
				return true
			}
		})
		l.after(time.Hour)
		if l.Get() != nil {
			t.Error("the silent watch has not been replaced")
		}
		if n := watches.Load(); n == 0 || n > 1000 {
			t.Errorf("%d watches in an hour", n)
		}
	})
}
