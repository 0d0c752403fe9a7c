package sources

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/document"
	"github.com/podctl/podctl/podspec/load"
)

// manifest returns a pod whose image is its version.
func manifest(name, uid, version string) string {
	text := "apiVersion: v1\nkind: Pod\nmetadata:\n  name: " + name + "\n"
	if uid != "" {
		text += "  uid: u-" + uid + "\n"
	}
	return text + "spec:\n  containers:\n  - name: app\n    image: registry.local/app:" + version + "\n"
}

const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: \"%s\"}\n"

func withConfig(name string) string {
	return manifest(name, "", "1") + "    envFrom: [{configMapRef: {name: c, optional: true}}]\n"
}

// book is a source with texts by name and a clock, both set by a test.
type book struct {
	*Texts
	t     *testing.T
	now   time.Time
	texts map[string]string
	// unreadable are the names of existing texts that cannot be read.
	unreadable map[string]bool
	last       Update
	again      time.Time
}

func newBook(t *testing.T) *book {
	t.Helper()
	return &book{
		Texts: NewTexts("/pods", load.Loader{Store: true}), t: t, now: time.Unix(1_000_000, 0),
		texts: map[string]string{}, unreadable: map[string]bool{},
	}
}

// read processes a reading of all texts.
func (b *book) read() Update {
	r := Reading{}
	for name, text := range b.texts {
		one := Text{Name: name, Text: []byte(text)}
		if b.unreadable[name] {
			one = Text{Name: name, Err: errors.New("permission denied")}
		}
		r.Texts = append(r.Texts, one)
	}
	b.Take(b.now, r)
	return b.ask()
}

// ask returns what is wanted now.
func (b *book) ask() Update {
	b.last, b.again = b.Wanted(b.now)
	return b.last
}

// fails processes a failed reading.
func (b *book) fails(text string) Update {
	b.Take(b.now, Reading{Err: errors.New(text)})
	return b.ask()
}

// write sets texts, given as name and text, and reads them.
func (b *book) write(texts ...string) Update {
	for i := 0; i < len(texts); i += 2 {
		b.texts[texts[i]] = texts[i+1]
	}
	return b.read()
}

func (b *book) remove(names ...string) Update {
	for _, name := range names {
		delete(b.texts, name)
	}
	return b.read()
}

// later returns what is wanted after a while, without a new reading.
func (b *book) later(d time.Duration) Update {
	b.now = b.now.Add(d)
	return b.ask()
}

// shown returns the pods of an update: name, version, and the data of the ConfigMap, if any.
func shown(u Update) string {
	var pods []string
	for _, d := range u.Pods {
		_, version, _ := strings.Cut(d.Pod.Spec.Containers[0].Image, ":")
		one := d.Pod.Name + ":" + version
		if c := d.Objects.ConfigMaps["c"]; c != nil {
			one += "+" + c.Data["a"]
		}
		pods = append(pods, one)
	}
	return strings.Join(pods, " ")
}

func (b *book) wants(want string) {
	b.t.Helper()
	if got := shown(b.last); got != want {
		b.t.Errorf("wanted are %q, want %q", got, want)
	}
}

// blames checks the problems, each by a word in its text.
func (b *book) blames(words ...string) {
	b.t.Helper()
	for i := range max(len(words), len(b.last.Problems)) {
		if i >= len(words) || i >= len(b.last.Problems) || !strings.Contains(b.last.Problems[i].Text, words[i]) {
			b.t.Fatalf("problems %v, want %q", b.last.Problems, words)
		}
	}
}

// TestWanted checks that pods have their source and their text, and keep their pointer until they change.
func TestWanted(t *testing.T) {
	b := newBook(t)
	u := b.write("b", manifest("two", "", "1"), "a", manifest("one", "", "1"))
	b.wants("one:1 two:1")
	if d := u.Pods[0]; d.Owner != "/pods" || d.Source != "a" || !u.Complete || !b.again.IsZero() || u.Source != "/pods" {
		t.Errorf("%+v %v", u, b.again)
	}
	again := b.write("a", manifest("one", "", "1")+"# remark\n", "b", manifest("two", "", "2"))
	b.wants("one:1 two:2")
	if again.Pods[0] != u.Pods[0] || again.Pods[1] == u.Pods[1] {
		t.Error("a pod must be the same value if and only if it has not changed")
	}
	if third := b.read(); !third.SameAs(again) {
		t.Error("reading the same makes another update")
	}
}

// TestUnchangedTextsAreNotParsed checks that unchanged texts are not parsed again, whether valid or not.
func TestUnchangedTextsAreNotParsed(t *testing.T) {
	b, parsed := newBook(t), 0
	b.loader.Stored = func(d *podspec.Desired) (*podspec.Desired, []podspec.ObjectName, error) {
		parsed++
		return d, nil, nil
	}
	b.write("a", manifest("one", "", "1"), "bad", manifest("No", "", "1"), "empty", "")
	before := parsed
	for range 3 {
		b.now = b.now.Add(time.Second)
		b.read()
	}
	if parsed != before || before == 0 {
		t.Errorf("%d pods parsed, then %d", before, parsed)
	}
	b.write("a", manifest("one", "", "2"))
	// once by itself, once together with the others
	if parsed != before+2 {
		t.Errorf("one change made %d pods", parsed-before)
	}
}

// TestInvalidTexts checks that the last valid version stays in effect, and that the problem is reported after a second.
func TestInvalidTexts(t *testing.T) {
	for name, damage := range map[string]func(*book){
		"half":       func(b *book) { b.write("a", manifest("one", "", "2")[:50]) },
		"refused":    func(b *book) { b.write("a", manifest("One", "", "2")) },
		"unreadable": func(b *book) { b.unreadable["a"] = true; b.read() },
	} {
		b := newBook(t)
		b.write("a", manifest("one", "", "1"), "b", manifest("two", "", "1"))
		damage(b)
		since := b.now
		b.wants("one:1 two:1")
		b.blames()
		b.later(reportDelay - 1)
		b.blames()
		b.later(1)
		if b.wants("one:1 two:1"); len(b.last.Problems) != 1 || b.last.Problems[0].File != "a" || !b.last.Problems[0].Since.Equal(since) {
			t.Fatalf("%s: problems %v", name, b.last.Problems)
		}
		// Different damage is the same problem.
		b.unreadable = map[string]bool{}
		b.write("a", "kind: [")
		b.later(time.Hour)
		if b.wants("one:1 two:1"); len(b.last.Problems) != 1 || !b.last.Problems[0].Since.Equal(since) || len(b.last.Unread) > 0 {
			t.Fatalf("%s: problems %v, unread %v", name, b.last.Problems, b.last.Unread)
		}
		b.write("a", manifest("one", "", "3"))
		b.wants("one:3 two:1")
		b.blames()
	}
}

// TestInvalidTextWithoutAValidVersion checks that an invalid text without a known valid version is reported at once, so
// that its pods are not changed.
func TestInvalidTextWithoutAValidVersion(t *testing.T) {
	b := newBook(t)
	b.unreadable["c"] = true
	b.write("a", manifest("one", "", "1"), "bad", "kind: [", "c", "", "empty", "# nothing\n---\n")
	b.wants("one:1")
	if !b.last.Complete || !slices.Equal(b.last.Unread, []string{"bad", "c", "empty"}) {
		t.Errorf("%+v", b.last)
	}
	b.blames()
	b.later(time.Second)
	b.blames("bad:", "permission denied", "contains no Kubernetes object")
	b.write("bad", manifest("two", "", "1"), "empty", manifest("three", "", "1"))
	b.remove("c")
	b.wants("one:1 three:1 two:1")
	if len(b.last.Unread)+len(b.last.Problems) > 0 {
		t.Errorf("%+v", b.last)
	}
}

// TestBrieflyMissingObjects checks that an object that is missing for less than two seconds stays wanted.
func TestBrieflyMissingObjects(t *testing.T) {
	one := manifest("one", "", "1")
	for name, c := range map[string]struct{ away, back func(*book) }{
		"removed":            {func(b *book) { b.remove("a") }, func(b *book) { b.write("a", one) }},
		"renamed":            {func(b *book) { b.remove("a") }, func(b *book) { b.write("z", one) }},
		"moved":              {func(b *book) { b.write("a", manifest("two", "", "1")) }, func(b *book) { b.write("z", one) }},
		"half written again": {func(b *book) { b.remove("a") }, func(b *book) { b.write("a", one[:40]) }},
	} {
		b := newBook(t)
		b.write("a", one)
		c.away(b)
		if !strings.HasPrefix(shown(b.last), "one:1") || !b.again.Equal(b.now.Add(DropDelay)) {
			t.Errorf("%s: %s, again %v", name, shown(b.last), b.again)
		}
		b.later(DropDelay - 1)
		c.back(b)
		b.later(time.Hour)
		if !strings.HasPrefix(shown(b.last), "one:1") || !b.again.IsZero() {
			t.Errorf("%s: back, but wanted are %q", name, shown(b.last))
		}
		b = newBook(t)
		b.write("a", one, "b", manifest("other", "", "1"))
		c.away(b)
		b.later(DropDelay)
		if strings.Contains(shown(b.last), "one:1") {
			t.Errorf("%s: not back, but wanted are %q", name, shown(b.last))
		}
		if c.back(b); strings.Contains(shown(b.last), "one:1") == strings.Contains(name, "half") {
			t.Errorf("%s: back too late, and wanted are %q", name, shown(b.last))
		}
	}
}

// TestDrop checks that the pods of a deleted text end at once, and that the next reading brings back those of a text
// that exists again.
func TestDrop(t *testing.T) {
	b := newBook(t)
	b.write("a", manifest("one", "", "1")+"---\n"+withConfig("two"), "b", manifest("three", "", "1"))
	before := shown(b.last)
	if b.Drop([]string{"c"}); shown(b.ask()) != before {
		t.Errorf("another text: %s", shown(b.last))
	}
	if b.Drop([]string{"a"}); shown(b.ask()) != "three:1" || !b.last.Complete {
		t.Errorf("dropped: %s", shown(b.last))
	}
	if b.read(); shown(b.last) != before {
		t.Errorf("written again: %s, before %s", shown(b.last), before)
	}
	b.Drop([]string{"a"})
	if b.remove("a"); shown(b.last) != "three:1" {
		t.Errorf("removed: %s", shown(b.last))
	}
}

// TestAnEmptyTextChangesNothing checks that an empty text is reported and changes nothing, because the disk may be full
// or a write unfinished.
func TestAnEmptyTextChangesNothing(t *testing.T) {
	for _, text := range []string{"", "# later\n", "---\n"} {
		b := newBook(t)
		b.write("a", manifest("one", "", "1"))
		b.write("a", text)
		b.later(time.Hour)
		if shown(b.last) != "one:1" || len(b.last.Problems) != 1 || !strings.Contains(b.last.Problems[0].Text, "remove the file") {
			t.Errorf("%q: %s, %+v", text, shown(b.last), b.last.Problems)
		}
		b.write("a", manifest("one", "", "2"))
		b.wants("one:2")
	}
}

// TestReplacementBySameNameOrUID checks that a pod with the same name or the same UID replaces another at once.
func TestReplacementBySameNameOrUID(t *testing.T) {
	b := newBook(t)
	b.write("a", manifest("one", "x", "1"))
	b.remove("a")
	b.write("b", manifest("one", "y", "2"))
	b.wants("one:2")
	b.remove("b")
	b.write("c", manifest("two", "y", "3"))
	b.wants("two:3")
	b.later(time.Hour)
	b.wants("two:3")
}

// TestDuplicates checks that the first text in name order wins, independent of the read order, and that only the second
// pod is left out of its text.
func TestDuplicates(t *testing.T) {
	b := newBook(t)
	b.write("b", manifest("one", "", "2")+"---\n"+manifest("two", "", "1"))
	b.write("a", manifest("one", "", "1"))
	b.wants("one:1 two:1")
	b.blames()
	b.later(time.Second)
	b.blames("Pod default/one is given twice, first in a:4")
	if p := b.last.Problems[0]; p.File != "b" || len(b.last.Unread) > 0 {
		t.Errorf("%+v", b.last)
	}
	b.remove("a")
	b.wants("one:2 two:1")
	b.write("b", manifest("one", "u", "2"), "c", manifest("three", "u", "1"))
	b.later(time.Second)
	b.blames(`the uid "u-u" is given twice, first in b:4`)
	b.write("b", manifest("one", "", "2")+"---\n"+manifest("one", "", "3"))
	b.later(time.Hour)
	b.wants("one:2 three:1")
}

// TestObjectsOfOtherTexts checks that a ConfigMap is separate from the pods that name it, and stays wanted as long
// after its removal.
func TestObjectsOfOtherTexts(t *testing.T) {
	b := newBook(t)
	b.write("pod", withConfig("one"), "config", fmt.Sprintf(config, "x"))
	b.wants("one:1+x")
	if d := b.last.Pods[0]; !d.Own().IsEmpty() {
		t.Error("the pod has a copy of its own")
	}
	b.hasBeside(t, "at first", "ConfigMap@config")
	b.remove("config")
	b.later(DropDelay - 1)
	b.hasBeside(t, "missing", "ConfigMap@config")
	b.write("other", fmt.Sprintf(config, "y"))
	b.wants("one:1+y")
	b.hasBeside(t, "in another text", "ConfigMap@other")
	b.write("pod", manifest("one", "", "2"))
	b.hasBeside(t, "named by none", "ConfigMap@other")
	b.remove("other")
	b.later(DropDelay)
	b.hasBeside(t, "after two seconds", "")
	if b.later(time.Hour); !b.again.IsZero() {
		t.Error("what is gone is waited for")
	}
}

// TestTextInvalidatedByAnother checks that a text that another text makes invalid keeps its last version, and does not
// affect others.
func TestTextInvalidatedByAnother(t *testing.T) {
	b := newBook(t)
	b.write("pod", withConfig("one"), "config", fmt.Sprintf(config, "x"), "two", manifest("two", "", "1"))
	b.write("config", fmt.Sprintf(config, strings.Repeat("x", 200_000)), "two", manifest("two", "", "2"))
	b.wants("one:1+x two:2")
	b.later(time.Second)
	b.blames("pod:")
	if !slices.Equal(b.last.Unread, []string{"pod"}) {
		t.Errorf("unread %v", b.last.Unread)
	}
	b.later(time.Hour)
	b.wants("one:1+x two:2")
	b.write("config", fmt.Sprintf(config, "y"))
	b.wants("one:1+y two:2")
	b.blames()
}

// TestUnreadableSourceIsIncomplete checks that an unreadable source changes nothing and is not complete.
func TestUnreadableSourceIsIncomplete(t *testing.T) {
	b := newBook(t)
	b.fails("gone")
	b.blames()
	if b.later(time.Second); b.last.Complete || len(b.last.Problems) != 1 || b.last.Problems[0].File != "/pods" {
		t.Errorf("%+v", b.last)
	}
	b.write("a", manifest("one", "", "1"), "c", fmt.Sprintf(config, "x"), "p", withConfig("two"))
	b.blames()
	b.remove("a", "c")
	b.later(time.Second)
	// Missing objects are not dropped while the source is unreadable, nor right after.
	b.fails("gone")
	since := b.now
	b.later(time.Hour)
	b.fails("gone in another way")
	b.wants("one:1 two:1")
	b.hasBeside(t, "the ConfigMap is missing", "ConfigMap@c")
	if b.blames("gone in another way"); !b.last.Complete || !b.last.Problems[0].Since.Equal(since) {
		t.Errorf("%+v", b.last)
	}
	b.read()
	b.later(DropDelay - 1)
	b.wants("one:1 two:1")
	b.hasBeside(t, "the ConfigMap is missing", "ConfigMap@c")
	b.later(1)
	b.wants("two:1")
	b.hasBeside(t, "after two seconds", "")
}

// TestLimits checks that texts that exceed a limit together change nothing, and do not make a source complete.
func TestLimits(t *testing.T) {
	var many strings.Builder
	for i := range document.MaxDocuments {
		fmt.Fprintf(&many, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\n", i)
	}
	b := newBook(t)
	b.write("a", manifest("one", "", "1"), "many", many.String())
	if b.wants(""); b.last.Complete {
		t.Error("the source counts as read")
	}
	b.remove("many")
	if b.wants("one:1"); !b.last.Complete {
		t.Error("the source does not count as read")
	}
	b.write("many", many.String(), "a", manifest("one", "", "2"))
	b.read()
	b.later(time.Second)
	b.wants("one:1")
	b.blames("more than 1000 documents")
	b.remove("many")
	b.wants("one:2")
	b.blames()
}

// TestStoreFails checks that texts are read again after a failure to read stored objects.
func TestStoreFails(t *testing.T) {
	b := newBook(t)
	failed := errors.New("the disk is gone")
	b.loader.Stored = func(d *podspec.Desired) (*podspec.Desired, []podspec.ObjectName, error) { return d, nil, failed }
	b.write("a", manifest("one", "", "1"))
	b.later(time.Second)
	if b.blames("the disk is gone"); b.last.Complete || len(b.last.Pods) > 0 {
		t.Errorf("%+v", b.last)
	}
	failed = nil
	b.read()
	b.wants("one:1")
	failed = errors.New("the disk is gone")
	b.write("a", manifest("one", "", "2"))
	b.wants("one:1")
	failed = nil
	b.read()
	b.wants("one:2")
	// The failure occurs only when all texts are combined.
	calls := 0
	b.loader.Stored = func(d *podspec.Desired) (*podspec.Desired, []podspec.ObjectName, error) {
		if calls++; calls == 2 {
			return nil, nil, errors.New("the disk is gone")
		}
		return d, nil, nil
	}
	b.write("a", manifest("one", "", "3"))
	b.wants("one:2")
	b.read()
	b.wants("one:3")
}

// TestNotesAndWarnings checks that notes and warnings are reported.
func TestNotesAndWarnings(t *testing.T) {
	b := newBook(t)
	b.write("a", manifest("one", "", "1")+"  schedulerName: x\n")
	if len(b.last.Notes) != 1 || !strings.Contains(b.last.Notes[0], "schedulerName") {
		t.Errorf("notes %q", b.last.Notes)
	}
	b.Take(b.now, Reading{Warning: errors.New("no watch")})
	b.later(time.Second)
	b.blames("no watch")
	b.read()
	b.blames()
}

// TestManyProblems checks that only some problems are listed, with one that counts the others. When one is fixed,
// another is listed.
func TestManyProblems(t *testing.T) {
	b := newBook(t)
	const n = 1000
	for i := range n {
		b.texts[fmt.Sprintf("/pods/%04d", i)] = "kind: Pod"
	}
	b.read()
	u := b.later(reportDelay)
	if len(u.Problems) != maxListed+1 || len(u.Unread) != n {
		t.Fatalf("%d problems, %d unread", len(u.Problems), len(u.Unread))
	}
	if last := u.Problems[maxListed]; last.File != "/pods" || last.Text != "not listed: 980 more problems" || last.Since.IsZero() {
		t.Errorf("%+v", last)
	}
	if again := b.later(time.Second); !again.SameAs(u) {
		t.Error("an unchanged update is reported again")
	}
	u = b.write("/pods/0000", manifest("one", "", "1"))
	if u.Problems[0].File != "/pods/0001" || u.Problems[maxListed].Text != "not listed: 979 more problems" {
		t.Errorf("%+v", u.Problems)
	}
}

// TestManyNotes checks that only some notes are listed, and that the same note of several manifests is listed once.
func TestManyNotes(t *testing.T) {
	b := newBook(t)
	for i := range 2 * maxListed {
		b.texts[fmt.Sprintf("/pods/%d", i)] = manifest(fmt.Sprint("p", i), "", "1") + "  schedulerName: x\n"
	}
	if notes := b.read().Notes; len(notes) != 1 || !strings.Contains(notes[0], " more places)") {
		t.Errorf("%q", notes)
	}
	b = newBook(t)
	text := manifest("many", "", "1") + "  initContainers:\n"
	for i := range 2 * maxListed {
		text += fmt.Sprintf("  - {name: i%d, image: 'i:1', ports: [{containerPort: 1, hostPort: %d}]}\n", i, 1000+i)
	}
	b.texts["/pods/many"] = text
	if notes := b.read().Notes; len(notes) != maxListed+1 || !strings.Contains(notes[maxListed], "/pods: not listed: ") {
		t.Errorf("%q", notes)
	}
}
