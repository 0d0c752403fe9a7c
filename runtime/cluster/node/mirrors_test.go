package node

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/runtime"
	"github.com/podctl/podctl/runtime/agent"
	"github.com/podctl/podctl/runtime/agent/daemon"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/cluster"
	"github.com/podctl/podctl/runtime/cluster/apiclient"
	"github.com/podctl/podctl/runtime/cluster/apitest"
	"github.com/podctl/podctl/runtime/cluster/guard"
	"github.com/podctl/podctl/runtime/cluster/mirrors"
	"github.com/podctl/podctl/runtime/cluster/pods"
	"github.com/podctl/podctl/runtime/executor"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/podstatus"
)

// newMirrorNode returns a node whose watch has the given pods.
func newMirrorNode(t *testing.T, stored ...*v1.Pod) *node {
	t.Helper()
	api := apitest.NewCluster()
	for _, pod := range stored {
		api.Put(pod)
	}
	_, config := apitest.Serve(t, api)
	client, err := apiclient.New(config)
	if err != nil {
		t.Fatal(err)
	}
	log, listed := slog.New(slog.DiscardHandler), make(chan struct{})
	n := &node{
		ClusterSettings: &daemon.ClusterSettings{
			NodeName: "n1", MirrorPods: true, NodeIPs: []netip.Addr{netip.MustParseAddr("192.0.2.7")},
		},
		member: &daemon.Member{Settings: daemon.Settings{Now: time.Now, Log: log}, Engine: &runtime.Engine{}},
		client: &cluster.Client{Client: client}, guard: guard.New(guard.Settings{Node: "n1"}),
	}
	n.source = pods.New(pods.Settings{
		Name: podspec.OwnerAPI, Client: client.Core, Node: "n1", Load: load.FromAPI, Log: log, Confirm: apitest.Confirmed,
		Known: func(types.UID) bool { return false }, Listed: func() { close(listed) },
	})
	n.mirrors = newMirrorPods(n)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.source.Run(ctx, nil, func(sources.Update) {})
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	<-listed
	return n
}

// pod returns a pod of the API on this node.
func pod(name, uid, hash string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(uid)}}
	p.Spec.NodeName, p.Spec.Containers = "n1", []v1.Container{{Name: "c", Image: "i"}}
	if hash != "" {
		p.Annotations = map[string]string{v1.MirrorPodAnnotationKey: hash}
	}
	return p
}

const webFile = `{apiVersion: v1, kind: Pod, metadata: {namespace: a, name: web, uid: static}, spec: {containers: [{name: c, image: i}]}}`

// TestMirrorNames checks which object of the API belongs to a pod of this machine: in statuses and in events.
func TestMirrorNames(t *testing.T) {
	n := newMirrorNode(t, pod("web-n1", "mirror", "digest"), pod("db", "own", ""), pod("other-n1", "plain", ""))
	for name, c := range map[string]struct {
		ref    model.PodRef
		uid    types.UID
		events types.UID
	}{
		"a pod with a mirror pod":     {model.PodRef{Namespace: "a", Name: "web", UID: "static"}, "mirror", "digest"},
		"a pod of the API server":     {model.PodRef{Namespace: "a", Name: "db", UID: "own"}, "own", "own"},
		"without a mirror pod":        {model.PodRef{Namespace: "b", Name: "web", UID: "x"}, "x", ""},
		"the name of an ordinary pod": {model.PodRef{Namespace: "a", Name: "other", UID: "y"}, "y", ""},
	} {
		if got := n.mirrors.apiUID(c.ref); got != c.uid {
			t.Errorf("%s: uid %q, want %q", name, got, c.uid)
		}
		about := n.mirrors.eventPod(c.ref)
		if (about == nil) != (c.events == "") || about != nil && about.UID != c.events {
			t.Errorf("%s: events of %v, want %q", name, about, c.events)
		}
	}
	if !n.mirrors.changed("mirror") || n.mirrors.changed("mirror") || n.mirrors.changed("own") {
		t.Error("only the first change of a mirror pod is new")
	}
}

// TestReportedStatus checks from which object of the API the status of a pod is taken.
func TestReportedStatus(t *testing.T) {
	stored := []*v1.Pod{pod("web-n1", "mirror", "digest"), pod("db", "own", ""), pod("other-n1", "plain", "")}
	for _, p := range stored {
		p.Status.Message = string(p.UID)
	}
	n := newMirrorNode(t, stored...)
	for name, c := range map[string]struct {
		pod, uid types.UID
		owner    string
		want     string
	}{
		"a pod of the API server":       {"db", "own", podspec.OwnerAPI, "own"},
		"a recreated pod":               {"db", "new", podspec.OwnerAPI, ""},
		"a pod with a mirror pod":       {"web", "static", "files", "mirror"},
		"without a mirror pod":          {"none", "static", "files", ""},
		"the name of an ordinary pod":   {"other", "static", "files", ""},
		"the uid of a pod of the API":   {"none", "own", "files", ""},
		"the API has only a mirror pod": {"web", "static", podspec.OwnerAPI, ""},
	} {
		meta := metav1.ObjectMeta{Namespace: "a", Name: string(c.pod), UID: c.uid}
		desired := podspec.New(&v1.Pod{ObjectMeta: meta}, c.owner, c.uid)
		desired.Owner = c.owner
		got := n.mirrors.reported(desired)
		if (got == nil) != (c.want == "") || got != nil && got.Message != c.want {
			t.Errorf("%s: %+v, want the status of %q", name, got, c.want)
		}
	}
}

// TestRunsAlone checks after which passes no container of an earlier version runs.
func TestRunsAlone(t *testing.T) {
	d := podspectest.Desired(t, webFile)
	runs := []model.Container{{Name: "c", State: model.Running}, {Name: "old", State: model.Exited}}
	for name, c := range map[string]struct {
		change func(o *executor.Outcome)
		want   bool
	}{
		"all steps were done": {func(*executor.Outcome) {}, true},
		"no plan":             {func(o *executor.Outcome) { o.Plan = nil }, false},
		"a failed step":       {func(o *executor.Outcome) { o.Failed = []executor.StepError{{}} }, false},
		"a skipped step":      {func(o *executor.Outcome) { o.Skipped = []*plan.Step{{}} }, false},
		"its image is missing": {func(o *executor.Outcome) {
			o.Plan.Holds = []plan.Hold{{Container: "c"}}
		}, false},
		"the pod is held": {func(o *executor.Outcome) { o.Plan.Holds = []plan.Hold{{}} }, false},
		"another container is held": {func(o *executor.Outcome) {
			o.Plan.Holds = []plan.Hold{{Container: "old"}}
		}, true},
	} {
		o := &executor.Outcome{
			Plan: &plan.Plan{}, Desired: d,
			Input: &plan.Input{Input: podstatus.Input{Observed: model.Observed{Containers: runs}}},
		}
		if c.change(o); runsAlone(o) != c.want {
			t.Errorf("%s: %t", name, !c.want)
		}
	}
	if runsAlone(nil) {
		t.Error("a pass that could not be made")
	}
}

// TestAlone checks that a version runs alone only after its own pass, and that the end of the pod is noted.
func TestAlone(t *testing.T) {
	n := newMirrorNode(t)
	one := podspectest.Desired(t, webFile)
	two := podspectest.Desired(t, webFile[:len(webFile)-5]+"j}]}}")
	state := func(d *podspec.Desired) mirrors.Pod { return n.mirrors.pods([]agent.ShownPod{{Desired: d}})[0] }
	passed := func(d *podspec.Desired) *agent.Event {
		return &agent.Event{Kind: agent.Passed, Pod: model.RefOf(d.Pod), Outcome: &executor.Outcome{
			Desired: d, Plan: &plan.Plan{}, Input: &plan.Input{},
		}}
	}
	if state(one).Alone {
		t.Error("before a pass")
	}
	n.mirrors.handleEvent(passed(one))
	if !state(one).Alone || state(two).Alone || state(one).Hash == state(two).Hash {
		t.Error("after the pass of the first version")
	}
	n.mirrors.handleEvent(passed(two))
	if !state(two).Alone || state(one).Alone {
		t.Error("after the pass of the second version")
	}
	n.mirrors.handleEvent(&agent.Event{Kind: agent.Ended, Pod: model.RefOf(one.Pod)})
	if state(two).Alone {
		t.Error("after the end of the pod")
	}
	if all := n.mirrors.pods([]agent.ShownPod{{Desired: podspectest.FromAPI(t, podspectest.Minimal)}}); len(all) > 0 {
		t.Error("a pod of the API server has no mirror pod")
	}
	if _, err := n.mirrors.read(t.Context()); !errors.Is(err, errStarting) {
		t.Error(err)
	}
}

// lister returns pods as running on another address.
type lister struct{}

func (lister) List(_ context.Context, all []*podspec.Desired) (found []*v1.Pod, err error) {
	for _, d := range all {
		p := d.Pod.DeepCopy()
		p.Status = v1.PodStatus{Phase: v1.PodRunning, HostIP: "127.0.0.1", HostIPs: []v1.HostIP{{IP: "127.0.0.1"}}}
		found = append(found, p)
	}
	return found, nil
}

// TestShownMirrors checks that a mirror pod has the status of its pod, and the address of the Node.
func TestShownMirrors(t *testing.T) {
	mirror, own := pod("web-n1", "mirror", "digest"), podspectest.FromAPI(t, podspectest.Minimal)
	static := podspectest.Desired(t, webFile)
	n := newMirrorNode(t, mirror)
	health := func(uid types.UID, s *v1.PodStatus) { s.Message = "devices of " + string(uid) }
	s := &shownPods{node: n, mirrors: n.mirrors, lister: lister{}, health: health}
	successor := static.Pod.DeepCopy()
	successor.UID = "successor"
	shown := s.translate([]agent.ShownPod{
		{Desired: own, MayRun: true, Reclaimed: true},
		{Desired: static, Leaving: true},
		{Desired: podspec.New(successor, "", "")},
		{Desired: podspectest.Desired(t, podspectest.Minimal)},
	})
	if len(shown) != 2 || shown[0].Desired != own || !shown[0].MayRun || !shown[0].Reclaimed {
		t.Fatalf("%+v", shown)
	}
	if m := shown[1]; m.Desired.Pod.UID != "mirror" || m.Desired.Pod.Name != "web-n1" || !m.MayRun || m.Reclaimed {
		t.Errorf("%+v", m)
	}
	listed, err := s.List(t.Context(), []*podspec.Desired{shown[1].Desired, own})
	if err != nil || len(listed) != 2 {
		t.Fatal(listed, err)
	}
	if listed[0].Status.Message != "devices of "+string(static.Pod.UID) {
		t.Errorf("%s", listed[0].Status.Message)
	}
	if p := listed[0]; p.UID != "mirror" || p.Status.Phase != v1.PodRunning || p.Status.HostIP != "192.0.2.7" || len(p.Status.HostIPs) != 1 {
		t.Errorf("%+v", p)
	}
	if p := listed[1]; p.UID != own.Pod.UID || p.Status.HostIP != "127.0.0.1" {
		t.Errorf("%+v", p)
	}
}
