package sources

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
)

// line is a pod in a text.
type line struct {
	name, uid, version string
}

// page is the expected state of one text.
type page struct {
	lines []line
	// away is when the text went missing.
	away time.Time
	here bool
}

// life writes, damages, renames and removes texts at random, and computes which pods must be wanted.
type life struct {
	*book
	r     *rand.Rand
	pages map[string]*page
	// seen is when each pod was last in the texts.
	seen map[line]time.Time
	// before holds the pods of the last update.
	before map[string]*podspec.Desired
	log    []string
}

func (l *life) name() string { return fmt.Sprintf("t%d", l.r.IntN(5)) }

// content returns a text with up to two pods.
func (l *life) content() ([]line, string) {
	var lines []line
	var texts []string
	for range 1 + l.r.IntN(2) {
		one := line{fmt.Sprintf("p%d", l.r.IntN(5)), "", fmt.Sprint(l.r.IntN(3))}
		if l.r.IntN(3) == 0 {
			one.uid = fmt.Sprint(l.r.IntN(3))
		}
		lines = append(lines, one)
		texts = append(texts, manifest(one.name, one.uid, one.version))
	}
	return lines, strings.Join(texts, "---\n")
}

// step makes one random change to the texts.
func (l *life) step() {
	name, other := l.name(), l.name()
	op := l.r.IntN(7)
	l.log = append(l.log, fmt.Sprintf("%d %s %s", op, name, other))
	switch op {
	case 0, 1:
		lines, text := l.content()
		l.arrives(name).lines = lines
		l.texts[name], l.unreadable[name] = text, false
	case 2:
		l.arrives(name)
		l.texts[name], l.unreadable[name] = []string{"kind: [", manifest("No", "", "1"), manifest("p1", "", "1")[:60]}[l.r.IntN(3)], false
	case 3:
		l.arrives(name)
		l.texts[name], l.unreadable[name] = "", false
	case 4:
		l.leaves(name)
		delete(l.texts, name)
	case 5:
		if text, ok := l.texts[name]; ok && name != other && !l.unreadable[name] && l.pages[name] != nil &&
			l.pages[name].here && strings.HasPrefix(text, "apiVersion") && strings.HasSuffix(text, "\n") &&
			!strings.Contains(text, "No") {
			l.arrives(other).lines = linesOf(text)
			l.texts[other], l.unreadable[other] = text, false
			l.leaves(name)
			delete(l.texts, name)
		}
	case 6:
		l.arrives(name)
		l.texts[name], l.unreadable[name] = "x", true
	}
}

// linesOf parses the output of content. It returns nothing for an invalid text.
func linesOf(text string) []line {
	var lines []line
	for one := range strings.SplitSeq(text, "---\n") {
		var l line
		for field := range strings.SplitSeq(one, "\n") {
			switch key, value, _ := strings.Cut(strings.TrimSpace(field), ": "); key {
			case "name":
				l.name = value
			case "uid":
				l.uid = strings.TrimPrefix(value, "u-")
			case "image":
				_, l.version, _ = strings.Cut(value, ":")
			}
		}
		lines = append(lines, l)
	}
	return lines
}

func (l *life) arrives(name string) *page {
	p := l.pages[name]
	if p == nil || !p.here && !l.now.Before(p.away.Add(DropDelay)) {
		p = &page{}
		l.pages[name] = p
	}
	p.here = true
	return p
}

func (l *life) leaves(name string) {
	if p := l.pages[name]; p != nil && p.here {
		p.here, p.away = false, l.now
	}
}

// present returns the pods in the current texts, the first of each name and UID.
func (l *life) present() map[string]line {
	pods, uids := map[string]line{}, map[types.UID]bool{}
	for _, name := range slices.Sorted(maps.Keys(l.pages)) {
		if !l.pages[name].here {
			continue
		}
		for _, one := range l.pages[name].lines {
			if _, ok := pods[one.name]; !ok && !uids[one.id()] {
				pods[one.name], uids[one.id()] = one, true
			}
		}
	}
	return pods
}

func (l line) id() types.UID {
	if l.uid == "" {
		return podspec.UID("default", l.name)
	}
	return types.UID("u-" + l.uid)
}

func lineOf(d *podspec.Desired) line {
	return line{d.Pod.Name, strings.TrimPrefix(string(d.WrittenUID), "u-"), d.Pod.Spec.Containers[0].Image[len("registry.local/app:"):]}
}

// check compares an update with the expected pods.
func (l *life) check() {
	must, got := l.present(), map[string]*podspec.Desired{}
	uids := map[types.UID]string{}
	for _, d := range l.last.Pods {
		if got[d.Pod.Name] != nil || uids[d.Pod.UID] != "" {
			l.fatalf("%s is wanted twice", d.Pod.Name)
		}
		got[d.Pod.Name], uids[d.Pod.UID] = d, d.Pod.Name
		if old := l.before[d.Pod.Name]; old != nil && old != d && old.Source == d.Source && lineOf(old) == lineOf(d) {
			l.fatalf("%s is another value, although it has not changed", d.Pod.Name)
		}
		if _, ok := must[d.Pod.Name]; !ok && !l.now.Before(l.seen[lineOf(d)].Add(DropDelay)) {
			l.fatalf("%s is still wanted", d.Pod.Name)
		}
	}
	takes := map[types.UID]bool{}
	for name, one := range must {
		if got[name] == nil || lineOf(got[name]) != one {
			l.fatalf("%v is not wanted: %s", one, shown(l.last))
		}
		l.seen[one], takes[one.id()] = l.now, true
	}
	for name, d := range l.before {
		_, replaced := must[name]
		if got[name] == nil && !replaced && !takes[d.Pod.UID] && l.now.Before(l.seen[lineOf(d)].Add(DropDelay)) {
			l.fatalf("%s was dropped too early", name)
		}
	}
	l.before = got
}

func (l *life) fatalf(format string, args ...any) {
	l.t.Helper()
	l.t.Fatalf(format+"\n%s", append(args, strings.Join(l.log[max(0, len(l.log)-12):], "\n"))...)
}

// outage makes the source unreadable for a while. Nothing changes, and the time of missing texts starts again at its
// end.
func (l *life) outage() {
	was, start := shown(l.last), l.now
	l.fails("gone")
	l.now = l.now.Add(time.Duration(l.r.IntN(5000)) * time.Millisecond)
	if l.ask(); shown(l.last) != was {
		l.fatalf("wanted were %s, and without a source %s", was, shown(l.last))
	}
	for _, d := range l.last.Pods {
		l.seen[lineOf(d)] = l.now
	}
	for _, p := range l.pages {
		if !p.here && start.Before(p.away.Add(DropDelay)) {
			p.away = l.now
		}
	}
	l.log = append(l.log, "outage")
}

// TestRandomSourceChanges checks with random changes that the pods in the texts are wanted, and that no pod is dropped
// that comes back in time.
func TestRandomSourceChanges(t *testing.T) {
	for seed := range uint64(20) {
		l := &life{book: newBook(t), r: rand.New(rand.NewPCG(seed, 1)), pages: map[string]*page{}, seen: map[line]time.Time{}}
		for range 120 {
			if l.r.IntN(12) == 0 {
				l.outage()
			}
			l.step()
			l.read()
			l.check()
			d := time.Duration(l.r.IntN(1200)) * time.Millisecond
			l.log = append(l.log, d.String())
			l.later(d)
			l.check()
		}
	}
}
