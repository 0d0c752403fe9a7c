package kubernetes

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// spec is a spec of Kubernetes' node tests in testdata/specs.txt.
type spec struct {
	name, group    string
	passes, sample bool
}

// readSpecs reads lines such as [GROUP], "+ NAME", "* NAME" and "- NAME". The file explains them.
func readSpecs(text string) ([]spec, error) {
	var all []spec
	group := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		mark, name, _ := strings.Cut(line, " ")
		switch {
		case line == "" || mark == "#":
		case strings.HasPrefix(line, "[") && name == "":
			group = strings.Trim(line, "[]")
		case group != "" && name != "" && (mark == "+" || mark == "*" || mark == "-"):
			all = append(all, spec{name, group, mark != "-", mark == "*"})
		default:
			return nil, fmt.Errorf("invalid line %q", line)
		}
	}
	return all, nil
}

// selectSpecs returns the specs of a group, the sample, those whose names match a pattern, or all.
func selectSpecs(all []spec, group, pattern string) ([]spec, error) {
	matches, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{"sample": true}
	var chosen []spec
	for _, s := range all {
		known[s.group] = true
		if (group == "" || s.group == group || group == "sample" && s.sample) && matches.MatchString(s.name) {
			chosen = append(chosen, s)
		}
	}
	if group != "" && !known[group] {
		return nil, fmt.Errorf("no group %q; groups: %s", group, strings.Join(slices.Sorted(maps.Keys(known)), " "))
	}
	return chosen, nil
}

var special = regexp.MustCompile(`[^\w /=:-]`)

// focus returns a pattern for Ginkgo that matches the names. Special characters become dots, which is exact enough.
func focus(specs []spec) string {
	patterns := make([]string, len(specs))
	for i, s := range specs {
		patterns[i] = special.ReplaceAllString(s.name, ".") + "$"
	}
	return strings.Join(patterns, "|")
}

// outcome is the result of a spec: the state in Ginkgo's words, the reason if it did not pass, and how long it ran.
type outcome struct {
	name, state, reason string
	took                time.Duration
}

const passed = "passed"

// readReport returns the outcomes in a JSON report of Ginkgo, in order of the names. It leaves out specs that were not
// selected.
func readReport(text []byte) ([]outcome, error) {
	var suites []struct {
		SpecReports []struct {
			ContainerHierarchyTexts           []string
			LeafNodeType, LeafNodeText, State string
			Failure                           struct{ Message string }
			RunTime                           time.Duration
		}
	}
	if err := json.Unmarshal(text, &suites); err != nil {
		return nil, err
	}
	var all []outcome
	for _, suite := range suites {
		for _, r := range suite.SpecReports {
			if r.LeafNodeType != "It" || r.State == "skipped" && r.Failure.Message == "" {
				continue
			}
			name := strings.Join(append(slices.Clone(r.ContainerHierarchyTexts), r.LeafNodeText), " ")
			all = append(all, outcome{strings.TrimSpace(name), r.State, oneLine(r.Failure.Message), r.RunTime})
		}
	}
	slices.SortFunc(all, func(a, b outcome) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// oneLine returns the beginning of a message.
func oneLine(message string) string {
	message = strings.Join(strings.Fields(message), " ")
	return message[:min(len(message), 400)]
}

// judge returns the specs that did not pass although the list expects it, those that passed although it does not, and
// the number of specs that the list expects to pass.
func judge(chosen []spec, outcomes []outcome) (broken, surprising []string, expected int) {
	byName := map[string]outcome{}
	for _, o := range outcomes {
		byName[o.name] = o
	}
	for _, s := range chosen {
		o, ran := byName[s.name]
		if s.passes {
			expected++
		}
		switch {
		case s.passes && !ran:
			broken = append(broken, s.name+"\tdid not run")
		case s.passes && o.state != passed:
			broken = append(broken, s.name+"\t"+o.state+": "+o.reason)
		case !s.passes && o.state == passed:
			surprising = append(surprising, s.name)
		}
	}
	return broken, surprising, expected
}

const specsFile = "testdata/specs.txt"

// listedSpecs returns the specs of testdata/specs.txt.
func listedSpecs(t *testing.T) []spec {
	t.Helper()
	text, err := os.ReadFile(specsFile)
	if err != nil {
		t.Fatal(err)
	}
	all, err := readSpecs(string(text))
	if err != nil {
		t.Fatalf("%s: %v", specsFile, err)
	}
	return all
}

func TestReadSpecs(t *testing.T) {
	all, err := readSpecs("# comment\n\n[hooks]\n+ [sig-node] a\n* b c\n[probes]\n- d\n")
	want := []spec{{"[sig-node] a", "hooks", true, false}, {"b c", "hooks", true, true}, {"d", "probes", false, false}}
	if err != nil || !slices.Equal(all, want) {
		t.Errorf("%+v, %v, want %+v", all, err, want)
	}
	for _, text := range []string{"+ a spec without a group", "[hooks]\nb", "[hooks]\n? b", "[hooks]\n+"} {
		if _, err = readSpecs(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func TestSelectSpecs(t *testing.T) {
	all := []spec{{"[sig-node] a", "hooks", true, false}, {"b c", "hooks", true, true}, {"d", "probes", false, false}}
	for _, c := range []struct {
		group, pattern string
		want           []spec
	}{
		{"", "", all},
		{"hooks", "", all[:2]},
		{"sample", "", all[1:2]},
		{"", "^d$|c", all[1:]},
		{"hooks", "a", all[:1]},
		{"", "x", nil},
	} {
		if got, err := selectSpecs(all, c.group, c.pattern); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q %q: %+v, %v, want %+v", c.group, c.pattern, got, err, c.want)
		}
	}
	for _, c := range [][2]string{{"nothing", ""}, {"", "("}} {
		if _, err := selectSpecs(all, c[0], c[1]); err == nil {
			t.Errorf("%q: no error", c)
		}
	}
}

// TestSpecs checks that each name in testdata/specs.txt is unique, that the pattern of the whole list fits into one
// argument of a program, and that the sample has a spec of each group with specs that pass.
func TestSpecs(t *testing.T) {
	all := listedSpecs(t)
	names, groups := map[string]bool{}, map[string]bool{}
	for _, s := range all {
		if names[s.name] {
			t.Errorf("%s is listed twice", s.name)
		}
		names[s.name] = true
		if s.passes {
			groups[s.group] = groups[s.group] || s.sample
		}
		if !regexp.MustCompile(focus([]spec{s})).MatchString(s.name) {
			t.Errorf("%s does not match its pattern", s.name)
		}
	}
	for group, inSample := range groups {
		if !inSample {
			t.Errorf("the sample has no spec of %s", group)
		}
	}
	if size := len(focus(all)); size >= 128<<10 {
		t.Errorf("the pattern of all specs has %d bytes", size)
	}
}

func TestReadReport(t *testing.T) {
	report := `[{"SpecReports": [
		{"LeafNodeType": "BeforeSuite", "State": "passed"},
		{"LeafNodeType": "It", "LeafNodeText": "c", "ContainerHierarchyTexts": ["a", "b"], "State": "passed"},
		{"LeafNodeType": "It", "LeafNodeText": "d", "State": "skipped"},
		{"LeafNodeType": "It", "LeafNodeText": "A", "State": "failed", "RunTime": 1000000000,
			"Failure": {"Message": "two\nlines"}}]}]`
	got, err := readReport([]byte(report))
	if want := []outcome{{"A", "failed", "two lines", time.Second}, {name: "a b c", state: passed}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

func TestJudge(t *testing.T) {
	chosen := []spec{{name: "a", passes: true}, {name: "b", passes: true}, {name: "c"}, {name: "d"}, {name: "e", passes: true}}
	outcomes := []outcome{
		{name: "a", state: passed},
		{name: "b", state: "failed", reason: "why"},
		{name: "c", state: passed},
		{name: "d", state: "failed"},
		{name: "x", state: passed},
	}
	broken, surprising, expected := judge(chosen, outcomes)
	if want := []string{"b\tfailed: why", "e\tdid not run"}; !slices.Equal(broken, want) {
		t.Errorf("broken %q, want %q", broken, want)
	}
	if want := []string{"c"}; !slices.Equal(surprising, want) {
		t.Errorf("surprising %q, want %q", surprising, want)
	}
	if expected != 3 {
		t.Errorf("%d specs must pass, want 3", expected)
	}
}
