package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/owner"
	"github.com/podctl/podctl/runtime/agent/podworkers"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/model"
)

func at(seconds float64) time.Time {
	return time.Unix(1_700_000_000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

// pod returns a pod of a source, or one applied by hand if the source is empty.
func pod(name, uid, image, source string) *podspec.Desired {
	p := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "a", Image: image}}}}
	p.Namespace, p.Name, p.UID = "default", name, types.UID(uid)
	d := podspec.New(p, "/"+cmp.Or(source, "hand")+"/"+name+".yaml", p.UID)
	d.Owner = source
	return d
}

func stored(pods ...*podspec.Desired) map[types.UID]Stored {
	all := map[types.UID]Stored{}
	for _, d := range pods {
		kept := *d
		kept.Stored = true
		all[d.Pod.UID] = Stored{Desired: &kept}
	}
	return all
}

func update(source string, pods ...*podspec.Desired) sources.Update {
	return sources.Update{Source: source, Pods: pods, Complete: true}
}

// passes returns the passes that begin now, such as "sync a i:1" or "terminate a".
func passes(k *reconciler, now float64) string {
	due, _, _ := k.workers.Next(at(now))
	var texts []string
	for _, p := range due {
		text := fmt.Sprintf("%s %s", p.Kind, p.Ref.UID)
		if p.Pod != nil {
			text += " " + p.Pod.Pod.Spec.Containers[0].Image
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	return strings.Join(texts, "; ")
}

func want(t *testing.T, k *reconciler, now float64, wants string) {
	t.Helper()
	if got := passes(k, now); got != wants {
		t.Errorf("at %.0f: %q begin, want %q", now, got, wants)
	}
}

// end ends a pass successfully.
func end(k *reconciler, now float64, d *podspec.Desired, kind podworkers.Kind) {
	k.workers.Done(at(now), d.Pod.UID, podworkers.Result{})
	if kind == podworkers.Terminate {
		k.forget(at(now), d.Pod.UID)
	} else {
		k.recordApplied(d)
	}
}

func newTestReconciler(byHand bool, order ...string) *reconciler {
	ledger := owner.New(owner.Pods, byHand)
	for _, name := range order {
		ledger.Add(named(name))
	}
	workers := podworkers.New(podworkers.Settings{ByUID: ledger.ByUID})
	var k *reconciler
	k = newReconciler(workers, ledger, func(uid types.UID) (*Stored, error) {
		s, known := k.stored[uid]
		if !known {
			return nil, nil
		}
		return &s, nil
	}, func() {})
	return k
}

// TestPodsOfSources checks that pods are created, changed and deleted as the sources require (kubelet:
// TestKubelet_HandlePodCleanups, "pod is added to worker by sync method", "missing pod is requested for termination",
// "started pod that is not in config"). Pods that only the runtime has are not touched.
func TestPodsOfSources(t *testing.T) {
	k := newTestReconciler(true, "dir")
	a := pod("web", "a", "i:1", "dir")
	k.handleSourceUpdate(at(0), update("dir", a))
	want(t, k, 0, "sync a i:1")
	end(k, 1, a, podworkers.Sync)
	k.handleSourceUpdate(at(2), update("dir", pod("web", "a", "i:2", "dir")))
	want(t, k, 2, "sync a i:2")
	end(k, 3, a, podworkers.Sync)
	k.handleSourceUpdate(at(4), update("dir"))
	want(t, k, 4, "terminate a")
	end(k, 5, a, podworkers.Terminate)
	k.handleSourceUpdate(at(6), update("dir"))
	want(t, k, 6, "")
}

// TestNoDeletionBeforeAllSourcesAreRead checks that the stored pods of a source stay as they were until every source
// has been read. After that, only pods that no source wants are deleted (kubelet: TestStaticPodExclusion,
// HandlePodCleanups and its condition that all sources are ready).
func TestNoDeletionBeforeAllSourcesAreRead(t *testing.T) {
	k := newTestReconciler(true, "dir", "url")
	a, b := pod("web", "a", "i:1", "dir"), pod("db", "b", "i:1", "url")
	k.handleRecords(at(0), stored(a, b), nil)
	want(t, k, 0, "sync a i:1; sync b i:1")
	end(k, 1, a, podworkers.Sync)
	end(k, 1, b, podworkers.Sync)
	k.handleSourceUpdate(at(2), update("dir"))
	want(t, k, 2, "")
	k.handleSourceUpdate(at(3), sources.Update{Source: "url", Problems: []sources.Problem{{Text: "away"}}})
	want(t, k, 3, "")
	k.handleSourceUpdate(at(4), update("url", b))
	want(t, k, 4, "")
	k.resolveIfDue(at(6))
	want(t, k, 6, "terminate a")
}

// TestManifestRemovedDuringFirstPass checks a pod whose manifest goes away during its first pass. Until every source
// has been read, it stays as its checkpoint has it. A pod whose pass has not begun is not created.
func TestManifestRemovedDuringFirstPass(t *testing.T) {
	k := newTestReconciler(true, "dir", "url")
	a, b := pod("web", "a", "i:1", "dir"), pod("db", "b", "i:1", "dir")
	k.handleSourceUpdate(at(0), update("dir", a))
	want(t, k, 0, "sync a i:1")
	k.handleSourceUpdate(at(1), update("dir", b))
	k.handleSourceUpdate(at(1), update("dir"))
	want(t, k, 1, "terminate b")
	if d := k.kept["a"]; d == nil || !d.Stored || a.Stored {
		t.Errorf("kept pod %+v", d)
	}
	end(k, 2, a, podworkers.Sync)
	k.handleSourceUpdate(at(3), update("dir"))
	if d := k.kept["a"]; d == nil || !d.Stored {
		t.Errorf("kept pod after the pass %+v", d)
	}
	want(t, k, 3, "")
	k.handleSourceUpdate(at(4), update("url"))
	want(t, k, 4, "terminate a")
}

// TestUnreadableCheckpointDeletesNothing checks that a pod with an unreadable checkpoint is not touched before every
// source has been read.
func TestUnreadableCheckpointDeletesNothing(t *testing.T) {
	k := newTestReconciler(true, "dir")
	a := pod("web", "a", "i:1", "dir")
	k.handleRecords(at(0), stored(a), nil)
	want(t, k, 0, "sync a i:1")
	end(k, 1, a, podworkers.Sync)
	k.handleRecords(at(2), nil, nil)
	want(t, k, 200, "")
	k.handleRecords(at(201), stored(a), nil)
	want(t, k, 201, "sync a i:1")
}

// TestOnlyTheOwningSourceDeletesAPod checks that a source does not delete pods applied by hand or pods of a
// source that the agent does not have.
func TestOnlyTheOwningSourceDeletesAPod(t *testing.T) {
	for _, byHand := range []bool{true, false} {
		k := newTestReconciler(byHand, "dir")
		k.handleRecords(at(0),
			stored(pod("hand", "h", "i:1", ""), pod("other", "o", "i:1", "elsewhere"), pod("web", "a", "i:1", "dir")),
			nil)
		k.handleSourceUpdate(at(1), update("dir"))
		want(t, k, 1, map[bool]string{true: "sync a i:1; sync h i:1; sync o i:1", false: "sync a i:1"}[byHand])
		end(k, 1, pod("web", "a", "i:1", "dir"), podworkers.Sync)
		if due := k.resolveIfDue(at(1)); !due.Equal(at(3)) {
			t.Errorf("next drop at %s", due)
		}
		want(t, k, 2.9, "")
		k.resolveIfDue(at(3))
		want(t, k, 3, "terminate a")
	}
}

// TestFileMissingAtTheStart checks that a pod is not touched if its file comes back within two seconds after the
// start of an agent.
func TestFileMissingAtTheStart(t *testing.T) {
	k := newTestReconciler(true, "dir")
	a := pod("web", "a", "i:1", "dir")
	k.handleRecords(at(0), stored(a), nil)
	k.handleSourceUpdate(at(0), update("dir"))
	want(t, k, 0, "sync a i:1")
	end(k, 0, a, podworkers.Sync)
	k.handleSourceUpdate(at(1.5), update("dir", a))
	k.resolveIfDue(at(2))
	want(t, k, 2, "")
	k.handleSourceUpdate(at(3), update("dir"))
	want(t, k, 3, "terminate a")
}

// TestInvalidManifestsKeepTheirPods checks that a file that is invalid at the start keeps its pods.
func TestInvalidManifestsKeepTheirPods(t *testing.T) {
	k := newTestReconciler(true, "dir")
	a := pod("web", "a", "i:1", "dir")
	k.handleRecords(at(0), stored(a), nil)
	u := update("dir")
	u.Unread = []string{a.Source}
	k.handleSourceUpdate(at(0), u)
	want(t, k, 0, "sync a i:1")
	end(k, 1, a, podworkers.Sync)
	k.resolveIfDue(at(2))
	k.handleSourceUpdate(at(2), update("dir"))
	want(t, k, 2, "terminate a")
}

// TestSourceTakesOverPodsAppliedByHand checks that a source takes over a pod applied by hand, and gives it back when a
// user applies it again.
func TestSourceTakesOverPodsAppliedByHand(t *testing.T) {
	k := newTestReconciler(true, "dir")
	hand, own := pod("web", "a", "i:1", ""), pod("web", "a", "i:2", "dir")
	k.handleRecords(at(0), stored(hand), nil)
	want(t, k, 0, "sync a i:1")
	k.handleSourceUpdate(at(1), update("dir", own))
	end(k, 1, hand, podworkers.Sync)
	want(t, k, 1, "sync a i:2")
	end(k, 2, own, podworkers.Sync)
	k.handleSourceUpdate(at(3), update("dir"))
	want(t, k, 3, "terminate a")
	// The deletion finds that the pod was applied by hand in the meantime.
	k.workers.Done(at(4), "a", podworkers.Result{Failed: true})
	k.workers.Forget("a")
	k.handleRecord(at(4), "a", new(stored(hand)["a"]))
	want(t, k, 4, "sync a i:1")
	end(k, 5, hand, podworkers.Sync)
	k.handleRecord(at(6), "a", nil)
	want(t, k, 100, "")
}

// TestTakeovers checks that a file that provides a pod applied by hand is reported once, as long as it has the pod. The
// source's own pods, those of another source and those of workloads are not reported.
func TestTakeovers(t *testing.T) {
	k := newTestReconciler(true, "dir", model.OwnerWorkloads)
	hand, own := pod("web", "a", "i:1", ""), pod("own", "b", "i:1", "dir")
	other, made := pod("other", "c", "i:1", "gone"), pod("made", "d", "i:1", "")
	k.handleRecords(at(0), stored(hand, own, other, made), nil)
	k.handleSourceUpdate(at(1), update("dir", pod("web", "a", "i:2", "dir"), own, pod("other", "c", "i:1", "dir")))
	k.handleSourceUpdate(at(1), update(model.OwnerWorkloads, pod("made", "d", "i:2", model.OwnerWorkloads)))
	end(k, 2, pod("web", "a", "i:2", "dir"), podworkers.Sync)
	for now := range 3 {
		k.handleSourceUpdate(at(float64(3+now)), update("dir", pod("web", "a", "i:2", "dir"), own, pod("other", "c", "i:1", "dir")))
		all := k.takeoversOf("dir")
		if len(all) != 1 || !all[0].Since.Equal(at(1)) || all[0].File != "/dir/web.yaml" ||
			!strings.Contains(all[0].Text, "pod default/web, which was applied by hand: deleting the file deletes it") {
			t.Errorf("%+v", all)
		}
	}
	if all := k.takeoversOf(model.OwnerWorkloads); len(all) != 0 {
		t.Errorf("of workloads: %+v", all)
	}
	warnings := k.warnings("a")
	if len(warnings) != 1 || warnings[0].Reason != "TakenOver" ||
		!strings.HasPrefix(warnings[0].Text, "/dir/web.yaml takes over") || len(k.warnings("b")) != 0 {
		t.Errorf("%+v", warnings)
	}
	k.handleSourceUpdate(at(7), update("dir", own))
	if all := k.takeoversOf("dir"); len(all) != 0 {
		t.Errorf("takeovers without the file: %+v", all)
	}
}

// TestNameOfAPodAppliedByHand checks that a source's pod with another UID does not replace a pod applied by hand that
// has its name.
func TestNameOfAPodAppliedByHand(t *testing.T) {
	k := newTestReconciler(true, "dir")
	k.handleRecords(at(0), stored(pod("web", "h", "i:1", "")), nil)
	k.handleSourceUpdate(at(0), update("dir", pod("web", "a", "i:2", "dir")))
	want(t, k, 0, "sync h i:1")
	if len(k.problems) != 1 || !strings.Contains(k.problems[0].Text, "podctl delete h") {
		t.Errorf("problems: %+v", k.problems)
	}
	since := k.problems[0].Since
	if k.handleSourceUpdate(at(1), update("dir", pod("web", "a", "i:2", "dir"))); since.IsZero() || !k.problems[0].Since.Equal(since) {
		t.Errorf("problem since %s, later since %s", since, k.problems[0].Since)
	}
	k.workers.Done(at(1), "h", podworkers.Result{})
	k.handleRecord(at(2), "h", nil)
	want(t, k, 2, "sync a i:2")
	if len(k.problems) != 0 {
		t.Errorf("problems: %+v", k.problems)
	}
}

// TestNameOfAnUnownedPod checks that the pod of a workload does not replace a pod that was applied by hand and
// does not belong to the workload. Both have the UID of their name. The pod replaces the workload's own pod.
func TestNameOfAnUnownedPod(t *testing.T) {
	owned := func(owner, image, source string) *podspec.Desired {
		d := pod("web-0", "u", image, source)
		d.Pod.OwnerReferences = []metav1.OwnerReference{{Kind: podspec.KindDeployment, Name: owner, Controller: new(true)}}
		return d
	}
	for _, c := range []struct {
		hand, source *podspec.Desired
		want         string
	}{
		{pod("web-0", "u", "i:1", ""), owned("web", "i:2", "dir"), "sync u i:1"},
		{owned("web", "i:1", ""), pod("web-0", "u", "i:2", "dir"), "sync u i:1"},
		{owned("other", "i:1", ""), owned("web", "i:2", "dir"), "sync u i:1"},
		{owned("web", "i:1", ""), owned("web", "i:2", "dir"), "sync u i:2"},
	} {
		k := newTestReconciler(true, "dir")
		k.handleRecords(at(0), stored(c.hand), nil)
		k.handleSourceUpdate(at(0), update("dir", c.source))
		if want(t, k, 0, c.want); (len(k.problems) == 1) != (c.want == "sync u i:1") {
			t.Errorf("%s: problems %+v", c.want, k.problems)
		}
	}
}

// TestDeletionsContinue checks that an interrupted deletion is finished, no matter which program began it. If a source
// wants the pod, it is recreated afterwards (kubelet: TestKubelet_HandlePodCleanups, "pod that is terminating is
// recreated by config with the same UID", "terminated pod is restarted in the same invocation"; e2e_node: unknown_pods,
// restart).
func TestDeletionsContinue(t *testing.T) {
	k := newTestReconciler(false, "dir")
	all := stored(pod("web", "a", "i:1", ""), pod("db", "b", "i:1", "dir"))
	for uid, s := range all {
		s.Deleting = true
		all[uid] = s
	}
	k.handleRecords(at(0), all, nil)
	k.handleSourceUpdate(at(0), update("dir", pod("db", "b", "i:1", "dir")))
	want(t, k, 0, "terminate a; terminate b")
	end(k, 1, all["b"].Desired, podworkers.Terminate)
	want(t, k, 1, "sync b i:1")
}

// TestDeletedPodAppliedByHand checks that a pod is not deleted because of a pod applied by hand that is gone. The
// checkpoint of that pod is read first. While it cannot be read, the other pod stays as it is.
func TestDeletedPodAppliedByHand(t *testing.T) {
	k := newTestReconciler(true, "dir")
	hand, a := pod("web", "h", "i:1", ""), pod("web", "a", "i:1", "dir")
	k.handleRecords(at(0), stored(hand, a), nil)
	k.read = func(types.UID) (*Stored, error) { return nil, errFault }
	k.handleSourceUpdate(at(0), update("dir", pod("web", "a", "i:2", "dir")))
	k.resolveIfDue(at(3))
	want(t, k, 3, "sync a i:1")
	end(k, 3, a, podworkers.Sync)
	k.read = func(types.UID) (*Stored, error) { return nil, nil }
	k.handleSourceUpdate(at(4), update("dir", pod("web", "a", "i:2", "dir")))
	want(t, k, 4, "sync a i:2")
}

// TestDeletionByAnotherProcess checks that a deletion by another process is finished even if a source wants the pod.
// The pod is recreated afterwards.
func TestDeletionByAnotherProcess(t *testing.T) {
	k := newTestReconciler(true, "dir")
	a := pod("web", "a", "i:1", "dir")
	k.handleSourceUpdate(at(0), update("dir", a))
	want(t, k, 0, "sync a i:1")
	end(k, 1, a, podworkers.Sync)
	leaving := stored(a)["a"]
	leaving.Deleting = true
	k.handleRecord(at(2), "a", &leaving)
	want(t, k, 2, "terminate a")
	end(k, 3, a, podworkers.Terminate)
	want(t, k, 3, "sync a i:1")
}

// TestShownWhileDeleted checks that a pod is shown until it is gone, also if it must be deleted before its first pass
// has ended. A pod whose first pass never began is not shown.
func TestShownWhileDeleted(t *testing.T) {
	k := newTestReconciler(true, "dir")
	a, b := pod("web", "a", "i:1", "dir"), pod("web", "b", "i:1", "dir")
	shows := func(when string, wants ...string) {
		t.Helper()
		var uids []string
		for _, d := range k.shownPods() {
			uids = append(uids, string(d.Pod.UID))
		}
		if slices.Sort(uids); !slices.Equal(uids, wants) {
			t.Errorf("%s: shown pods %v, want %v", when, uids, wants)
		}
	}
	k.handleSourceUpdate(at(0), update("dir", a))
	want(t, k, 0, "sync a i:1")
	shows("it is kept", "a")
	k.handleSourceUpdate(at(1), update("dir", b))
	shows("another takes its name", "a", "b")
	k.handleSourceUpdate(at(2), update("dir"))
	shows("neither is wanted", "a")
	end(k, 3, a, podworkers.Sync)
	want(t, k, 3, "terminate a")
	shows("it is being deleted", "a")
	k.handleSourceUpdate(at(4), update("dir", a))
	shows("it is wanted again", "a")
	k.handleSourceUpdate(at(5), update("dir"))
	end(k, 6, a, podworkers.Terminate)
	shows("it is gone")
	if len(k.leaving) > 1 {
		t.Errorf("%d pods are still in leaving", len(k.leaving))
	}
}

// TestShownAfterAnEdit checks that a pod is shown in the version that was applied last.
func TestShownAfterAnEdit(t *testing.T) {
	k := newTestReconciler(true, "dir")
	first, edited := pod("web", "a", "i:1", "dir"), pod("web", "a", "i:2", "dir")
	k.handleRecords(at(0), stored(first), nil)
	for second, d := range []*podspec.Desired{first, edited, first} {
		now := float64(second)
		before := k.shownPods()[0]
		k.handleSourceUpdate(at(now), update("dir", d))
		if shown := k.shownPods(); len(shown) != 1 || shown[0] != before {
			t.Errorf("%d, before the pass: %d pods shown, the first with %s", second, len(shown), shown[0].Pod.Spec.Containers[0].Image)
		}
		want(t, k, now, "sync a "+d.Pod.Spec.Containers[0].Image)
		end(k, now, d, podworkers.Sync)
		if shown := k.shownPods(); len(shown) != 1 || !shown[0].SameManifest(d) {
			t.Errorf("%d, after the pass: %d pods shown, the first with %s", second, len(shown), shown[0].Pod.Spec.Containers[0].Image)
		}
	}
}

// TestManyDuplicates checks that only some of the pods that two sources want are listed.
func TestManyDuplicates(t *testing.T) {
	k := newTestReconciler(true, "one", "two")
	var first, second []*podspec.Desired
	for i := range 40 {
		name := fmt.Sprint("p", i)
		first, second = append(first, pod(name, name, "i:1", "one")), append(second, pod(name, name, "i:2", "two"))
	}
	k.handleSourceUpdate(at(0), update("one", first...))
	k.handleSourceUpdate(at(0), update("two", second...))
	rest := func(p sources.Problem) bool { return p.File == "two" && p.Text == "not listed: 20 more problems" }
	if len(k.problems) != 21 || !slices.ContainsFunc(k.problems, rest) {
		t.Errorf("%d problems: %+v", len(k.problems), k.problems)
	}
}

// TestTwoPodsOfAName checks two existing pods with one name, which another process or an earlier agent may have left.
// The one that no source wants is deleted.
func TestTwoPodsOfAName(t *testing.T) {
	k := newTestReconciler(true, "dir")
	a, b := pod("web", "a", "i:1", "dir"), pod("web", "b", "i:1", "dir")
	k.handleRecords(at(0), stored(a, b), nil)
	want(t, k, 0, "sync a i:1")
	k.handleSourceUpdate(at(1), update("dir", a))
	k.resolveIfDue(at(3))
	k.handleRecords(at(3), stored(a, b), nil)
	want(t, k, 3, "terminate b")
	end(k, 3, b, podworkers.Terminate)
	end(k, 3, a, podworkers.Sync)
	want(t, k, 3, "")
}

// TestCleanups checks that pods that no source wants any more are deleted, whatever the result of their passes, and
// that failed deletions are retried (kubelet: TestKubelet_HandlePodCleanups, "pod that could not start and is not in
// config", "terminating pod that errored and is not in config", "terminating pod that is known to the config gets no
// update").
func TestCleanups(t *testing.T) {
	k := newTestReconciler(true, "dir")
	a := pod("web", "a", "i:1", "dir")
	k.handleSourceUpdate(at(0), update("dir", a))
	want(t, k, 0, "sync a i:1")
	k.workers.Done(at(1), "a", podworkers.Result{Failed: true})
	k.handleSourceUpdate(at(2), update("dir"))
	want(t, k, 2, "terminate a")
	k.workers.Done(at(3), "a", podworkers.Result{Failed: true})
	want(t, k, 12, "")
	want(t, k, 13, "terminate a")
	k.handleSourceUpdate(at(14), update("dir", a))
	k.handleRecords(at(14), stored(a), nil)
	want(t, k, 14, "")
	k.workers.Done(at(15), "a", podworkers.Result{Failed: true})
	want(t, k, 25, "terminate a")
	end(k, 26, a, podworkers.Terminate)
	want(t, k, 26, "sync a i:1")
}

// TestUnreadableCheckpointKeepsItsLastVersion checks that neither the pod of an unreadable checkpoint nor another pod
// of its name is touched. Other pods are updated.
func TestUnreadableCheckpointKeepsItsLastVersion(t *testing.T) {
	k := newTestReconciler(true, "dir")
	hand, a := pod("web", "h", "i:1", ""), pod("db", "a", "i:1", "dir")
	k.handleRecords(at(0), stored(hand, a), nil)
	want(t, k, 0, "sync a i:1; sync h i:1")
	end(k, 1, hand, podworkers.Sync)
	end(k, 1, a, podworkers.Sync)
	k.handleRecords(at(2), stored(), map[types.UID]error{"h": errFault, "a": errFault})
	k.handleSourceUpdate(at(3), update("dir", pod("web", "w", "i:1", "dir"), a))
	want(t, k, 3, "")
	if ref := k.nameHolder(pod("web", "w", "i:1", "dir")); ref == nil || ref.UID != "h" {
		t.Errorf("nameHolder returns %v", ref)
	}
	k.handleRecords(at(4), stored(a), nil)
	want(t, k, 4, "sync w i:1")
}

// TestRecreatedPodWaitsForItsName checks that a pod deleted by another process is recreated only when no other pod of
// its name exists.
func TestRecreatedPodWaitsForItsName(t *testing.T) {
	k := newTestReconciler(true, "dir")
	a, b := pod("web", "a", "i:1", "dir"), pod("web", "b", "i:1", "dir")
	leaving := stored(b)["b"]
	leaving.Deleting = true
	k.handleRecords(at(0), stored(a), nil)
	k.handleSourceUpdate(at(0), update("dir", a))
	want(t, k, 0, "sync a i:1")
	end(k, 1, a, podworkers.Sync)
	k.handleRecord(at(2), "b", &leaving)
	want(t, k, 2, "terminate b")
	k.handleRecord(at(4), "a", nil)
	k.workers.Wake(at(4), "a")
	want(t, k, 4, "")
	end(k, 5, b, podworkers.Terminate)
	want(t, k, 5, "sync a i:1")
}

// TestEndsOfAPods checks that a pod that its source deletes gets End passes and is shown until the source has removed
// it. A file's pod of the same name, and a new pod with it, run meanwhile. A deletion that has begun is finished first.
func TestEndsOfAPods(t *testing.T) {
	k := newTestReconciler(true, "dir")
	k.ledger.Add(byUID{apiSource})
	a, b, c := pod("web", "a", "i:1", "api"), pod("web", "b", "i:1", "api"), pod("web", "c", "i:1", "dir")
	ending := func(grace int64, pods ...*podspec.Desired) sources.Update {
		u := update("api", pods...)
		u.Ending = map[types.UID]int64{"a": grace}
		return u
	}
	k.handleSourceUpdate(at(0), update("dir", c))
	k.handleSourceUpdate(at(0), update("api", a))
	want(t, k, 0, "sync a i:1; sync c i:1")
	end(k, 1, a, podworkers.Sync)
	end(k, 1, c, podworkers.Sync)
	k.handleSourceUpdate(at(2), ending(30, a, b))
	want(t, k, 2, "end a i:1; sync b i:1")
	if k.kept["a"] != nil || k.kept["b"] == nil || len(k.shownPods()) != 3 || !k.workers.Ending("a") {
		t.Errorf("kept %v, shown %v", k.kept, k.shownPods())
	}
	if last := k.shownPods()[2]; last.Pod.UID != "a" {
		t.Errorf("pod %s is shown after the one that ends", last.Pod.UID)
	}
	k.workers.Done(at(3), "a", podworkers.Result{Ended: true})
	s := stored(a)["a"]
	s.End = &model.End{Done: true}
	k.handleRecord(at(3), "a", &s)
	want(t, k, 3, "")
	if len(k.shownPods()) != 3 || !k.workers.Ended("a") {
		t.Errorf("after the end: shown %v", k.shownPods())
	}
	k.handleSourceUpdate(at(4), update("api", b))
	want(t, k, 4, "terminate a")
	k.handleSourceUpdate(at(4), ending(1, a, b))
	end(k, 5, a, podworkers.Terminate)
	want(t, k, 5, "end a i:1")
	k.workers.Done(at(6), "a", podworkers.Result{Failed: true})
	s.Deleting = true
	k.handleRecord(at(6), "a", &s)
	want(t, k, 6, "terminate a")
}

// TestForcedDeletion checks that a pod that is gone with a shorter grace period than before ends within that.
func TestForcedDeletion(t *testing.T) {
	k := newTestReconciler(true)
	k.ledger.Add(byUID{apiSource})
	a := pod("web", "a", "i:1", "api")
	k.handleSourceUpdate(at(0), update("api", a))
	want(t, k, 0, "sync a i:1")
	end(k, 1, a, podworkers.Sync)
	for i, grace := range []int64{3600, 0} {
		u := update("api")
		if grace > 0 {
			u.Pods = []*podspec.Desired{a}
		}
		u.Ending = map[types.UID]int64{"a": grace}
		k.handleSourceUpdate(at(float64(2+i)), u)
		due, cut, _ := k.workers.Next(at(float64(2 + i)))
		if grace == 0 { // The pass with the longer period runs.
			if !slices.Equal(cut, []types.UID{"a"}) {
				t.Errorf("cut short are the passes of %v", cut)
			}
			k.workers.Done(at(4), "a", podworkers.Result{Failed: true})
			due, _, _ = k.workers.Next(at(4))
		}
		if len(due) != 1 || *due[0].Grace != max(grace, 1) {
			t.Errorf("grace period %d: %+v", grace, due)
		}
	}
}
