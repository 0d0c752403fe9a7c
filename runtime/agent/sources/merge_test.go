package sources

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/load"
)

// said is what a source of one text wants.
func said(source, text string) Update {
	t := NewTexts(source, load.Loader{})
	now := time.Unix(1, 0)
	t.Take(now, Reading{Texts: []Text{{Name: source + "/a", Text: []byte(text)}}})
	u, _ := t.Wanted(now)
	return u
}

// applied finds the pods that sources brought.
func applied(pods ...*podspec.Desired) func(types.NamespacedName) *podspec.Desired {
	return func(key types.NamespacedName) *podspec.Desired {
		for _, d := range pods {
			if keyOf(d) == key {
				return d
			}
		}
		return nil
	}
}

func images(pods map[types.NamespacedName]*podspec.Desired) string {
	var all []string
	for key, d := range pods {
		all = append(all, key.Name+":"+strings.TrimPrefix(d.Pod.Spec.Containers[0].Image, "registry.local/app:"))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// TestMerge: the first source that wants a name or a uid wins, and what it wins over is told.
func TestMerge(t *testing.T) {
	now := time.Unix(10, 0)
	first := said("/first", manifest("one", "", "1")+"---\n"+manifest("two", "x", "1"))
	second := said("/second", manifest("one", "other", "2")+"---\n"+manifest("three", "x", "2")+"---\n"+manifest("four", "", "2"))
	m := Merge(now, Merged{}, []Update{first, second}, applied())
	if got := images(m.Pods); got != "four:2 one:1 two:1" || !m.Complete || len(m.Waiting) > 0 {
		t.Errorf("%s, complete %t", got, m.Complete)
	}
	if len(m.Problems) != 2 || m.Problems[0].File != "/second/a" || !m.Problems[0].Since.Equal(now) ||
		!strings.Contains(m.Problems[0].Text, "Pod default/one is given twice, first in /first/a") ||
		!strings.Contains(m.Problems[1].Text, `the uid "u-x" of Pod default/three is given twice, first in /first/a`) {
		t.Errorf("problems %v", m.Problems)
	}
	second.Problems = []Problem{{File: "/second/b", Text: "bad", Since: time.Unix(5, 0)}}
	again := Merge(now.Add(time.Hour), m, []Update{first, second}, applied())
	if len(again.Problems) != 3 || !again.Problems[0].Since.Equal(now) || !again.Problems[2].Since.Equal(time.Unix(5, 0)) {
		t.Errorf("problems %v", again.Problems)
	}
	if got := images(Merge(now, Merged{}, []Update{second, first}, applied()).Pods); got != "four:2 one:2 three:2" {
		t.Errorf("in the other order: %s", got)
	}
}

// TestMergeWaits: a pod is not taken over from a source that may still want it.
func TestMergeWaits(t *testing.T) {
	first, second := said("/first", manifest("one", "", "1")), said("/second", manifest("one", "", "2"))
	kept := applied(first.Pods...)
	silent := Update{Source: "/first"}
	m := Merge(time.Time{}, Merged{}, []Update{silent, second}, kept)
	if images(m.Pods) != "" || images(m.Waiting) != "one:2" || m.Complete || m.Unwanted(first.Pods[0]) {
		t.Errorf("%+v", m)
	}
	silent.Complete, silent.Unread = true, []string{"/first/a"}
	if m = Merge(time.Time{}, m, []Update{silent, second}, kept); images(m.Waiting) != "one:2" || m.Unwanted(first.Pods[0]) {
		t.Errorf("%+v", m)
	}
	for name, updates := range map[string][]Update{
		"it came from another text":         {{Source: "/first", Complete: true, Unread: []string{"/first/b"}}, second},
		"the other source has no priority":  {second, silent},
		"the source wants nothing any more": {{Source: "/first", Complete: true}, second},
		"it is a source no more":            {second},
	} {
		if m = Merge(time.Time{}, m, updates, kept); images(m.Pods) != "one:2" || len(m.Waiting) > 0 {
			t.Errorf("%s: %+v", name, m)
		}
	}
	if m = Merge(time.Time{}, m, []Update{{Source: "/first"}, second}, applied()); images(m.Pods) != "one:2" {
		t.Errorf("a pod that nobody keeps: %+v", m)
	}
}

// TestUnwanted: a pod goes only if a source brought it and everybody has been heard.
func TestUnwanted(t *testing.T) {
	pod := said("/first", manifest("one", "x", "1")).Pods[0]
	byHand := said("", manifest("one", "x", "1")).Pods[0]
	gone := Update{Source: "/first", Complete: true}
	for name, c := range map[string]struct {
		pod     *podspec.Desired
		updates []Update
		want    bool
	}{
		"gone":                       {pod, []Update{gone}, true},
		"wanted":                     {pod, []Update{said("/first", manifest("one", "x", "2"))}, false},
		"wanted by another":          {pod, []Update{gone, said("/second", manifest("one", "x", "2"))}, false},
		"another of its name":        {pod, []Update{said("/first", manifest("one", "z", "2"))}, true},
		"another of its uid":         {pod, []Update{said("/first", manifest("two", "x", "2"))}, true},
		"applied by hand":            {byHand, []Update{gone, {Source: "", Complete: true}}, false},
		"of no source":               {pod, []Update{{Source: "/second", Complete: true}}, false},
		"another source is not read": {pod, []Update{gone, {Source: "/second"}}, false},
		"its text cannot be used":    {pod, []Update{{Source: "/first", Complete: true, Unread: []string{"/first/a"}}}, false},
		"another text cannot":        {pod, []Update{{Source: "/first", Complete: true, Unread: []string{"/first/b"}}}, true},
	} {
		if got := Merge(time.Time{}, Merged{}, c.updates, applied(c.pod)).Unwanted(c.pod); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestManyLosers: pods that two sources want are listed in part.
func TestManyLosers(t *testing.T) {
	var text strings.Builder
	for i := range 2 * maxListed {
		text.WriteString("---\n" + manifest(fmt.Sprint("p", i), "", "1"))
	}
	m := Merge(time.Time{}, Merged{}, []Update{said("/first", text.String()), said("/second", text.String())}, applied())
	rest := func(p Problem) bool { return p.File == "/second" && p.Text == "not listed: 20 more problems" }
	if len(m.Problems) != maxListed+1 || !slices.ContainsFunc(m.Problems, rest) {
		t.Errorf("%d problems: %+v", len(m.Problems), m.Problems)
	}
}
