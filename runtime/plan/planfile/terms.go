package planfile

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/podctl/podctl/runtime/model"
)

// A line of facts is a list of terms separated by spaces. A term that begins with one of these words has a value after
// it.
const (
	restarts = "restarts"
	attempt  = "attempt"
	exitCode = "exit code"
	exists   = "exists"
	prepared = "prepared"
)

// line joins the terms that are not empty.
func line(terms ...string) string {
	return strings.Join(slices.DeleteFunc(terms, func(t string) bool { return t == "" }), " ")
}

func number[N int32 | uint32](name string, n N) string { return fmt.Sprintf("%s %d", name, n) }

func truth(name string, is bool) string { return name + " " + strconv.FormatBool(is) }

// lengths returns the number of words of the terms that begin with a word; all others have one.
func lengths() map[string]int {
	return map[string]int{
		restarts: 2, attempt: 2, exists: 2, prepared: 2, "exit": 3, "log": 2, "hook": 2,
		string(model.Liveness): 2, string(model.Readiness): 2, string(model.Startup): 2,
	}
}

// spoken returns readable words for terms. Terms with an empty word are left out.
func spoken() map[string]string {
	return map[string]string{
		string(model.Running):         "running",
		string(model.Exited):          "exited",
		string(model.Created):         "created",
		string(model.Unknown):         "unknown",
		string(model.SandboxReady):    "ready",
		string(model.SandboxNotReady): "not ready",
		podNetwork:                    "",
		nodeNetwork:                   "in the node's network",
		truth(exists, true):           "there",
		truth(exists, false):          "missing",
		truth(prepared, true):         "prepared",
		truth(prepared, false):        "not prepared",
	}
}

// read splits a line into readable terms. It drops hashes and IDs, which are only compared.
func read(text string) []string {
	hashOrID := regexp.MustCompile(`^(v\d+:|sha256:)?[0-9a-f]{5,}$`)
	length, words := lengths(), spoken()
	var terms []string
	for rest := strings.Fields(text); len(rest) > 0; {
		n := min(max(length[rest[0]], 1), len(rest))
		term := strings.Join(rest[:n], " ")
		rest = rest[n:]
		if better, ok := words[term]; ok {
			term = better
		}
		if term != "" && !hashOrID.MatchString(term) {
			terms = append(terms, term)
		}
	}
	return terms
}

// newFact describes a new object.
func newFact(text string) string {
	return strings.TrimSuffix("new: "+strings.Join(read(text), ", "), ": ")
}

// changedFact describes how a fact changed. If only hashes or IDs differ, it names what they represent.
func changedFact(object, before, after string) string {
	was, is := read(before), read(after)
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

// hiddenChange describes the change of an object if only a hash differs.
func hiddenChange(object string) string {
	kind, _, _ := strings.Cut(object, " ")
	switch kind {
	case "container":
		return "created from another definition"
	case "sandbox":
		return "created with other settings"
	case "volume":
		return "other content"
	case "left":
		return "podctl has run another pass"
	case "image":
		return "the name refers to another image"
	}
	return "changed"
}
