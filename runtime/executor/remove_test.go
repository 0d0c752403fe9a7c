package executor

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cgroup"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/runtimetest"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// recordOf returns a record of an attempt of container a.
func recordOf(id string, attempt uint32) snapshot.Container {
	return snapshot.Container{
		Status: &runtimeapi.ContainerStatus{
			Id:       id,
			Metadata: &runtimeapi.ContainerMetadata{Name: "a", Attempt: attempt},
		},
	}
}

// TestLogsRemovedWithARecord checks that the logs of a container that left the manifest or never ran are removed, and
// those of older runs. The logs for `logs --previous` stay.
func TestLogsRemovedWithARecord(t *testing.T) {
	for name, c := range map[string]struct {
		logs    plan.Logs
		attempt uint32
		// starts is an attempt that the plan starts, superseded another record that is removed.
		starts     uint32
		superseded string
		want       string
	}{
		"removed from the manifest":           {plan.RemoveOwnLogs, 2, 9, "", "0 1 3"},
		"its sandbox was replaced":            {plan.RemoveOwnLogs, 2, 9, "", "0 1 3"},
		"the container never ran":             {plan.RemoveOwnLogs, 3, 9, "", "0 1 2"},
		"a newer one followed":                {plan.RemoveSupersededLogs, 1, 9, "1", "2 3"},
		"a newer one of the same attempt":     {plan.RemoveSupersededLogs, 2, 9, "", "0 1 2 3"},
		"started again with the same attempt": {plan.RemoveSupersededLogs, 1, 1, "1", "0 1 2 3"},
		"all are restarted":                   {plan.RemoveOlderLogs, 3, 9, "", "2 3"},
		"any other reason":                    {plan.KeepLogs, 3, 9, "", "0 1 2 3"},
	} {
		logs := state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}.Pod("u")
		dir := makeLogs(t, logs, "0", "1", "2", "3")
		s := plan.Step{Kind: plan.RemoveContainer, Container: "a", ContainerID: "id", Attempt: c.attempt, Logs: c.logs}
		x := &remover{&subject{
			plan: &plan.Plan{Pod: model.PodRef{Namespace: "ns", Name: "web", UID: "u"}, Steps: []plan.Step{
				s,
				{Kind: plan.StartContainer, Container: "a", Attempt: c.starts},
				{Kind: plan.RemoveContainer, Logs: plan.RemoveSupersededLogs, ContainerID: c.superseded},
			}},
			snapshot: &snapshot.Pod{Containers: []snapshot.Container{recordOf("1", 1), recordOf("2", 2), recordOf("3", 3)}}, pod: logs,
		}}
		if c.superseded == "" {
			x.snapshot.Containers = x.snapshot.Containers[1:]
		}
		if err := x.removeLogs(&s); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := logsIn(t, dir); got != c.want {
			t.Errorf("%s: remaining logs %q, want %q", name, got, c.want)
		}
	}
}

// makeLogs creates logs of container a of pod web.
func makeLogs(t *testing.T, of state.Pod, attempts ...string) (dir string) {
	t.Helper()
	logs := of.Logs("ns", "web")
	path, err := logs.File("a", 0)
	if err = errors.Join(err, logs.Make("a")); err != nil {
		t.Fatal(err)
	}
	for _, n := range attempts {
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), n+".log"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Dir(path)
}

func logsIn(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".log"))
	}
	return strings.Join(names, " ")
}

// TestTerminationMessagesAreRemovedWithRecords checks that the file of a removed record is removed, and those of others
// stay. A start removes files that no container uses.
func TestTerminationMessagesAreRemovedWithRecords(t *testing.T) {
	l := newLab(t, "i:1")
	p := l.apply(onePod())
	kept := l.layout.Pod(p.in.Pod.UID).TerminationLogs("a")
	dir, _ := kept.Dir()
	files := func() []string {
		t.Helper()
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		names := make([]string, 0, len(entries))
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	used := files()
	orphan, err := kept.New()
	if err != nil || len(used) != 1 {
		t.Fatal(err, used)
	}
	x := l.plan(model.PodRef{}, onePod()).execution(Options{})
	if err = x.remove.removeTerminationMessage(&plan.Step{Container: "a", ContainerID: "another"}); err != nil || len(files()) != 2 {
		t.Errorf("after removing the record of another container: %v, files %v", err, files())
	}
	made, err := x.start.terminationLog("a")
	if got := files(); err != nil || len(got) != 2 || slices.Contains(got, filepath.Base(orphan)) ||
		!slices.Contains(got, filepath.Base(made)) {
		t.Errorf("file of another start: %v, %v", got, err)
	}
	step := &plan.Step{Container: "a", ContainerID: p.snapshot.Containers[0].Status.GetId()}
	if err := x.remove.removeTerminationMessage(step); err != nil || slices.Contains(files(), used[0]) {
		t.Errorf("after removing the record: %v, files %v", err, files())
	}
}

// TestFilesAreRemovedBeforeTheirRecord checks that a record stays while its files cannot be removed, so that podctl
// still finds them.
func TestFilesAreRemovedBeforeTheirRecord(t *testing.T) {
	l := newLab(t, "i:1")
	p := l.apply(onePod())
	x := l.plan(model.PodRef{}, onePod()).execution(Options{})
	x.plan.Pod.Name = "../web"
	s := &plan.Step{Container: "a", ContainerID: p.snapshot.Containers[0].Status.GetId(), Logs: plan.RemoveOwnLogs}
	if err := x.remove.removeContainer(t.Context(), s); err == nil || l.count("RemoveContainer") > 0 {
		t.Errorf("%v after %v", err, l.server.Calls())
	}
	x.plan.Pod.Name = "web"
	dir, _ := l.layout.Pod(p.in.Pod.UID).TerminationLogs("a").Dir()
	if err := x.remove.removeContainer(t.Context(), s); err != nil || l.count("RemoveContainer") != 1 || logsIn(t, dir) != "" {
		t.Errorf("%v after %v, remaining logs %q", err, l.server.Calls(), logsIn(t, dir))
	}
}

// claimPod has a claim.
func claimPod(name string) string {
	return strings.Replace(pod("  containers: [{name: a, image: 'i:1', volumeMounts: [{name: c, mountPath: /c}]}]\n"+
		"  volumes: [{name: c, persistentVolumeClaim: {claimName: data}}]\n"), "{name: web}", "{name: "+name+"}", 1)
}

// TestClaimsUsedByOtherPodsAreKept checks that a claim is removed only on request, if it is known that no other pod
// uses it.
func TestClaimsUsedByOtherPodsAreKept(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*lab)
		options Options
		kept    bool
		warning string
	}{
		"not asked for": {func(*lab) {}, Options{}, true, ""},
		"asked for":     {func(*lab) {}, Options{Options: plan.Options{RemoveVolumes: true}}, false, ""},
		"another's too": {
			func(l *lab) { l.apply(claimPod("other")) },
			Options{Options: plan.Options{RemoveVolumes: true}},
			true,
			"the claim data is kept: pod default/other uses it",
		},
		"unknown user": {func(l *lab) {
			other := l.apply(claimPod("other")).in.Pod
			if err := os.WriteFile(l.layout.Pod(other.UID).Checkpoint().Path(), []byte("{"), 0o600); err != nil {
				l.t.Fatal(err)
			}
		}, Options{Options: plan.Options{RemoveVolumes: true}}, true, "remove "},
	} {
		l := newLab(t, "i:1")
		c.prepare(l)
		ref := l.apply(claimPod("web")).in.Pod
		if outcome, err := l.plan(ref, "").run(c.options); err != nil || outcome.Err() != nil {
			t.Fatal(name, err, outcome.Err())
		}
		claims, err := l.layout.Claims().List()
		if err != nil || (len(claims) == 1) != c.kept {
			t.Errorf("%s: claims %v, %v", name, claims, err)
		}
		if got := strings.Join(l.warnings(), "\n"); (got == "") != (c.warning == "") || !strings.Contains(got, c.warning) {
			t.Errorf("%s: warnings %q, want %q", name, got, c.warning)
		}
	}
}

// TestRefusedClaims checks that a claim whose name leads to another directory stays and is reported as a
// failure, and that the checkpoint is removed.
func TestRefusedClaims(t *testing.T) {
	l := newLab(t, "i:1")
	ref := l.apply(onePod()).in.Pod
	p := l.plan(ref, "")
	p.snapshot.Checkpoint.Applied = loadPod(t, claimPod("web"))
	p.snapshot.Checkpoint.Applied.Pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = "../../etc"
	outcome, err := p.run(Options{Options: plan.Options{RemoveVolumes: true}})
	if err != nil || outcome.Err() == nil || !strings.Contains(outcome.Err().Error(), "../../etc") {
		t.Fatal(err, outcome.Err())
	}
	if j := l.checkpoint(ref); j.Applied != nil {
		t.Error("the deleted pod still has a checkpoint")
	}
}

// TestCgroupsOfAnyQoSAreRemoved checks that cgroups of the pod under any quality of service are removed, and its own
// even if it is incomplete. If one cannot be removed, the others still are.
func TestCgroupsOfAnyQoSAreRemoved(t *testing.T) {
	l := newLab(t, "i:1")
	ref := l.apply(onePod()).in.Pod
	x := l.plan(ref, "").execution(Options{})
	names := criconfig.CgroupParents(ref.UID, x.node())
	for _, name := range names[1:] {
		if err := l.cgroups.Ensure(name, cgroup.Resources{}); err != nil {
			t.Fatal(err)
		}
	}
	l.cgroups.Fail(errors.New("injected failure"))
	if err := x.remove.removeCgroup(t.Context()); err == nil || !strings.Contains(err.Error(), "injected failure") {
		t.Errorf("error %v", err)
	}
	l.cgroups.Fail(nil)
	if err := x.remove.removeCgroup(t.Context()); err != nil || slices.ContainsFunc(names, l.cgroups.Exists) {
		t.Errorf("%v: one of the cgroups %v still exists", err, names)
	}
}

// TestLogsOfDeletedPods checks that logs are moved aside, so that the next pod with the name starts at zero.
func TestLogsOfDeletedPods(t *testing.T) {
	l := newLab(t, "i:1")
	ref := l.apply(onePod()).in.Pod
	logs := l.layout.Pod(ref.UID).Logs("default", "web")
	x := l.plan(ref, "").execution(Options{})
	if _, there := logs.Last("a"); !there {
		t.Fatal("there are no logs")
	}
	if err := x.remove.archiveLogs(); err != nil {
		t.Fatal(err)
	}
	aside, err := filepath.Glob(filepath.Join(l.layout.LogRoot, ".deleted", "*", "a", "0.log"))
	if _, there := logs.Last("a"); there || err != nil || len(aside) != 1 {
		t.Errorf("logs exist %t, archived %v, %v", there, aside, err)
	}
}

// TestFailedSandboxStops checks that the failure has the kubelet's name, and that later steps are left for
// the next pass.
func TestFailedSandboxStops(t *testing.T) {
	l := newLab(t, "i:1")
	ref := l.apply(onePod()).in.Pod
	l.server.Fail(runtimetest.Fault{Method: "StopPodSandbox", Times: 1, Err: errors.New("injected failure")})
	outcome, err := l.plan(ref, "").run(Options{})
	if err != nil || len(outcome.Failed) != 1 || outcome.Failed[0].Reason != "KillPodSandboxError" ||
		len(outcome.Skipped) == 0 || l.count("RemovePodSandbox") > 0 {
		t.Errorf("%v, %v, skipped %d, calls %v", err, outcome.Failed, len(outcome.Skipped), l.server.Calls())
	}
}

// TestLasting checks that a change of the desired state does not cancel the stop of a sandbox, and that any other cause
// does.
func TestLasting(t *testing.T) {
	for cause, cancels := range map[error]bool{ErrOutdated: false, context.Canceled: true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			own, end := lasting(ctx)
			defer end()
			cancel(cause)
			synctest.Wait()
			if canceled := own.Err() != nil; canceled != cancels {
				t.Errorf("%v: canceled %t", cause, canceled)
			}
		})
	}
}

// TestManifestOfHooks checks that the desired manifest counts, and without it the one applied last.
func TestManifestOfHooks(t *testing.T) {
	wanted, applied := loadPod(t, onePod()), loadPod(t, endingPod("1"))
	for name, c := range map[string]struct {
		x    subject
		want *podspec.Desired
	}{
		"wanted": {subject{desired: wanted, applied: applied}, wanted}, "goes": {subject{applied: applied}, applied},
	} {
		if got := c.x.manifest(); got != c.want.Pod {
			t.Errorf("%s: got another manifest", name)
		}
	}
	if got := (&subject{}).manifest(); got != nil {
		t.Errorf("without a manifest: %v", got)
	}
}

// TestPassesTrimFiles checks that a pass frees disk space used by termination messages, also without an agent.
func TestPassesTrimFiles(t *testing.T) {
	l := newLab(t, "i:1")
	p := l.apply(onePod())
	path, err := l.layout.Pod(p.in.Pod.UID).TerminationLogs("a").New()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.run(Options{}); err != nil {
		t.Fatal(err)
	}
	if size := statedir.Size(path); size > 16<<10 {
		t.Errorf("the file of the termination message has %d bytes", size)
	}
}
