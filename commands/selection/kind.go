package selection

import (
	"slices"
	"strings"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/runtime/state"
)

// kindsNamed returns the kinds that the first argument names, for example pods, pods,deployments or all; nil if it
// names none.
func kindsNamed(args []string) []podspec.Kind {
	var kinds []podspec.Kind
	for _, word := range kindWords(args, nil) {
		kinds = append(kinds, podspec.KindOfWord(word))
	}
	return kinds
}

// kindWords returns the words of the first argument if each of them is a kind or one of more; "all" stands for several
// kinds.
func kindWords(args, more []string) []string {
	if len(args) == 0 {
		return nil
	}
	var words []string
	for word := range strings.SplitSeq(args[0], ",") {
		switch {
		case podspec.KindOfWord(word).Name != "" || slices.Contains(more, word):
			words = append(words, word)
		case word == "all" && len(args) == 1:
			for _, kind := range podspec.Kinds() {
				if !kind.NotInAll {
					words = append(words, kind.Words[0])
				}
			}
		default:
			return nil
		}
	}
	return words
}

// SplitKinds splits arguments that name several kinds into the arguments for each kind, as for pods,deployments, all or
// deploy/web svc/web. It returns nil for a single kind. The words in more count as kinds.
func SplitKinds(args []string, more ...string) [][]string {
	words := kindWords(args, more)
	if len(words) < 2 {
		return splitTyped(args, more)
	}
	split := make([][]string, 0, len(words))
	for _, word := range words {
		split = append(split, append([]string{word}, args[1:]...))
	}
	return split
}

// splitTyped groups KIND/NAME arguments by kind. It returns nil if there is only one kind, or another argument.
func splitTyped(args, more []string) [][]string {
	var split [][]string
	kindOf := func(word string) string {
		if slices.Contains(more, word) {
			return more[0]
		}
		return podspec.KindOfWord(word).Name
	}
	for _, arg := range args {
		word, name, _ := strings.Cut(arg, "/")
		kind := kindOf(word)
		if kind == "" || name == "" || input.IsManifest(arg) {
			return nil
		}
		i := slices.IndexFunc(split, func(of []string) bool { return kindOf(of[0]) == kind })
		if i < 0 {
			i, split = len(split), append(split, []string{word})
		}
		split[i] = append(split[i], name)
	}
	if len(split) < 2 {
		return nil
	}
	return split
}

// Targets are the pods and objects named by the arguments of a command.
type Targets struct {
	// Pods are names of pods and manifests.
	Pods []string
	// Kinds are the kinds given without names, which stand for all their objects.
	Kinds []string
	// Objects are ConfigMaps, Secrets, claims and Services. Workloads are the objects that have pods.
	Objects, Workloads []state.ObjectKey
}

// Kind returns the only kind in Kinds; empty if there is none, or there are several.
func (t *Targets) Kind() string {
	if len(t.Kinds) != 1 {
		return ""
	}
	return t.Kinds[0]
}

// ParseTargets parses arguments as kubectl does: KIND[,KIND...] [NAME...] or KIND/NAME... A name without a kind is that
// of a pod. A name can have its namespace in front.
func ParseTargets(args []string, namespace string) (Targets, error) {
	if kinds := kindsNamed(args); kinds != nil {
		return ofKinds(kinds, args[1:], namespace)
	}
	var t Targets
	for _, arg := range args {
		word, name, typed := strings.Cut(arg, "/")
		kind := podspec.KindOfWord(word).Name
		if !typed || kind == "" || input.IsManifest(arg) {
			t.Pods = append(t.Pods, arg)
		} else {
			t.addNamed(kind, name, namespace)
		}
	}
	return t, nil
}

// ofKinds returns the targets for names after kinds. Without names it returns the kinds.
func ofKinds(kinds []podspec.Kind, names []string, namespace string) (Targets, error) {
	for _, name := range names {
		if word, _, typed := strings.Cut(name, "/"); typed && podspec.KindOfWord(word).Name != "" {
			return Targets{}, exit.Usagef("%s already has a kind: write either KIND NAME... or KIND/NAME...", name)
		}
	}
	var t Targets
	for _, kind := range kinds {
		if len(names) == 0 {
			t.Kinds = append(t.Kinds, kind.Name)
		}
		for _, name := range names {
			if kind.Name == podspec.KindPod {
				t.Pods = append(t.Pods, name)
			} else {
				t.addNamed(kind.Name, name, namespace)
			}
		}
	}
	return t, nil
}

// addNamed adds an object by name. The name can have its namespace in front.
func (t *Targets) addNamed(kind, name, namespace string) {
	if before, after, given := strings.Cut(name, "/"); given {
		namespace, name = before, after
	}
	key := state.ObjectKey{Namespace: namespace, Kind: kind, Name: name}
	switch {
	case kind == podspec.KindPod:
		t.Pods = append(t.Pods, namespace+"/"+name)
	case podspec.KindNamed(kind).Workload:
		t.Workloads = append(t.Workloads, key)
	default:
		t.Objects = append(t.Objects, key)
	}
}

// KindWords returns the words for kinds, for completion.
func KindWords() []string {
	var words []string
	for _, kind := range podspec.Kinds() {
		words = append(words, kind.Words[0])
	}
	slices.Sort(words)
	return words
}
