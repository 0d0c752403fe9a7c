package selection

import (
	"slices"
	"strings"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/runtime/state"
)

// kindPod is the kind that a name without one has.
const kindPod = "Pod"

// kindWords are the words for kinds, as kubectl takes them.
func kindWords() map[string][]string {
	return map[string][]string{
		kindPod:               {"pod", "pods", "po"},
		podspec.KindConfigMap: {"configmap", "configmaps", "cm"},
		podspec.KindSecret:    {"secret", "secrets"},
		podspec.KindClaim:     {"persistentvolumeclaim", "persistentvolumeclaims", "pvc"},
		podspec.KindService:   {"service", "services", "svc"},

		podspec.KindDeployment:  {"deployment", "deployments", "deploy"},
		podspec.KindReplicaSet:  {"replicaset", "replicasets", "rs", "replicationcontroller", "replicationcontrollers", "rc"},
		podspec.KindStatefulSet: {"statefulset", "statefulsets", "sts"},
		podspec.KindDaemonSet:   {"daemonset", "daemonsets", "ds"},
		podspec.KindJob:         {"job", "jobs"},
		podspec.KindCronJob:     {"cronjob", "cronjobs", "cj"},
	}
}

// KindOf is the kind that a word stands for; empty if it stands for none.
func KindOf(word string) string {
	// kubectl also takes a kind with its group.
	word = strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(word), ".apps"), ".batch")
	for kind, words := range kindWords() {
		if slices.Contains(words, word) {
			return kind
		}
	}
	return ""
}

// allKinds are those that the word all stands for, in kubectl's order.
func allKinds() []string {
	return []string{"pods", "services", "daemonsets", "deployments", "replicasets", "statefulsets", "cronjobs", "jobs"}
}

// SplitKinds are the arguments for one kind after the other where they name several, as pods,deployments, all or
// deploy/web svc/web do; nil if they do not.
func SplitKinds(args []string) [][]string {
	if len(args) == 0 {
		return nil
	}
	words := strings.Split(args[0], ",")
	if len(args) == 1 && args[0] == "all" {
		words = allKinds()
	}
	if len(words) == 1 {
		return splitTyped(args)
	}
	if slices.ContainsFunc(words, func(word string) bool { return KindOf(word) == "" }) {
		return nil
	}
	var split [][]string
	for _, word := range words {
		split = append(split, append([]string{word}, args[1:]...))
	}
	return split
}

// splitTyped puts KIND/NAME of one kind together; nil if they are of one kind, or some argument is no such one.
func splitTyped(args []string) [][]string {
	var split [][]string
	for _, arg := range args {
		word, name, _ := strings.Cut(arg, "/")
		if KindOf(word) == "" || name == "" || input.IsManifest(arg) {
			return nil
		}
		i := slices.IndexFunc(split, func(of []string) bool { return KindOf(of[0]) == KindOf(word) })
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

// Targets are what the arguments of a command name.
type Targets struct {
	// Pods are names of pods and manifests.
	Pods []string
	// Kind is that of all objects, if the command line names one and no objects: a ConfigMap, a
	// Secret, a claim or a Service. AllPods says the same of pods.
	Kind    string
	AllPods bool
	// Objects are ConfigMaps, Secrets, claims and Services, Workloads the objects that stand for pods.
	Objects, Workloads []state.ObjectKey
}

// IsWorkload reports whether a kind stands for pods.
func IsWorkload(kind string) bool {
	switch kind {
	case podspec.KindDeployment, podspec.KindReplicaSet, podspec.KindStatefulSet, podspec.KindDaemonSet, podspec.KindJob, podspec.KindCronJob:
		return true
	}
	return false
}

// add takes an object that is no pod.
func (t *Targets) add(key state.ObjectKey) {
	if IsWorkload(key.Kind) {
		t.Workloads = append(t.Workloads, key)
	} else {
		t.Objects = append(t.Objects, key)
	}
}

// ParseTargets takes arguments as kubectl does: KIND NAME... or KIND/NAME..., where a name
// without a kind is that of a pod, and a name may have its namespace in front.
func ParseTargets(args []string, namespace string) (Targets, error) {
	if len(args) > 0 && KindOf(args[0]) != "" {
		return ofKind(KindOf(args[0]), args[1:], namespace)
	}
	var t Targets
	for _, arg := range args {
		word, name, typed := strings.Cut(arg, "/")
		kind := KindOf(word)
		switch {
		case !typed || kind == "" || input.IsManifest(arg):
			t.Pods = append(t.Pods, arg)
		case kind == kindPod:
			// A pod has its namespace in front instead of its kind.
			if !strings.Contains(name, "/") {
				name = namespace + "/" + name
			}
			t.Pods = append(t.Pods, name)
		default:
			t.add(keyOf(kind, name, namespace))
		}
	}
	return t, nil
}

// ofKind are names that come after a kind; without names all of the kind.
func ofKind(kind string, names []string, namespace string) (Targets, error) {
	if i := slices.IndexFunc(names, func(name string) bool { w, _, typed := strings.Cut(name, "/"); return typed && KindOf(w) != "" }); i >= 0 {
		return Targets{}, exit.Usagef("%s has a kind of its own: write either KIND NAME... or KIND/NAME...", names[i])
	}
	switch {
	case kind == kindPod:
		return Targets{Pods: names, AllPods: len(names) == 0}, nil
	case len(names) == 0:
		return Targets{Kind: kind}, nil
	}
	var t Targets
	for _, name := range names {
		t.add(keyOf(kind, name, namespace))
	}
	return t, nil
}

// keyOf names an object, with the namespace in front of its name if that has one.
func keyOf(kind, name, namespace string) state.ObjectKey {
	if before, after, given := strings.Cut(name, "/"); given {
		namespace, name = before, after
	}
	return state.ObjectKey{Namespace: namespace, Kind: kind, Name: name}
}

// KindWords are the words that stand for kinds, for completion.
func KindWords() []string {
	words := []string{}
	for _, kind := range []string{
		kindPod, podspec.KindConfigMap, podspec.KindSecret, podspec.KindClaim, podspec.KindService, podspec.KindDeployment,
		podspec.KindReplicaSet, podspec.KindStatefulSet, podspec.KindDaemonSet, podspec.KindJob, podspec.KindCronJob,
	} {
		words = append(words, kindWords()[kind][1])
	}
	return words
}
