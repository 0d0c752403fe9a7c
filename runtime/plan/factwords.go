package plan

import (
	"regexp"
	"slices"
	"strings"

	"github.com/podctl/podctl/runtime/model"
)

// factChange says in words how a fact changed. Hashes and ids say nothing to a reader: where
// only they differ, what they stand for does.
func factChange(object, before, after string) string {
	was, is := factWords(before), factWords(after)
	gone := slices.DeleteFunc(slices.Clone(was), func(w string) bool { return slices.Contains(is, w) })
	come := slices.DeleteFunc(slices.Clone(is), func(w string) bool { return slices.Contains(was, w) })
	switch {
	case len(gone) > 0 && len(come) > 0:
		return object + ": " + strings.Join(gone, ", ") + " -> " + strings.Join(come, ", ")
	case len(come) > 0:
		return object + ": now " + strings.Join(come, ", ")
	case len(gone) > 0:
		return object + ": no longer " + strings.Join(gone, ", ")
	}
	return object + ": " + hiddenChange(object)
}

// newFact says in words what there is now.
func newFact(object, text string) string {
	if words := factWords(text); len(words) > 0 {
		return object + ": new: " + strings.Join(words, ", ")
	}
	return object + ": new"
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

// factWord are the words for those of a fact that are no words, or too short; empty ones
// are left out.
func factWord() map[string]string {
	return map[string]string{
		string(model.Running): "running", string(model.Exited): "exited", string(model.Created): "created", string(model.Unknown): "unknown",
		string(model.SandboxReady): "ready", string(model.SandboxNotReady): "not ready", "POD": "", "NODE": "in the node's network",
		"exists true": "there", "exists false": "missing", "prepared true": "prepared", "prepared false": "not prepared",
	}
}

// followers are how many words belong to one that begins a term.
func followers() map[string]int {
	return map[string]int{
		"restarts": 1, "attempt": 1, "exit": 2, "log": 1, "exists": 1, "prepared": 1,
		string(model.Liveness): 1, string(model.Readiness): 1, string(model.Startup): 1,
	}
}

// factWords are the terms of a fact that a reader can use, without the hashes and ids that
// are for comparison alone.
func factWords(text string) []string {
	hashOrID := regexp.MustCompile(`^(v\d+:|sha256:)?[0-9a-f]{5,}$`)
	follow, word := followers(), factWord()
	var terms []string
	for rest := strings.Fields(text); len(rest) > 0; {
		n := min(1+follow[rest[0]], len(rest))
		term := strings.Join(rest[:n], " ")
		rest = rest[n:]
		if hashOrID.MatchString(term) {
			continue
		}
		if better, ok := word[term]; ok {
			term = better
		}
		if term != "" {
			terms = append(terms, term)
		}
	}
	return terms
}
