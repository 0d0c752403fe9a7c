package sources

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
	"github.com/podctl/podctl/runtime/model"
)

// Text is one text of a source, or the error of its read.
type Text struct {
	Name string
	Text []byte
	Err  error
}

// Reading is the result of one read of a source.
type Reading struct {
	// Texts are all existing texts, in any order. They are immutable.
	Texts []Text
	// Err is set if the source could not be read, so that its contents are unknown.
	Err error
	// Removed are the names of texts that were deleted since the last read, also if they exist again.
	Removed []string
	// Warning is a problem of a source that could be read.
	Warning error
}

// Texts computes the wanted objects from the readings of a source. It has no clock, no goroutine and no disk access.
type Texts struct {
	name   string
	loader load.Loader
	texts  map[string]*text
	// reportDelay is how long a problem must last before it is reported.
	reportDelay time.Duration
	// pods, workloads and objects are the objects that the source wants.
	pods, workloads, objects wants

	// failed is the reason why the last reading changed nothing. complete is set once a reading succeeded.
	failed   *Problem
	complete bool
	// stale is set if the texts have changed since combine. over is set if the texts exceed a limit together.
	stale   bool
	over    *Problem
	warning error
	// found are the problems of all texts together. damaged are the texts that became invalid in combination with the
	// others. notes are the notes of all texts.
	found   []Problem
	damaged map[string]bool
	notes   []string
	// since is when each problem in found, and the warning, was first found.
	since map[Problem]time.Time
}

// NewTexts returns the texts of a source that has not been read.
func NewTexts(name string, loader load.Loader) *Texts {
	return &Texts{
		name:        name,
		loader:      loader,
		reportDelay: reportDelay,
		texts:       map[string]*text{},
		pods:        wants{},
		workloads:   wants{},
		objects:     wants{},
	}
}

// Take processes a reading. The times of readings must ascend.
func (t *Texts) Take(now time.Time, r Reading) {
	t.warning = r.Warning
	failed := t.apply(now, r)
	if failed != nil {
		one := Problem{File: failed.File, Text: failed.Text, Since: now}
		if t.failed != nil {
			one.Since = t.failed.Since
		}
		failed = &one
	}
	t.failed = failed
	t.complete = t.complete || failed == nil
	t.stamp(now)
}

// Drop drops the pods of deleted texts at once. Those that exist again come back with the next reading.
func (t *Texts) Drop(removed []string) {
	for name, w := range t.pods {
		if slices.Contains(removed, w.pod.Source) {
			delete(t.pods, name)
			t.stale = true
		}
	}
}

// apply returns the reason why a reading changes nothing.
func (t *Texts) apply(now time.Time, r Reading) *Problem {
	if r.Err != nil {
		return &Problem{File: t.name, Text: r.Err.Error()}
	}
	if t.failed != nil {
		t.restartMissing(now)
	}
	here := map[string]bool{}
	for _, in := range r.Texts {
		here[in.Name] = true
		if err := t.setText(now, in); err != nil {
			return &Problem{File: t.name, Text: err.Error()}
		}
	}
	for name, x := range t.texts {
		if here[name] {
			continue
		}
		t.stale = x.markMissing(now) || t.stale
		x.setFault(now, "")
		if x.expired(now) {
			delete(t.texts, name)
		}
	}
	if t.stale {
		if err := t.combine(now); err != nil {
			return &Problem{File: t.name, Text: err.Error()}
		}
		t.stale = false
	}
	return t.over
}

// restartMissing restarts the time of missing texts, because it is unknown whether they existed during the failure.
func (t *Texts) restartMissing(now time.Time) {
	for _, x := range t.texts {
		x.missingSince = restartedAt(x.missingSince, t.failed.Since, now)
	}
	for _, ws := range []wants{t.pods, t.workloads, t.objects} {
		ws.restartMissing(t.failed.Since, now)
	}
}

// restartedAt returns when the time of a missing object starts, after a failure of the source. A time that was over
// before the failure is unchanged.
func restartedAt(missing, failed, now time.Time) time.Time {
	if missing.IsZero() || !failed.Before(missing.Add(DropDelay)) {
		return missing
	}
	return now
}

// setText processes one text. It returns an error if the parse failed for a reason outside the text.
func (t *Texts) setText(now time.Time, in Text) error {
	x := t.texts[in.Name]
	if x == nil {
		x = &text{}
		t.texts[in.Name] = x
	}
	switch {
	case in.Err != nil:
		t.stale = x.markPresent(now) || t.stale
		x.setFault(now, in.Err.Error())
		x.content = nil
		return nil
	case x.isUnchanged(in.Text):
		return nil
	case document.IsEmpty(in.Text):
		// The text may be about to be written, or the disk was full. A kubelet does not delete the pods of an empty
		// file either.
		t.stale = x.markPresent(now) || t.stale
		x.setFault(now, "it contains no Kubernetes object: to delete its pods, remove the file")
		x.content = in.Text
		return nil
	}
	one := t.loader.Text(input.Source{Name: in.Name, Text: in.Text, Namespace: t.loader.Namespace})
	m, err := t.loader.Join(one)
	if err != nil {
		return err
	}
	t.stale = x.markPresent(now) || t.stale
	x.setFault(now, refusal(m.Problems))
	if x.content = in.Text; x.fault == "" {
		x.valid, x.known, t.stale = one, true, true
	}
	return nil
}

// combine creates the objects from all texts in effect. Each text is valid by itself. It returns an error if this
// failed for a reason outside the texts.
func (t *Texts) combine(now time.Time) error {
	var all []*load.Text
	for _, name := range slices.Sorted(maps.Keys(t.texts)) {
		if x := t.texts[name]; x.inEffect() {
			all = append(all, x.valid)
		}
	}
	m, err := t.loader.Join(all...)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(m.Problems, func(p document.Problem) bool { return p.Limit })
	if t.over = nil; i >= 0 {
		t.over = &Problem{File: m.Problems[i].File, Text: m.Problems[i].String()}
		return nil
	}
	t.sort(m.Problems)
	t.notes = t.notesOf(m)
	t.setWanted(now, m)
	return nil
}

// setWanted sets the wanted objects from the combined texts.
func (t *Texts) setWanted(now time.Time, m *load.Manifest) {
	var pods, workloads, objects []*want
	for _, d := range m.Pods {
		d.Owner = t.name
		pods = append(pods, &want{pod: d})
	}
	for _, w := range m.Workloads {
		w.Owner = t.name
		workloads = append(workloads, &want{workload: w})
	}
	for _, o := range m.Objects {
		o.Owner = t.name
		objects = append(objects, &want{object: o})
	}
	t.pods.set(now, pods, t.damaged)
	t.workloads.set(now, workloads, t.damaged)
	t.objects.set(now, objects, t.damaged)
}

// sort sorts the problems of the combined texts into those of single objects, which are left out, and those of whole
// texts.
func (t *Texts) sort(problems []document.Problem) {
	wrong := map[string][]document.Problem{}
	t.found, t.damaged = nil, map[string]bool{}
	for _, p := range problems {
		switch {
		case p.Duplicate:
			t.found = append(t.found, Problem{File: p.File, Text: p.String(), Pod: types.UID(p.First)})
		case p.Class != document.ClassUnresolved:
			wrong[p.File] = append(wrong[p.File], p)
		}
	}
	for name, of := range wrong {
		t.damaged[name] = true
		t.found = append(t.found, Problem{File: name, Text: refusal(of)})
	}
}

func (t *Texts) notesOf(m *load.Manifest) []string {
	notes := document.GroupNotes(m.Notes())
	for _, s := range m.Skipped {
		notes = append(notes, s.File+": "+s.String())
	}
	if more := len(notes) - maxListed; more > 0 {
		notes = append(notes[:maxListed], t.name+": "+unlisted(more, "note"))
	}
	return notes
}

// refusal returns the reason why a text is refused: its first problem and the number of others. It is empty for a valid
// text.
func refusal(problems []document.Problem) string {
	text, n := "", 0
	for _, p := range problems {
		if p.Duplicate || p.Class == document.ClassUnresolved {
			continue
		}
		if n++; n == 1 {
			text = p.String()
		}
	}
	if n > 1 {
		text += "; " + document.AndMore(n-1)
	}
	return text
}

// Wanted returns the state of the source at a time, and when to call again. The time is zero if only a reading can
// change the state.
func (t *Texts) Wanted(now time.Time) (Update, time.Time) {
	u := Update{Source: t.name, Complete: t.complete, Notes: t.notes, Unread: t.unread()}
	var again time.Time
	u.Problems, again = t.reported(now)
	for _, ws := range []wants{t.pods, t.workloads, t.objects} {
		if t.failed == nil {
			again = model.Earlier(again, ws.expire(now))
		}
		for _, w := range ws.sorted() {
			u.add(w)
		}
	}
	slices.Sort(u.Missing)
	return u, again
}

// add adds a wanted object.
func (u *Update) add(w *want) {
	switch missing := !w.missing.IsZero(); {
	case w.object != nil:
		u.Objects = append(u.Objects, w.object)
	case w.workload != nil:
		if u.Workloads = append(u.Workloads, w.workload); missing {
			u.Absent = append(u.Absent, w.workload)
		}
	default:
		if u.Pods = append(u.Pods, w.pod); missing {
			u.Missing = append(u.Missing, w.pod.Pod.UID)
		}
	}
}

// unread returns the existing texts without a known valid version.
func (t *Texts) unread() []string {
	var names []string
	for name, x := range t.texts {
		if x.fault != "" && !x.known || t.damaged[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// stamp records when problems were first found.
func (t *Texts) stamp(now time.Time) {
	before := t.since
	t.since = map[Problem]time.Time{}
	for _, p := range t.found {
		t.since[p] = model.Earlier(before[p], now)
	}
	if t.warning != nil {
		p := Problem{File: t.name, Text: t.warning.Error()}
		t.since[p] = model.Earlier(before[p], now)
	}
}

// reported returns the problems that have lasted long enough, and when the next one will have.
func (t *Texts) reported(now time.Time) (reported []Problem, again time.Time) {
	add := func(p Problem) {
		if due := p.Since.Add(t.reportDelay); due.After(now) {
			again = model.Earlier(again, due)
		} else {
			reported = append(reported, p)
		}
	}
	for p, since := range t.since {
		p.Since = since
		add(p)
	}
	if t.failed != nil {
		add(*t.failed)
	}
	for name, x := range t.texts {
		if x.fault != "" {
			add(Problem{File: name, Text: x.fault, Since: x.faultSince})
		}
	}
	slices.SortStableFunc(reported, Problem.compare)
	return Few(t.name, reported), again
}
