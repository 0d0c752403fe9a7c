package owner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/agent/sources"
	"github.com/podctl/podctl/runtime/model"
)

// source is a source with a name. The source "api" is like an API server: UIDs identify its pods, and absent pods end
// at once. Others use names and two seconds.
type source string

func (s source) Name() string { return string(s) }

func (s source) Rules() sources.Rules {
	if s == "api" {
		return sources.Rules{UIDs: true}
	}
	return sources.Rules{DropDelay: sources.DropDelay}
}

func (source) Run(context.Context, <-chan chan struct{}, func(sources.Update)) {}

func (source) Ended(model.PodRef) {}

// pod returns a pod from a source's file "f". The text is "name/uid", with an owner after a colon.
func pod(text, source string) *podspec.Desired {
	text, by, owned := strings.Cut(text, ":")
	name, uid, _ := strings.Cut(text, "/")
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(uid)}}
	if owned {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: podspec.KindDeployment, Name: by, Controller: new(true)}}
	}
	return &podspec.Desired{Pod: p, Origin: podspec.Origin{Owner: source, Source: source + "/f"}}
}

// updateOf parses an update of a source with pods: "one: web/a db/b", "one: unread", and "one: web/a!30" for a pod that
// ends in 30 seconds. "one: ?" has not been read. "one: ?f" could not read its file f,
// and "api: ?/a" has no usable version of the pod a.
func updateOf(text string) sources.Update {
	name, pods, _ := strings.Cut(text, ": ")
	u := sources.Update{Source: name, Complete: true, WorkloadSources: map[types.UID]string{}, Ending: map[types.UID]int64{}}
	for word := range strings.FieldsSeq(pods) {
		text, grace, ending := strings.Cut(word, "!")
		switch text {
		case "?":
			u.Complete = false
		case "?f":
			u.Unread = []string{name + "/f"}
		default:
			one, brought, _ := strings.Cut(text, "<")
			d := pod(one, name)
			seconds := int64(0)
			if _, _ = fmt.Sscan(grace, &seconds); ending {
				u.Ending[d.Pod.UID] = seconds
			}
			if d.Pod.Name == "?" {
				u.Unread = append(u.Unread, string(d.Pod.UID))
				break
			}
			if brought != "" {
				d.Source = brought + "/f"
				u.WorkloadSources[d.Pod.UID] = brought
			}
			u.Pods = append(u.Pods, d)
		}
	}
	return u
}

// stored parses pods with a checkpoint: "one: web/a", ": web/a" for one that was applied by hand, "one: web/a!" for one
// that is being deleted, "api: web/a~30" for one whose end in 30 seconds has begun.
func stored(texts ...string) (all []Record) {
	for _, text := range texts {
		source, one, _ := strings.Cut(text, ": ")
		one, deleting := strings.CutSuffix(one, "!")
		one, grace, ends := strings.Cut(one, "~")
		r := Record{Resource: Pod(pod(one, source)), Deleting: deleting}
		if ends {
			r.Ends = new(int64)
			_, _ = fmt.Sscan(grace, r.Ends)
		}
		all = append(all, r)
	}
	return all
}

// textOf describes a decision: "web/a of one" is wanted, "web/a ends in 30" ends and keeps its records, and "web/a ends"
// is deleted. "stays" and "held by" have their literal meaning.
func textOf(d *Decision) string {
	var all []string
	add := func(d *podspec.Desired, what string) {
		all = append(all, d.Pod.Name+"/"+string(d.Pod.UID)+" "+what)
	}
	for _, t := range d.Wanted {
		add(t.Pod, "of "+t.Owner)
	}
	for _, h := range d.Held {
		add(h.Pod, "held by "+string(h.Holder.Pod.Pod.UID))
	}
	for _, r := range d.Kept {
		add(r.Pod, "stays")
	}
	for _, r := range d.Deleted {
		add(r.Pod, "ends")
	}
	for _, e := range d.Ending {
		add(e.Pod, fmt.Sprintf("ends in %d", e.Grace))
	}
	for _, lost := range d.Problems {
		for _, p := range lost {
			if strings.Contains(p.Text, "is given twice") {
				all = append(all, p.File+" lost")
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// TestPods is the table of decisions about pods. The sources are one, two, workloads and api, in this order. A source
// without an update in a row has been read and wants nothing. The time is that of the first complete reading, or three
// seconds later.
func TestPods(t *testing.T) {
	for what, c := range map[string]struct {
		updates, stored []string
		later           bool
		want            string
	}{
		// Precedence.
		"a pod of a source takes effect": {updates: []string{"one: web/a"}, want: "web/a of one"},
		"the first source wins a name":   {updates: []string{"one: web/a", "two: web/b"}, want: "two/f lost, web/a of one"},
		"the first source wins a uid":    {updates: []string{"one: web/a", "two: db/a"}, want: "two/f lost, web/a of one"},
		"a workload has the rank of its source": {
			updates: []string{"two: web/a", "workloads: web/b<one"},
			want:    "two/f lost, web/b of workloads",
		},
		"a workload of a later source loses": {
			updates: []string{"one: web/a", "workloads: web/b<two"},
			want:    "two/f lost, web/a of one",
		},
		"a workload that was applied by hand is last": {
			updates: []string{"two: web/a", "workloads: web/b"},
			want:    "web/a of two, workloads/f lost",
		},
		"a uid is its own name where uids identify": {
			updates: []string{"one: web/a", "api: web/b web/c"},
			want:    "web/a of one, web/b of api, web/c of api",
		},
		"one uid is one pod for all sources": {updates: []string{"one: web/a", "api: web/a"}, want: "api/f lost, web/a of one"},
		"a source takes over a pod that was applied by hand": {
			updates: []string{"one: web/a"},
			stored:  []string{": web/a"},
			want:    "web/a of one",
		},
		"a source takes over from a later source": {
			updates: []string{"one: web/a", "two: ?"},
			stored:  []string{"two: web/a"},
			want:    "web/a of one",
		},
		"a source takes over what another agent's source had": {
			updates: []string{"one: web/a"},
			stored:  []string{"gone: web/a"},
			want:    "web/a of one",
		},

		// A source that may still want a stored pod blocks later sources.
		"a pod waits for an earlier source that is not read": {
			updates: []string{"one: ?", "two: web/b"},
			stored:  []string{"one: web/a"},
			want:    "web/a stays",
		},
		"a pod waits for an earlier text that is not read": {
			updates: []string{"one: ?f", "two: web/b"},
			stored:  []string{"one: web/a"},
			want:    "web/a stays",
		},
		"a pod waits for workloads that are not read": {
			updates: []string{"one: web/b", "workloads: ?"},
			stored:  []string{"workloads: web/a"},
			want:    "web/a stays",
		},
		"a pod does not wait for a later source": {
			updates: []string{"one: web/b", "two: ?"},
			stored:  []string{"two: web/a"},
			want:    "web/a stays, web/b of one",
		},
		"a pod does not wait where nothing is stored": {updates: []string{"one: ?", "two: web/b"}, want: "web/b of two"},
		"what waits keeps its name from others": {
			updates: []string{"one: ?", "two: web/b", "api: db/b"},
			stored:  []string{"one: web/a"},
			want:    "api/f lost, web/a stays",
		},
		"a uid does not wait for a name": {
			updates: []string{"one: ?", "api: web/b"},
			stored:  []string{"one: web/a"},
			want:    "web/a stays, web/b of api",
		},
		"of two stored pods the one that does not end": {
			updates: []string{"one: ?", "two: web/c"},
			stored:  []string{"one: web/a", "two: web/0!"},
			want:    "web/0 ends, web/a stays",
		},
		"a pod that is being deleted is not a reason either": {
			updates: []string{"two: web/b"},
			stored:  []string{"one: web/a!"},
			want:    "web/a ends, web/b of two",
		},

		// A pod that was applied by hand keeps its name: the agent ends no pod that its sources did not provide.
		"a pod by hand holds another uid": {
			updates: []string{"one: web/b"},
			stored:  []string{": web/a"},
			want:    "web/a stays, web/b held by a",
		},
		"also one of a source that is no more": {
			updates: []string{"one: web/b"},
			stored:  []string{"gone: web/a"},
			want:    "web/a stays, web/b held by a",
		},
		"also the same uid, of another workload": {
			updates: []string{"one: web/a:x"},
			stored:  []string{": web/a:y"},
			want:    "web/a held by a, web/a stays",
		},
		"not its own workload": {
			updates: []string{"one: web/a:x"},
			stored:  []string{": web/a:x"},
			want:    "web/a of one",
		},
		"not while it is being deleted": {
			updates: []string{"one: web/b"},
			stored:  []string{": web/a!"},
			want:    "web/a ends, web/b of one",
		},
		"not where uids identify": {
			updates: []string{"api: web/b"},
			stored:  []string{": web/a"},
			want:    "web/a stays, web/b of api",
		},
		"a held pod has won its name anyway": {
			updates: []string{"one: web/b", "two: web/c"},
			stored:  []string{": web/a"},
			want:    "two/f lost, web/a stays, web/b held by a",
		},

		// Pods that no source wants.
		"a pod absent at its source stays at first": {stored: []string{"one: web/a"}, want: "web/a stays"},
		"a pod ends when its time has passed":       {stored: []string{"one: web/a"}, later: true, want: "web/a ends"},
		"not before every source has been read": {
			updates: []string{"two: ?"},
			stored:  []string{"one: web/a"},
			later:   true,
			want:    "web/a stays",
		},
		"not while its text cannot be read": {
			updates: []string{"one: ?f"},
			stored:  []string{"one: web/a"},
			later:   true,
			want:    "web/a stays",
		},
		"another text does not matter": {
			updates: []string{"two: ?f"},
			stored:  []string{"one: web/a"},
			later:   true,
			want:    "web/a ends",
		},
		"a pod absent at an API server ends at once":        {stored: []string{"api: web/a"}, want: "web/a ends"},
		"a pod that was applied by hand stays":              {stored: []string{": web/a"}, later: true, want: "web/a stays"},
		"also one of a source that the agent does not have": {stored: []string{"gone: web/a"}, later: true, want: "web/a stays"},
		"a deletion that has begun is finished":             {stored: []string{": web/a!", "one: db/b!"}, want: "db/b ends, web/a ends"},
		"a pod whose name another one got": {
			updates: []string{"one: web/b"},
			stored:  []string{"one: web/a"},
			later:   true,
			want:    "web/a ends, web/b of one",
		},
		"a pod that its source deletes ends with its grace": {
			updates: []string{"api: web/a!30"},
			stored:  []string{"api: web/a"},
			want:    "web/a ends in 30",
		},
		"also before every source has been read": {
			updates: []string{"two: ?", "api: web/a!30"},
			stored:  []string{"api: web/a"},
			want:    "web/a ends in 30",
		},
		"also one that is not stored, for its final status": {updates: []string{"api: web/a!30"}, want: "web/a ends in 30"},
		"one that vanished from its source has its own": {
			updates: []string{"api: db/b!30"},
			stored:  []string{"api: web/a", "api: db/b"},
			want:    "db/b ends in 30, web/a ends",
		},
		"a pod that ends keeps its uid from others": {
			updates: []string{"api: web/a!30", "late: db/a"}, want: "late/f lost, web/a ends in 30",
		},
		"an end that has begun is finished without the source": {
			updates: []string{"api: ?"}, stored: []string{"api: web/a~30"}, want: "web/a ends in 30",
		},
		"the source can shorten it": {
			updates: []string{"api: web/a!5"}, stored: []string{"api: web/a~30"}, want: "web/a ends in 5",
		},
		"the source cannot cancel it": {
			updates: []string{"api: web/a"}, stored: []string{"api: web/a~30"}, want: "web/a ends in 30",
		},
		"the records go once the source has removed it": {stored: []string{"api: web/a~30"}, want: "web/a ends"},
		"other sources do not delay that": {
			updates: []string{"one: ?"}, stored: []string{"api: web/a~30"}, want: "web/a ends",
		},
		"a new pod of its name runs meanwhile": {
			updates: []string{"api: web/a!30 web/b", "one: web/c"}, stored: []string{"api: web/a~30"},
			want: "web/a ends in 30, web/b of api, web/c of one",
		},
		"an agent without the source keeps it": {stored: []string{"gone: web/a~30"}, later: true, want: "web/a ends in 30"},
		"a pod that is deleted and wanted is made again": {
			updates: []string{"one: web/a"},
			stored:  []string{"one: web/a!"},
			want:    "web/a of one",
		},

		// A source that has not been read keeps only the pods that it may want.
		"an API server that is not read keeps no file's pod": {
			updates: []string{"api: ?"}, stored: []string{"one: web/a"}, later: true, want: "web/a ends",
		},
		"and does not shorten the time of a file": {
			updates: []string{"api: ?"}, stored: []string{"one: web/a"}, want: "web/a stays",
		},
		"an API server that is not read keeps its own pods": {
			updates: []string{"api: ?"}, stored: []string{"api: web/a"}, later: true, want: "web/a stays",
		},
		"a file that is not read keeps no pod of an API server": {
			updates: []string{"one: ?"}, stored: []string{"api: web/a"}, want: "web/a ends",
		},
		"a file that is not read still keeps the pods of other files": {
			updates: []string{"one: ?", "api: ?"}, stored: []string{"two: web/a"}, later: true, want: "web/a stays",
		},

		// A pod of an API server has no name that others wait for.
		"a file has the name of a pod of an API server": {
			updates: []string{"late: web/b", "api: ?"}, stored: []string{"api: web/a"}, want: "web/a stays, web/b of late",
		},
		"also while that pod ends": {
			updates: []string{"late: web/b"}, stored: []string{"api: web/a!"}, want: "web/a ends, web/b of late",
		},
		"a new version of a pod cannot be used": {
			updates: []string{"api: ?/a"}, stored: []string{"api: web/a", "api: db/b"}, want: "db/b ends, web/a stays",
		},
		"and the pod ends": {updates: []string{"api: ?/a!9"}, stored: []string{"api: web/a"}, want: "web/a ends in 9"},
		"and its end has begun": {
			updates: []string{"api: ?/a!9"}, stored: []string{"api: web/a~5"}, want: "web/a ends in 5",
		},
		"two pods of an API server have one name": {
			updates: []string{"api: web/b web/c"}, stored: []string{"api: web/a", "api: web/b"},
			want: "web/a ends, web/b of api, web/c of api",
		},
	} {
		l := newLedger(Pods, "one", "two", "workloads", "api", "late")
		l.expect(c.updates...)
		now := time.Unix(1000, 0)
		got := l.Decide(now, stored(c.stored...))
		if c.later {
			got = l.Decide(now.Add(3*time.Second), stored(c.stored...))
		}
		if got := textOf(got); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

func newLedger(kinds Kinds, names ...string) *Ledger {
	l := New(kinds, true)
	for _, name := range names {
		l.Add(source(name))
		l.Updates[name] = sources.Update{Source: name, Complete: true}
	}
	return l
}

func (l *Ledger) expect(texts ...string) {
	for _, text := range texts {
		u := updateOf(text)
		l.Updates[u.Source] = u
	}
}

// TestPodsAppliedByHandAreIgnored checks that an agent that does not keep pods applied by hand neither keeps nor ends
// them.
func TestPodsAppliedByHandAreIgnored(t *testing.T) {
	l := newLedger(Pods, "one")
	l.ByHand = false
	if got := textOf(l.Decide(time.Unix(1000, 0), stored(": web/a", "gone: db/b", ": old/c!"))); got != "old/c ends" {
		t.Error(got)
	}
}

// TestSeen checks that a resource that a source has wanted while the agent runs ends at once, because the source has
// already applied its delay.
func TestSeen(t *testing.T) {
	l, now := newLedger(Pods, "one"), time.Unix(1000, 0)
	there := stored("one: web/a", "one: db/b")
	l.expect("one: web/a")
	l.Decide(now, there)
	if got := l.NextDrop(now); !got.Equal(now.Add(sources.DropDelay)) {
		t.Errorf("it settles at %s", got)
	}
	l.expect("one: ")
	if got := textOf(l.Decide(now.Add(time.Second), there)); got != "db/b stays, web/a ends" {
		t.Error(got)
	}
	l.Forget(there[0].ID())
	if got := textOf(l.Decide(now.Add(time.Second), there)); got != "db/b stays, web/a stays" {
		t.Errorf("after it was forgotten: %s", got)
	}
	if got := textOf(l.Decide(now.Add(sources.DropDelay), there)); got != "db/b ends, web/a ends" {
		t.Errorf("two seconds later: %s", got)
	}
	if got := l.NextDrop(now.Add(sources.DropDelay)); !got.IsZero() {
		t.Errorf("then it settles at %s", got)
	}
}

// TestSourcesAreReadOneByOne checks that the pods of files get their time as soon as all files have been read, and that
// an API server that answers later does not restart it.
func TestSourcesAreReadOneByOne(t *testing.T) {
	l, now := newLedger(Pods, "one", "api"), time.Unix(1000, 0)
	there := stored("one: web/a", "api: db/b")
	l.expect("one: ?", "api: ?")
	if got := textOf(l.Decide(now, there)); got != "db/b stays, web/a stays" || l.Complete() || !l.NextDrop(now).IsZero() {
		t.Errorf("nothing is read: %s", got)
	}
	l.expect("one: ")
	got, next := textOf(l.Decide(now, there)), l.NextDrop(now)
	if got != "db/b stays, web/a stays" || !l.Complete() || !next.Equal(now.Add(sources.DropDelay)) {
		t.Errorf("the file is read: %s, next at %s", got, next)
	}
	l.expect("api: ")
	if got := textOf(l.Decide(now.Add(time.Second), there)); got != "db/b ends, web/a stays" {
		t.Errorf("both are read: %s", got)
	}
	if got := textOf(l.Decide(now.Add(sources.DropDelay), there)); got != "db/b ends, web/a ends" {
		t.Errorf("two seconds after the file was read: %s", got)
	}
}

// TestWithoutAnAPIServer checks that in an agent without the API server, its stored pods stay, and files do not wait for
// their names.
func TestWithoutAnAPIServer(t *testing.T) {
	l := newLedger(Pods, "one")
	l.expect("one: web/b")
	got := textOf(l.Decide(time.Unix(1000, 0), stored("api: web/a", "api: db/c~5")))
	if want := "db/c ends in 5, web/a stays, web/b of one"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestTakeovers checks that the takeover of a resource applied by hand is noted once. That of a workload's pod is not
// noted: it belongs to the workload.
func TestTakeovers(t *testing.T) {
	l, now := newLedger(Pods, "one", "workloads"), time.Unix(1000, 0)
	l.expect("one: web/a db/b old/d", "workloads: made/c")
	for range 2 {
		l.Decide(now, stored(": web/a", "one: db/b", ": made/c", ": old/d!"))
		now = now.Add(time.Second)
	}
	p := l.Takeovers[PodID("a")]
	if len(l.Takeovers) != 1 || !p.Since.Equal(time.Unix(1000, 0)) || p.File != "one/f" ||
		!strings.HasPrefix(p.Text, "takes over pod default/web, ") {
		t.Errorf("%+v", l.Takeovers)
	}
}

// TestProblems checks that problems name the file that lost, the file that won, and the pod that keeps its manifest.
func TestProblems(t *testing.T) {
	l := newLedger(Pods, "one", "two")
	l.expect("one: web/a", "two: web/b db/a held/d")
	got := l.Decide(time.Unix(1000, 0), stored(": held/h")).Problems["two"]
	want := []sources.Problem{
		{File: "two/f", Pod: "a", Text: "two/f: Pod default/web is given twice, first in one/f"},
		{File: "two/f", Pod: "a", Text: `two/f: the uid "a" of Pod default/db is given twice, first in one/f`},
		{
			File: "two/f",
			Pod:  "h",
			Text: "pod default/held is not created: a pod that was applied by hand has its name, with uid h; " +
				"to remove that pod, run `podctl delete h`",
		},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

// others returns a Deployment and a ConfigMap with a name, from a source's file "f".
func others(name, source string) (*podspec.Workload, *podspec.Object) {
	meta := metav1.ObjectMeta{Namespace: "default", Name: name}
	return &podspec.Workload{
			Deployment: &appsv1.Deployment{ObjectMeta: meta},
			Template:   pod(name+"-0/"+name, source),
			Origin:     podspec.Origin{Owner: source, Source: source + "/f"},
		},
		&podspec.Object{ConfigMap: &v1.ConfigMap{ObjectMeta: meta}, Origin: podspec.Origin{Owner: source, Source: source + "/f"}}
}

// TestOthers checks that workloads and objects follow the same rules by kind and name, objects first. Objects applied
// by hand do not block others.
func TestOthers(t *testing.T) {
	have := func(source string, names ...string) (u sources.Update, all []Record) {
		u = sources.Update{Source: source, Complete: true}
		for _, name := range names {
			w, o := others(name, source)
			u.Workloads, u.Objects = append(u.Workloads, w), append(u.Objects, o)
			all = append(all, Record{Resource: Workload(w)}, Record{Resource: Object(o)})
		}
		return u, all
	}
	_, byHand := have("", "hand", "web")
	_, old := have("one", "old")
	l, now := newLedger(Others, "one", "two"), time.Unix(1000, 0)
	l.Updates["one"], _ = have("one", "web")
	l.Updates["two"], _ = have("two", "web", "db")
	show := func(d *Decision) string {
		var all []string
		for _, t := range d.Wanted {
			all = append(all, t.String()+" of "+t.Owner)
		}
		for _, r := range d.Deleted {
			all = append(all, r.String()+" ends")
		}
		for _, p := range d.Problems["two"] {
			all = append(all, p.Text+" "+string(p.Pod))
		}
		return strings.ReplaceAll(strings.Join(all, ", "), "default/", "")
	}
	l.Decide(now, slices.Concat(byHand, old))
	got := show(l.Decide(now.Add(sources.DropDelay), slices.Concat(byHand, old)))
	if want := "ConfigMap web of one, Deployment web of one, ConfigMap db of two, Deployment db of two, " +
		"Deployment old ends, ConfigMap old ends, " +
		"two/f: ConfigMap web is given twice, first in one/f , two/f: Deployment web is given twice, first in one/f web"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if p := l.Takeovers[ID{Kind: podspec.KindDeployment, Namespace: "default", Name: "web"}]; len(l.Takeovers) != 2 ||
		!strings.HasPrefix(p.Text, "takes over Deployment default/web, ") {
		t.Errorf("%+v", l.Takeovers)
	}
}
