package controllers

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

// house is a state directory with a clock and an agent that stores the objects of sources.
type house struct {
	t   *testing.T
	now time.Time
	*Source
	workloads *controller.Store
	objects   *objects.Store
	layout    state.Layout
	texts     map[string]*sources.Texts
	// files are the files of each source, by source and name.
	files map[string]map[string]string
	// followed counts the calls that let traffic follow Services.
	followed int
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{
		t:      t,
		now:    time.Unix(1_800_000_000, 0),
		layout: state.Layout{Root: t.TempDir(), LogRoot: t.TempDir()},
		files:  map[string]map[string]string{"/one": {}, "/two": {}},
	}
	locker := &state.Locker{Layout: h.layout, Waiting: func(string) {}}
	clock := func() time.Time { return h.now }
	h.workloads, h.objects = controller.NewStore(locker, clock), objects.New(locker, clock)
	h.starts()
	return h
}

// standing reports pods as pending.
type standing struct{}

func (standing) Standing(_ context.Context, pods []*podspec.Desired) ([]model.Standing, error) {
	return make([]model.Standing, len(pods)), nil
}

// starts starts an agent that has read nothing yet.
func (h *house) starts() {
	clock := func() time.Time { return h.now }
	expander := &controller.Expander{Layout: h.layout, Objects: h.objects, Lister: standing{}, Now: clock}
	h.Source = New(Settings{
		Workloads: Stored{Store: h.workloads, Expander: expander},
		Objects:   StoredObjects{Store: h.objects, Services: func(context.Context) { h.followed++ }},
		ByHand:    true, Now: clock, Log: slog.New(slog.DiscardHandler),
	})
	h.texts = map[string]*sources.Texts{}
	for _, name := range []string{"/one", "/two"} {
		one, err := sources.NewFiles(name, sources.Settings{})
		if err != nil {
			h.t.Fatal(err)
		}
		h.Wrap(one)
		h.texts[name] = sources.NewTexts(name, load.Loader{Workloads: true, Store: true})
	}
}

// reads reads the files of sources.
func (h *house) reads(names ...string) {
	for _, name := range names {
		r := sources.Reading{}
		for file, text := range h.files[name] {
			r.Texts = append(r.Texts, sources.Text{Name: name + "/" + file, Text: []byte(text)})
		}
		h.texts[name].Take(h.now, r)
		h.asks(name)
	}
}

func (h *house) asks(name string) {
	u, _ := h.texts[name].Wanted(h.now)
	h.declared.SetUpdate(u)
}

// later lets time pass.
func (h *house) later(d time.Duration) {
	h.now = h.now.Add(d)
	for name, texts := range h.texts {
		if u, _ := texts.Wanted(h.now); u.Complete {
			h.asks(name)
		}
	}
}

// looks runs one check of the source, and returns the wanted objects.
func (h *house) looks() sources.Update {
	h.t.Helper()
	h.declared.Store(h.t.Context())
	u, _, err := h.expandAll(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	return u
}

// wants looks, and checks what is stored: kind, name, a distinguishing word, and file.
func (h *house) wants(what, want string) sources.Update {
	h.t.Helper()
	u := h.looks()
	if got := h.kept(); got != want {
		h.t.Errorf("%s: %q, want %q", what, got, want)
	}
	return u
}

func (h *house) kept() string {
	var all []string
	records, err := h.workloads.List(func(state.ObjectKey) bool { return true })
	if err != nil {
		h.t.Fatal(err)
	}
	for _, r := range records {
		all = append(all, r.Key().Word()+" "+r.Key().Name+":"+r.Workload.Template.Pod.Spec.Containers[0].Image+"@"+r.Workload.Source)
		if r.Workload.Owner == "" {
			all[len(all)-1] += " by hand"
		}
	}
	stored, err := h.objects.List(func(state.ObjectKey) bool { return true })
	if err != nil {
		h.t.Fatal(err)
	}
	for _, o := range stored {
		word := ""
		if o.ConfigMap != nil {
			word = o.ConfigMap.Data["a"]
		}
		all = append(all, objects.KeyOf(o).Word()+" "+o.Meta().Name+":"+word+"@"+o.Source)
	}
	return strings.Join(all, ", ")
}

// applies applies a manifest by hand.
func (h *house) applies(text string) {
	h.t.Helper()
	h.appliesFrom("-", text)
}

func (h *house) appliesFrom(file, text string) {
	h.t.Helper()
	m, err := load.Loader{Workloads: true, Store: true}.Parse(input.Source{Name: file, Text: []byte(text)})
	if err == nil {
		err = m.Err()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	for _, w := range m.Workloads {
		if _, err := h.workloads.Put(h.t.Context(), w); err != nil {
			h.t.Fatal(err)
		}
	}
	if err := h.objects.Put(h.t.Context(), m.Objects, func(objects.Change) {}); err != nil {
		h.t.Fatal(err)
	}
}

// deletes deletes an object by hand.
func (h *house) deletes(kind, name string) {
	h.t.Helper()
	key := state.ObjectKey{Namespace: "default", Kind: kind, Name: name}
	var err error
	if kind == podspec.KindService || kind == podspec.KindConfigMap {
		err = h.objects.Delete(h.t.Context(), key)
	} else {
		_, err = h.workloads.Delete(h.t.Context(), key)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

func deployment(name, version string) string {
	return fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: %[1]s}\nspec:\n"+
		"  selector: {matchLabels: {app: %[1]s}}\n  template:\n    metadata: {labels: {app: %[1]s}}\n"+
		"    spec:\n      containers:\n      - {name: app, image: '%[2]s'}\n", name, version)
}

func configMap(word string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: " + word + "}\n"
}

const (
	separator  = "---\n"
	webService = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n"
	onceJob    = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: once}\nspec:\n  ttlSecondsAfterFinished: 10\n" +
		"  template:\n    spec: {restartPolicy: Never, containers: [{name: app, image: '1'}]}\n"
	minutelyJob = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: tick}\nspec:\n  schedule: '* * * * *'\n" +
		"  jobTemplate:\n    spec:\n      template:\n" +
		"        spec: {restartPolicy: Never, containers: [{name: app, image: '1'}]}\n"
)

// problems returns the texts of the problems.
func problems(u sources.Update) string {
	var texts []string
	for _, p := range u.Problems {
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "\n")
}

// TestStored checks that the objects of files are stored, follow edits and renames, and are removed two seconds after
// their file. A Service is removed with its traffic.
func TestStored(t *testing.T) {
	h := newHouse(t)
	h.files["/one"]["a"] = deployment("web", "1") + separator + webService
	h.files["/two"]["c"] = configMap("x")
	h.reads("/one", "/two")
	u := h.wants("at first", "deployment web:1@/one/a, configmap c:x@/two/c, service web:@/one/a")
	if len(u.Pods) != 1 || u.Pods[0].Pod.Name != "web-0" || u.WorkloadSources[u.Pods[0].Pod.UID] != "/one" || h.followed != 1 {
		t.Errorf("%d pods, brought by %v; traffic has followed %d times", len(u.Pods), u.WorkloadSources, h.followed)
	}
	h.files["/one"] = map[string]string{"b": deployment("web", "2") + separator + webService}
	h.reads("/one")
	h.wants("another version of another name", "deployment web:2@/one/b, configmap c:x@/two/c, service web:@/one/b")
	r, err := h.workloads.Get(state.ObjectKey{Namespace: "default", Kind: podspec.KindDeployment, Name: "web"})
	if err != nil || r.Revision() != 2 || h.followed != 1 {
		t.Errorf("revision %d, followed %d times: %v", r.Revision(), h.followed, err)
	}
	h.files["/one"], h.files["/two"] = nil, map[string]string{"c": configMap("z")}
	h.reads("/one", "/two")
	u = h.wants("for two seconds", "deployment web:2@/one/b, configmap c:z@/two/c, service web:@/one/b")
	if len(u.Missing) != 1 {
		t.Errorf("its pods are not about to go: %v", u.Missing)
	}
	h.later(sources.DropDelay)
	if u = h.wants("then", "configmap c:z@/two/c"); len(u.Pods)+len(u.Missing) != 0 || h.followed != 2 {
		t.Errorf("pods %d, followed %d times", len(u.Pods), h.followed)
	}
}

// TestTakenOver checks that files that provide objects applied by hand are reported as long as they have them.
func TestTakenOver(t *testing.T) {
	h := newHouse(t)
	h.applies(deployment("web", "1") + separator + configMap("x"))
	h.files["/one"]["a"] = deployment("web", "2") + separator + configMap("z") + separator + webService
	h.reads("/one", "/two")
	h.wants("at first", "deployment web:2@/one/a, configmap c:z@/one/a, service web:@/one/a")
	u := h.wants("later", "deployment web:2@/one/a, configmap c:z@/one/a, service web:@/one/a")
	if len(u.Takeovers) != 2 || !strings.Contains(u.Takeovers[0].Text, "ConfigMap default/c, which was applied by hand") ||
		!strings.Contains(u.Takeovers[1].Text, "Deployment default/web") || u.Takeovers[1].File != "/one/a" {
		t.Errorf("%+v", u.Takeovers)
	}
	h.files["/one"] = map[string]string{"a": configMap("z")}
	h.reads("/one")
	h.later(sources.DropDelay)
	if u = h.wants("without the Deployment", "configmap c:z@/one/a"); len(u.Takeovers) != 1 {
		t.Errorf("%+v", u.Takeovers)
	}
}

// TestStoredByAnother checks that objects stored by another agent are removed only two seconds after every source was
// read. They stay if their file is damaged.
func TestStoredByAnother(t *testing.T) {
	h := newHouse(t)
	h.files["/one"]["a"], h.files["/one"]["b"] = deployment("web", "1"), deployment("db", "1")+separator+webService
	h.applies(deployment("mine", "1"))
	h.reads("/one", "/two")
	all := "deployment db:1@/one/b, deployment mine:1@- by hand, deployment web:1@/one/a, service web:@/one/b"
	h.wants("at first", all)
	h.files["/one"] = map[string]string{"b": "kind: ["}
	h.starts()
	h.wants("nothing read", all)
	h.reads("/one")
	h.later(time.Hour)
	h.wants("one source read", all)
	h.reads("/two")
	h.wants("all read", all)
	h.later(sources.DropDelay - 1)
	h.wants("shortly before", all)
	h.later(1)
	h.wants("two seconds later", strings.Replace(all, ", deployment web:1@/one/a", "", 1))
	h.files["/one"] = nil
	h.reads("/one")
	h.later(sources.DropDelay)
	h.wants("the damaged file is gone", "deployment mine:1@- by hand")
}

// TestStoredBesideUsers checks that files take precedence: an object that a user deletes or applies differently is
// restored. A restart that a user requested stays. An object without a file belongs to the user.
func TestStoredBesideUsers(t *testing.T) {
	h := newHouse(t)
	h.files["/one"]["a"] = deployment("web", "1") + separator + webService
	h.reads("/one", "/two")
	const want = "deployment web:1@/one/a, service web:@/one/a"
	h.wants("at first", want)
	h.deletes(podspec.KindDeployment, "web")
	h.deletes(podspec.KindService, "web")
	h.wants("deleted", want)
	h.applies(deployment("web", "2"))
	h.wants("applied otherwise", want)
	key := state.ObjectKey{Namespace: "default", Kind: podspec.KindDeployment, Name: "web"}
	r, err := h.workloads.Get(key)
	if err != nil {
		t.Fatal(err)
	}
	r.Workload.Restart("2026-05-04T12:00:00Z")
	if _, err = h.workloads.Put(t.Context(), r.Workload); err != nil {
		t.Fatal(err)
	}
	h.files["/one"]["a"] = deployment("web", "3") + separator + webService
	h.reads("/one")
	h.wants("restarted and edited", strings.Replace(want, ":1", ":3", 1))
	if r, err = h.workloads.Get(key); err != nil || r.Workload.Template.Pod.Annotations[podspec.AnnotationRestartedAt] == "" {
		t.Errorf("the restart is forgotten: %v", err)
	}
	h.starts()
	h.files["/one"] = nil
	h.applies(deployment("web", "4"))
	h.reads("/one", "/two")
	h.looks()
	h.later(sources.DropDelay)
	h.wants("applied by hand between two reads", "deployment web:4@- by hand")
}

// TestStoredTwice checks that the first manifest in source order wins if two have the same object, and that the other
// is a problem.
func TestStoredTwice(t *testing.T) {
	h := newHouse(t)
	h.files["/one"]["z"] = deployment("web", "1") + separator + configMap("x")
	h.files["/two"]["a"] = deployment("web", "2") + separator + configMap("z")
	h.reads("/two")
	h.wants("the second is read first", "deployment web:2@/two/a, configmap c:z@/two/a")
	h.reads("/one")
	u := h.wants("both", "deployment web:1@/one/z, configmap c:x@/one/z")
	const want = "/two/a: ConfigMap default/c is given twice, first in /one/z\n" +
		"/two/a: Deployment default/web is given twice, first in /one/z"
	if got := problems(u); got != want {
		t.Error(got)
	}
	if p := u.Problems[1]; p.Pod != podspec.UID("default", "web-0") || !p.Since.Equal(h.now) || p.File != "/two/a" {
		t.Errorf("%+v", p)
	}
	h.starts()
	h.reads("/two")
	h.later(time.Hour)
	h.wants("while the first is not read", "deployment web:1@/one/z, configmap c:x@/one/z")
	h.files["/one"] = nil
	h.reads("/one")
	if u = h.wants("the first has none", "deployment web:2@/two/a, configmap c:z@/two/a"); problems(u) != "" {
		t.Error(problems(u))
	}
}

// TestStoredRefused checks that an object that cannot be stored is a problem of its file, and does not delay others.
func TestStoredRefused(t *testing.T) {
	h := newHouse(t)
	h.files["/one"]["a"], h.files["/one"]["b"] = onceJob, webService
	h.reads("/one", "/two")
	h.wants("at first", "job once:1@/one/a, service web:@/one/b")
	h.files["/one"]["a"] = strings.Replace(onceJob, "'1'", "'2'", 1)
	h.files["/one"]["b"] = strings.Replace(webService, "selector", "clusterIP: 1.2.3.4, selector", 1)
	h.files["/one"]["c"] = deployment("web", "1")
	h.reads("/one")
	u := h.wants("refused", "deployment web:1@/one/c, job once:1@/one/a, service web:@/one/b")
	if got := problems(u); !strings.Contains(got, "spec.template cannot change") || !strings.Contains(got, "1.2.3.4") ||
		len(u.Problems) != 2 {
		t.Error(got)
	}
	if u.Problems[0].File != "/one/a" || u.Problems[1].File != "/one/b" {
		t.Errorf("%v", u.Problems)
	}
	h.deletes(podspec.KindJob, "once")
	if u = h.wants("after the deletion", "deployment web:1@/one/c, job once:2@/one/a, service web:@/one/b"); len(u.Problems) != 1 {
		t.Error(problems(u))
	}
}

// TestStoredObjectInUse checks that an object that a pod of its source names is also stored for others, as its file has
// it.
func TestStoredObjectInUse(t *testing.T) {
	h := newHouse(t)
	h.files["/one"]["c"] = configMap("x")
	h.reads("/one", "/two")
	h.wants("apart", "configmap c:x@/one/c")
	h.files["/one"]["p"] = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n" +
		"spec: {containers: [{name: a, image: '1', envFrom: [{configMapRef: {name: c}}]}]}\n"
	h.reads("/one")
	h.wants("in use", "configmap c:x@/one/c")
	h.files["/one"]["c"] = configMap("z")
	h.reads("/one")
	h.wants("edited", "configmap c:z@/one/c")
	delete(h.files["/one"], "c")
	h.reads("/one")
	h.later(sources.DropDelay)
	h.wants("its file is gone", "")
}

// TestJobsOfFiles checks that an expired Job is removed with its pods and stays done as long as its file exists, also
// with the next agent. The Jobs of a CronJob are removed with it.
func TestJobsOfFiles(t *testing.T) {
	h := newHouse(t)
	h.files["/one"]["a"], h.files["/one"]["b"] = onceJob, minutelyJob
	h.reads("/one", "/two")
	if u := h.wants("at first", "cronjob tick:1@/one/b, job once:1@/one/a"); len(u.Pods) != 1 {
		t.Errorf("%d pods", len(u.Pods))
	}
	h.finishes("once")
	h.later(30 * time.Second)
	for range 2 {
		if u := h.wants("after its time", "cronjob tick:1@/one/b, job once:1@/one/a"); len(u.Pods) != 0 {
			t.Errorf("it runs again: %s", u.Pods[0].Pod.Name)
		}
		h.starts()
		h.reads("/one", "/two")
	}
	h.later(time.Minute)
	u := h.looks()
	if len(u.Pods) != 1 || !strings.HasPrefix(u.Pods[0].Pod.Name, "tick-") || u.WorkloadSources[u.Pods[0].Pod.UID] != "/one" {
		t.Fatalf("%d pods a minute later: %v", len(u.Pods), u.WorkloadSources)
	}
	h.files["/one"] = nil
	h.reads("/one")
	h.later(sources.DropDelay)
	if u = h.wants("without files", ""); len(u.Pods) != 0 {
		t.Error("pods of Jobs are wanted")
	}
	h.applies(onceJob)
	h.finishes("once")
	h.later(time.Minute)
	h.wants("a Job without a file", "")
}

// finished returns the status of a Job that completed at a time.
func finished(at time.Time) *batchv1.JobStatus {
	return &batchv1.JobStatus{
		Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobComplete, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)},
		},
	}
}

// finishes completes a Job.
func (h *house) finishes(name string) {
	h.t.Helper()
	key := state.ObjectKey{Namespace: "default", Kind: podspec.KindJob, Name: name}
	r, err := h.workloads.Get(key)
	if err != nil {
		h.t.Fatal(err)
	}
	r.Job = finished(h.now)
	if err = h.workloads.KeepJob(h.t.Context(), r); err != nil {
		h.t.Fatal(err)
	}
}

// TestWithoutObjectsAppliedByHand checks an agent that does not keep objects applied by hand. It keeps only the
// workloads of its sources with the Jobs of their CronJobs, and does not treat the pods of others as its own.
func TestWithoutObjectsAppliedByHand(t *testing.T) {
	h := newHouse(t)
	h.applies(deployment("mine", "1") + separator + strings.ReplaceAll(minutelyJob, "tick", "tock"))
	h.ByHand = false
	h.files["/one"]["a"], h.files["/one"]["b"] = deployment("web", "1"), minutelyJob
	h.reads("/one", "/two")
	h.looks()
	h.later(time.Minute)
	u := h.looks()
	var names []string
	for _, d := range u.Pods {
		name, _, _ := strings.Cut(d.Pod.Name, "-")
		names = append(names, name)
		if h.Ignores(d) {
			t.Errorf("%s is left alone", d.Pod.Name)
		}
	}
	if !slices.Equal(names, []string{"tick", "web"}) {
		t.Errorf("pods of %v", names)
	}
	h.ByHand = true
	for _, d := range h.looks().Pods {
		if h.ByHand = false; strings.HasPrefix(d.Pod.Name, "mine") && !h.Ignores(d) {
			t.Errorf("%s is not left alone", d.Pod.Name)
		}
	}
	if h.Ignores(&podspec.Desired{Pod: &v1.Pod{}, Origin: podspec.Origin{Owner: "/one"}}) {
		t.Error("a pod of a source is left alone")
	}
}

// TestStates checks that the workloads are shown with their source and what they wait for.
func TestStates(t *testing.T) {
	h := newHouse(t)
	h.applies(deployment("mine", "1"))
	h.files["/one"]["a"] = strings.Replace(deployment("web", "1"), "kind: Deployment", "kind: StatefulSet", 1)
	h.files["/one"]["a"] = strings.Replace(h.files["/one"]["a"], "spec:\n", "spec:\n  replicas: 2\n  serviceName: web\n", 1)
	h.reads("/one", "/two")
	h.looks()
	states := h.States()
	if len(states) != 2 || states[0].Source != "" || states[0].Pods != 1 || states[1].Source != "/one" || states[1].File != "/one/a" ||
		len(states[1].Waiting) != 1 || !strings.HasPrefix(states[1].Waiting[0], "pod web-1: ") {
		t.Errorf("%+v", states)
	}
}

// TestRandomEvents checks random events of files, users and agents. In the end, the objects of files and those applied
// by hand are stored. In between, no object is removed that a file has or whose file is unknown.
func TestRandomEvents(t *testing.T) {
	for seed := range uint64(15) {
		if h := newHouse(t); !h.lives(rand.New(rand.NewPCG(seed, 0))) {
			t.Fatalf("seed %d", seed)
		}
	}
}

// lives makes random events happen.
func (h *house) lives(r *rand.Rand) bool {
	h.applies(deployment("mine", "1"))
	lastSeen, unread := map[string]time.Time{}, map[string]bool{"/one": true, "/two": true}
	for range 60 {
		source, name := []string{"/one", "/two"}[r.IntN(2)], []string{"w0", "w1", "w2"}[r.IntN(3)]
		switch r.IntN(7) {
		case 0, 1:
			h.files[source][fmt.Sprint(r.IntN(3))] = deployment(name, fmt.Sprint(r.IntN(3)))
		case 2:
			delete(h.files[source], fmt.Sprint(r.IntN(3)))
		case 3:
			h.deletes(podspec.KindDeployment, name)
		case 4:
			h.starts()
			unread = map[string]bool{"/one": true, "/two": true}
			// It is unknown how long a file has been missing that another agent saw last.
			for name := range lastSeen {
				lastSeen[name] = h.now
			}
		default:
			h.later(time.Duration(r.IntN(1500)) * time.Millisecond)
		}
		before := h.keptNames()
		if r.IntN(3) > 0 {
			h.reads(source)
			delete(unread, source)
			for _, name := range namesIn(h.files[source]) {
				lastSeen[name] = h.now
			}
		}
		h.looks()
		after := h.keptNames()
		for name := range before {
			if !after[name] && (len(unread) > 0 || h.now.Sub(lastSeen[name]) < sources.DropDelay) {
				h.t.Errorf("%s has gone: %v unread, seen %s ago", name, unread, h.now.Sub(lastSeen[name]))
			}
		}
	}
	h.reads("/one", "/two")
	h.looks()
	h.later(2 * sources.DropDelay)
	h.looks()
	want := map[string]bool{"mine": true}
	for _, files := range h.files {
		for _, name := range namesIn(files) {
			want[name] = true
		}
	}
	if got := h.keptNames(); !maps.Equal(got, want) {
		h.t.Errorf("in the end: %v, want %v", got, want)
	}
	return !h.t.Failed()
}

func (h *house) keptNames() map[string]bool {
	names := map[string]bool{}
	records, err := h.workloads.List(func(state.ObjectKey) bool { return true })
	if err != nil {
		h.t.Fatal(err)
	}
	for _, r := range records {
		names[r.Key().Name] = true
	}
	return names
}

// namesIn returns the names of the Deployments in files.
func namesIn(files map[string]string) (names []string) {
	for _, text := range files {
		_, rest, _ := strings.Cut(text, "{name: ")
		name, _, _ := strings.Cut(rest, "}")
		names = append(names, name)
	}
	return names
}
