package commands

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPatternsMatchTests checks that each alternative of each pattern for go test in the Makefile and the scripts
// matches a test. Without this, the target of a renamed test would pass and run nothing.
func TestPatternsMatchTests(t *testing.T) {
	tests := namesOfTests(t)
	for _, pattern := range patternsOfTests(t) {
		for _, one := range alternatives(pattern) {
			if !matchesTest(t, one, tests) {
				t.Errorf("%s of %s matches no test", one, pattern)
			}
		}
	}
}

// patternsOfTests returns the patterns of the Makefile and of the scripts, with their variables replaced.
func patternsOfTests(t *testing.T) (all []string) {
	t.Helper()
	variable := regexp.MustCompile(`(?m)^([A-Z_]+) [:?]?= (.*)$`)
	makefile := contentsOf(t, "../Makefile")
	var values []string
	for _, loop := range regexp.MustCompile(`for (test) in ([\w ]+); do`).FindAllStringSubmatch(makefile, -1) {
		values = append(values, "$$"+loop[1], "("+strings.ReplaceAll(loop[2], " ", "|")+")")
	}
	for _, v := range variable.FindAllStringSubmatch(makefile, -1) {
		values = append(values, "$("+v[1]+")", v[2])
	}
	text := strings.NewReplacer(values...).Replace(makefile)
	text = strings.NewReplacer(`\$$`, "$", "$$", "$").Replace(text) + contentsOf(t, "../hack/*/*.sh")
	given := regexp.MustCompile(`(?:-(?:test\.)?(?:run|skip) |SKIP=)(?:'([^']+)'|"([^"]+)")|\bRUN=(\^?Test[^\s")]+)`)
	for _, found := range given.FindAllStringSubmatch(text, -1) {
		pattern := found[1] + found[2] + found[3]
		if pattern != "^$" && !strings.Contains(pattern, "$(value ") && pattern != "$2" {
			all = append(all, pattern)
		}
	}
	// Lists of parts of TestE2E for test-vm.
	list := regexp.MustCompile(`(?m)^(?:VM_SKIP \?=|VM_RUN \?=|apart=|cgroups=) ?'?([^'\n]+)`)
	for _, found := range list.FindAllStringSubmatch(text, -1) {
		all = append(all, "TestE2E/("+found[1]+")")
	}
	if len(all) < 18 {
		t.Errorf("only %d patterns were found: %q", len(all), all)
	}
	return all
}

// group is a group of alternatives without further groups in it.
var group = regexp.MustCompile(`\(([^()]*)\)(\??)`)

// alternatives returns a pattern for each choice of alternatives: "a1" and "a2" for "a(1|2)".
func alternatives(pattern string) (all []string) {
	at := group.FindStringSubmatchIndex(pattern)
	if at == nil {
		return strings.Split(pattern, "|")
	}
	words := strings.Split(pattern[at[2]:at[3]], "|")
	if at[4] < at[5] {
		words = append(words, "")
	}
	for _, word := range words {
		all = append(all, alternatives(pattern[:at[0]]+word+pattern[at[1]:])...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// namesOfTests returns the end-to-end tests and the tests with Kubernetes. Each has the parts that its function lists.
func namesOfTests(t *testing.T) map[string][]string {
	t.Helper()
	test := regexp.MustCompile(`(?ms)^func (Test\w+)\(t \*testing\.T\) \{(?: [^\n]* \}|\n(.*?)^\})$`)
	part := regexp.MustCompile(`(?:\t\{|t\.Run\()"([^"]+)", (?:\w+\.)?test\w+[})]`)
	all := map[string][]string{}
	text := contentsOf(t, "e2e/*_test.go") + contentsOf(t, "../test/kubernetes/*_test.go")
	for _, found := range test.FindAllStringSubmatch(text, -1) {
		all[found[1]] = nil
		for _, p := range part.FindAllStringSubmatch(found[2], -1) {
			all[found[1]] = append(all[found[1]], strings.ReplaceAll(p[1], " ", "_"))
		}
	}
	for name, least := range map[string]int{"TestE2E": 90, "TestCluster": 15, "TestOutages": 5, "TestNodeTakeOver": 1} {
		if len(all[name]) < least {
			t.Errorf("%s has the parts %q", name, all[name])
		}
	}
	return all
}

// matchesTest reports whether a pattern matches a test and, if it has a second element, one of its parts.
func matchesTest(t *testing.T, pattern string, tests map[string][]string) bool {
	t.Helper()
	name, part, _ := strings.Cut(pattern, "/")
	matches := func(pattern, text string) bool {
		is, err := regexp.MatchString(pattern, text)
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
		}
		return is
	}
	for test, parts := range tests {
		if matches(name, test) && (len(parts) == 0 ||
			slices.ContainsFunc(parts, func(p string) bool { return matches(part, p) })) {
			return true
		}
	}
	return false
}
