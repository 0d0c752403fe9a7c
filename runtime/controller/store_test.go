package controller

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

const manifest = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  revisionHistoryLimit: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: a, image: 'i:1', envFrom: [{secretRef: {name: s}}]}]
---
apiVersion: v1
kind: Secret
metadata: {name: s}
stringData: {key: hunter2}
`

// deployment returns the Deployment of the manifest after edits.
func deployment(t *testing.T, edits ...string) *podspec.Workload {
	t.Helper()
	m, err := load.Loader{Workloads: true}.Parse(input.Source{Name: "-", Text: []byte(strings.NewReplacer(edits...).Replace(manifest))})
	if err = errors.Join(err, m.Err()); err != nil {
		t.Fatal(err)
	}
	return m.Workloads[0]
}

func newStore(t *testing.T) *Store {
	t.Helper()
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	return NewStore(
		&state.Locker{Layout: state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()}, Waiting: func(string) {}},
		func() time.Time { now = now.Add(time.Hour); return now },
	)
}

func put(t *testing.T, s *Store, w *podspec.Workload) Change {
	t.Helper()
	c, err := s.Put(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestWorkloadOutcomes checks that a workload is created once, and configured if it or its Secrets differ. Only
// another template is another revision, and the history limit applies.
func TestWorkloadOutcomes(t *testing.T) {
	s := newStore(t)
	for i, c := range []struct {
		edits    []string
		outcome  objects.Outcome
		revision int64
	}{
		{nil, objects.Created, 1},
		{nil, objects.Unchanged, 1},
		{[]string{"replicas: 2", "replicas: 3"}, objects.Configured, 1},
		{[]string{"i:1", "i:2"}, objects.Configured, 2},
		{[]string{"i:1", "i:2", "hunter2", "hunter3"}, objects.Configured, 3},
		{nil, objects.Configured, 4},
	} {
		got := put(t, s, deployment(t, c.edits...))
		if got.Outcome != c.outcome || got.Record.Revision() != c.revision {
			t.Errorf("%d: %s, revision %d", i, got.Outcome, got.Record.Revision())
		}
	}
	r, err := s.Get(state.ObjectKey{Namespace: "default", Kind: podspec.KindDeployment, Name: "web"})
	if err != nil || len(r.Revisions) != 3 || r.Revisions[0].Number != 2 || r.CreatedAt.Hour() != 13 {
		t.Fatalf("%+v %v", r, err)
	}
	if got := string(r.Revisions[1].Pod.Objects.Secrets["s"].Data["key"]); got != "hunter3" {
		t.Errorf("revision 3 has the value %q", got)
	}
	found, err := s.Delete(t.Context(), r.Key())
	if !found || err != nil {
		t.Errorf("%t %v", found, err)
	}
	_, err = s.Get(r.Key())
	if absent := (*objects.NotFoundError)(nil); !errors.As(err, &absent) {
		t.Error(err)
	}
	if found, err = s.Delete(t.Context(), r.Key()); found || err != nil {
		t.Errorf("again: %t %v", found, err)
	}
}

// TestSets checks that the set of a workload is stored and is no change.
func TestSets(t *testing.T) {
	s := newStore(t)
	in := func(set string) *podspec.Workload {
		w := deployment(t)
		w.Set = set
		return w
	}
	for i, c := range []struct {
		set     string
		outcome objects.Outcome
	}{{"", objects.Created}, {"default/a", objects.Unchanged}, {"default/b", objects.Unchanged}, {"", objects.Unchanged}} {
		got := put(t, s, in(c.set))
		if got.Outcome != c.outcome || got.Record.Revision() != 1 {
			t.Errorf("%d: %s, revision %d", i, got.Outcome, got.Record.Revision())
		}
		if r, err := s.Get(got.Record.Key()); err != nil || r.Workload.Set != c.set || r.CreatedAt.Hour() != 13 {
			t.Errorf("%d: %+v %v", i, r, err)
		}
	}
}

// TestDamagedRecords checks that the error names the fix and contains no value, that others are still listed, and that
// the damaged record can be replaced and removed.
func TestDamagedRecords(t *testing.T) {
	s := newStore(t)
	r := put(t, s, deployment(t)).Record
	put(t, s, deployment(t, "name: web", "name: other"))
	path, err := s.Dir.Path(r.Key())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`{"workload": {"hunter2`, `null`, `{"workload":{}}`,
		`{"workload":{"deployment":{"metadata":{"namespace":"default","name":"hunter2"}},"template":{"pod":{}}},` +
			`"revisions":[{"pod":{"pod":{}}}]}`,
		`{"workload":{"deployment":{"metadata":{"namespace":"default","name":"web"}},"template":{"pod":{}}},"revisions":[{}]}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := s.List(func(state.ObjectKey) bool { return true })
		if len(found) != 1 || !errors.Is(err, state.ErrDamaged) ||
			strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "podctl delete deployment/web") {
			t.Errorf("%s: %v %v", text, found, err)
		}
		if c := put(t, s, deployment(t)); c.Outcome != objects.Configured {
			t.Errorf("%s: %s", text, c.Outcome)
		}
	}
	const newer = `{"version":2,"workload":{"deployment":{"metadata":{"namespace":"default","name":"web"}},` +
		`"template":{"pod":{}}},"revisions":[{"pod":{"pod":{}}}]}`
	if err := os.WriteFile(path, []byte(newer), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), deployment(t)); !errors.Is(err, state.ErrNewer) {
		t.Errorf("the record of a newer podctl: %v", err)
	}
}

// TestOwns checks that a pod belongs to the workload that controls it.
func TestOwns(t *testing.T) {
	w := deployment(t)
	pod := w.Template.Pod.DeepCopy()
	if Owns(KeyOf(w), pod) {
		t.Error("a pod without an owner")
	}
	for change, want := range map[string]bool{"": true, "namespace": false, "name": false, "kind": false} {
		key := KeyOf(w)
		pod := expandedPod(t, w)
		switch change {
		case "namespace":
			pod.Namespace = "other"
		case "name":
			key.Name = "other"
		case "kind":
			key.Kind = podspec.KindStatefulSet
		}
		if Owns(key, pod) != want {
			t.Errorf("another %q: %t", change, !want)
		}
	}
}

// TestOwnsPod checks that a pod of the API server belongs to no stored workload.
func TestOwnsPod(t *testing.T) {
	w := deployment(t)
	for owner, want := range map[string]bool{"": true, podspec.OwnerAPI: false} {
		d := podspec.New(expandedPod(t, w), "", "")
		d.Owner = owner
		pods := PodsOf(KeyOf(w), []state.AppliedPod{{Desired: d}})
		if OwnsPod(KeyOf(w), d) != want || (len(pods) == 1) != want {
			t.Errorf("owner %q: %t, %d pods", owner, !want, len(pods))
		}
	}
}

// expandedPod returns the first pod of a workload that has none.
func expandedPod(t *testing.T, w *podspec.Workload) *v1.Pod {
	t.Helper()
	s := newStore(t)
	x := Expander{Layout: s.locker.Layout, Objects: objects.New(s.locker, s.now), Lister: emptyLister{}, Now: s.now}
	expansion, err := x.Expand(t.Context(), put(t, s, w).Record, nil)
	if err != nil || len(expansion.Pods) != 2 {
		t.Fatalf("%+v %v", expansion, err)
	}
	return expansion.Pods[0].Pod
}

// TestFrozenFields checks that changes that the API server refuses are refused and not stored.
func TestFrozenFields(t *testing.T) {
	s := newStore(t)
	put(t, s, deployment(t))
	_, err := s.Put(t.Context(), deployment(t, "app: web", "app: other"))
	if !objects.IsRefusal(err) || !strings.Contains(err.Error(), "deployment default/web: spec.selector cannot change") {
		t.Error(err)
	}
	if c := put(t, s, deployment(t)); c.Outcome != objects.Unchanged {
		t.Error(c.Outcome)
	}
	job := []string{
		"apps/v1",
		"batch/v1",
		"kind: Deployment",
		"kind: Job",
		"  replicas: 2\n  revisionHistoryLimit: 2\n  selector: {matchLabels: {app: web}}\n",
		"",
		"    spec:\n",
		"    spec:\n      restartPolicy: Never\n",
	}
	put(t, s, deployment(t, job...))
	if _, err := s.Put(t.Context(), deployment(t, append(job, "i:1", "i:2")...)); !objects.IsRefusal(err) ||
		!strings.Contains(err.Error(), "spec.template") {
		t.Error(err)
	}
	if c := put(t, s, deployment(t, append(job, "  template:", "  parallelism: 2\n  template:")...)); c.Outcome != objects.Configured {
		t.Error(c.Outcome)
	}
}

// TestTick checks that a due run of a CronJob starts once, even if podctl was killed before it recorded the run. Old
// Jobs are deleted, and the record of the runs stays when the CronJob is applied again.
func TestTick(t *testing.T) {
	s := newStore(t)
	now := time.Date(2026, 5, 4, 12, 0, 30, 0, time.UTC)
	s.now = func() time.Time { return now }
	cron := []string{
		"apps/v1", "batch/v1", "kind: Deployment", "kind: CronJob",
		"  replicas: 2\n  revisionHistoryLimit: 2\n  selector: {matchLabels: {app: web}}\n",
		"  schedule: '* * * * *'\n  successfulJobsHistoryLimit: 0\n  jobTemplate:\n   spec:\n",
		"  template:", "    template:", "    metadata: {l", "      metadata: {l", "    spec:\n",
		"      spec:\n        restartPolicy: Never\n", "      containers", "        containers",
	}
	r := put(t, s, deployment(t, cron...)).Record
	tick := func(wantChanged bool, wantJobs ...string) []*Record {
		t.Helper()
		all, err := s.List(func(state.ObjectKey) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		if r, err = s.Get(r.Key()); err != nil {
			t.Fatal(err)
		}
		changed, next, err := s.Tick(t.Context(), r, all)
		if err != nil || changed != wantChanged || !next.Equal(now.Truncate(time.Minute).Add(time.Minute)) {
			t.Errorf("at %s: %t, next at %s, %v", now, changed, next, err)
		}
		if all, err = s.List(func(state.ObjectKey) bool { return true }); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, job := range JobsOf(r.Key(), all) {
			names = append(names, job.Key().Name)
		}
		if !slices.Equal(names, wantJobs) {
			t.Errorf("at %s there are %v, want %v", now, names, wantJobs)
		}
		return JobsOf(r.Key(), all)
	}
	tick(false)
	now = now.Add(time.Minute)
	jobs := tick(true, "web-29631601")
	tick(false, "web-29631601")
	if err := s.change(t.Context(), r.Key(), func(now *Record) { now.Cron = nil }); err != nil {
		t.Fatal(err)
	}
	tick(true, "web-29631601")
	done := *jobs[0]
	done.Job = &batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: v1.ConditionTrue}}}
	if err := s.KeepJob(t.Context(), &done); err != nil {
		t.Fatal(err)
	}
	put(t, s, deployment(t, append(cron, "i:1", "i:2")...))
	now = now.Add(time.Minute)
	if jobs = tick(true, "web-29631602"); jobs[0].Workload.Template.Pod.Spec.Containers[0].Image != "i:2" {
		t.Error("the new Job is of the old template")
	}
}

// TestOwners checks that the owner of a workload is stored with its file, and that a new owner does not change the
// workload. The file of a workload that is applied by hand is not compared.
func TestOwners(t *testing.T) {
	s := newStore(t)
	put(t, s, deployment(t))
	for _, c := range []struct{ owner, file, want string }{
		{"", "/tmp/a", " -"}, {"/pods", "/pods/a", "/pods /pods/a"}, {"/pods", "/pods/b", "/pods /pods/b"}, {"", "/tmp/a", " /tmp/a"},
	} {
		w := deployment(t)
		w.Owner, w.Source, w.Template.Source = c.owner, c.file, c.file
		got := put(t, s, w)
		r, err := s.Get(KeyOf(w))
		if err != nil || got.Outcome != objects.Unchanged || r.Revision() != 1 ||
			r.Workload.Owner+" "+r.Workload.Source != c.want || r.Workload.Template.Source != r.Workload.Source {
			t.Errorf("%+v: %s, %s from %q in %s, its template in %s: %v",
				c, got.Outcome, r.Key(), r.Workload.Owner, r.Workload.Source, r.Workload.Template.Source, err)
		}
	}
}

// TestExpire checks that a Job is removed after its time to live, unless it came from a source.
func TestExpire(t *testing.T) {
	s := newStore(t)
	for _, c := range []struct {
		owner string
		stays bool
	}{{"/pods", true}, {"", false}} {
		w := deployment(t)
		w.Owner = c.owner
		put(t, s, w)
		if err := errors.Join(s.Expire(t.Context(), KeyOf(w)), s.Expire(t.Context(), KeyOf(w))); err != nil {
			t.Error(err)
		}
		if _, err := s.Get(KeyOf(w)); (err == nil) != c.stays {
			t.Errorf("owned by %q: %v", c.owner, err)
		}
	}
}
