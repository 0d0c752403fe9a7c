package planfile

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/podctl/podctl/runtime/model"
)

// A line of facts is a list of terms with a space between them. Most are one word; these
// are followed by a value.
const (
	restarts = "restarts"
	attempt  = "attempt"
	exitCode = "exit code"
	exists   = "exists"
	prepared = "prepared"
)

// These terms stand for themselves.
const (
	logFull     = "log full"
	podNetwork  = "POD"
	nodeNetwork = "NODE"
)

// line writes the terms that are not empty.
func line(terms ...string) string {
	return strings.Join(slices.DeleteFunc(terms, func(t string) bool { return t == "" }), " ")
}

func number[N int32 | uint32](name string, n N) string { return fmt.Sprintf("%s %d", name, n) }

func truth(name string, is bool) string { return name + " " + strconv.FormatBool(is) }

// wordsOf is how many words a term has that begins with a word.
func wordsOf(first string) int {
	switch first {
	case restarts, attempt, exists, prepared, "log", string(model.Liveness), string(model.Readiness), string(model.Startup):
		return 2
	case "exit":
		return 3
	}
	return 1
}

// spoken is a term as people say it; empty for what is only there to be compared.
func spoken(term string) string {
	if regexp.MustCompile(`^(v\d+:|sha256:)?[0-9a-f]{5,}$`).MatchString(term) {
		return ""
	}
	switch term {
	case string(model.Running), string(model.Exited), string(model.Created), string(model.Unknown), string(model.SandboxReady):
		return strings.ToLower(term)
	case string(model.SandboxNotReady):
		return "not ready"
	case podNetwork:
		return ""
	case nodeNetwork:
		return "in the node's network"
	case truth(exists, true):
		return "there"
	case truth(exists, false):
		return "missing"
	case truth(prepared, true):
		return "prepared"
	case truth(prepared, false):
		return "not prepared"
	}
	return term
}

// spokenTerms reads a line back, as far as it says something to people.
func spokenTerms(text string) []string {
	var terms []string
	for rest := strings.Fields(text); len(rest) > 0; {
		n := min(wordsOf(rest[0]), len(rest))
		if term := spoken(strings.Join(rest[:n], " ")); term != "" {
			terms = append(terms, term)
		}
		rest = rest[n:]
	}
	return terms
}

// newFact says what there is now.
func newFact(text string) string {
	if terms := spokenTerms(text); len(terms) > 0 {
		return "new: " + strings.Join(terms, ", ")
	}
	return "new"
}

// changedFact says how a fact changed. Hashes and ids say nothing to a reader: where
// only they differ, what they stand for does.
func changedFact(object, before, after string) string {
	was, is := spokenTerms(before), spokenTerms(after)
	gone := slices.DeleteFunc(slices.Clone(was), func(t string) bool { return slices.Contains(is, t) })
	come := slices.DeleteFunc(slices.Clone(is), func(t string) bool { return slices.Contains(was, t) })
	switch {
	case len(gone) > 0 && len(come) > 0:
		return strings.Join(gone, ", ") + " -> " + strings.Join(come, ", ")
	case len(come) > 0:
		return "now " + strings.Join(come, ", ")
	case len(gone) > 0:
		return "no longer " + strings.Join(gone, ", ")
	}
	return hiddenChange(object)
}

// hiddenChange says what changed of an object when only a hash of it did.
func hiddenChange(object string) string {
	kind, _, _ := strings.Cut(object, " ")
	switch kind {
	case "container":
		return "made of another definition"
	case "sandbox":
		return "made with other settings"
	case "volume":
		return "other content"
	case "left":
		return "podctl has made another pass"
	case "image":
		return "the name stands for another image"
	}
	return "changed"
}
