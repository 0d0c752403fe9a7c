package podspec

import (
	"slices"
	"strings"
)

// Kind is a kind of objects that podctl runs or stores.
type Kind struct {
	// Name and APIVersion are those of manifests.
	Name, APIVersion string
	// Words lists the words for the kind in arguments, as in kubectl. The first is the plural.
	Words []string
	// Workload is set for kinds that create pods.
	Workload bool
	// NotInAll is set for kinds that the word `all` does not select, as in kubectl.
	NotInAll bool
}

// Kinds returns all kinds that podctl runs or stores, in kubectl's order.
func Kinds() []Kind {
	const core, apps, batch = "v1", "apps/v1", "batch/v1"
	return []Kind{
		{Name: KindPod, APIVersion: core, Words: []string{"pods", "pod", "po"}},
		{Name: KindService, APIVersion: core, Words: []string{"services", "service", "svc"}},
		{Name: KindDaemonSet, APIVersion: apps, Workload: true, Words: []string{"daemonsets", "daemonset", "ds"}},
		{Name: KindDeployment, APIVersion: apps, Workload: true, Words: []string{
			"deployments", "deployment", "deploy",
		}},
		{Name: KindReplicaSet, APIVersion: apps, Workload: true, Words: []string{
			"replicasets", "replicaset", "rs", "replicationcontrollers", "replicationcontroller", "rc",
		}},
		{Name: KindStatefulSet, APIVersion: apps, Workload: true, Words: []string{
			"statefulsets", "statefulset", "sts",
		}},
		{Name: KindCronJob, APIVersion: batch, Workload: true, Words: []string{"cronjobs", "cronjob", "cj"}},
		{Name: KindJob, APIVersion: batch, Workload: true, Words: []string{"jobs", "job"}},
		{Name: KindConfigMap, APIVersion: core, NotInAll: true, Words: []string{"configmaps", "configmap", "cm"}},
		{Name: KindSecret, APIVersion: core, NotInAll: true, Words: []string{"secrets", "secret"}},
		{Name: KindClaim, APIVersion: core, NotInAll: true, Words: []string{
			"persistentvolumeclaims", "persistentvolumeclaim", "pvc",
		}},
	}
}

// KindNamed returns the kind with a name, or the zero value if podctl does not know it.
func KindNamed(name string) Kind {
	return kindWith(func(k Kind) bool { return k.Name == name })
}

// KindOfWord returns the kind for a word, which may be followed by its group: deployments.apps. It returns the zero
// value for an unknown word.
func KindOfWord(word string) Kind {
	word = strings.ToLower(word)
	return kindWith(func(k Kind) bool {
		plain := word
		if group, _, grouped := strings.Cut(k.APIVersion, "/"); grouped {
			plain = strings.TrimSuffix(word, "."+group)
		}
		return slices.Contains(k.Words, plain)
	})
}

func kindWith(match func(Kind) bool) Kind {
	kinds := Kinds()
	if i := slices.IndexFunc(kinds, match); i >= 0 {
		return kinds[i]
	}
	return Kind{}
}

// HasPods reports whether objects of the kind are pods or create pods.
func (k Kind) HasPods() bool { return k.Name == KindPod || k.Workload }

// Dir returns the name of the directory in which podctl stores objects of the kind.
func (k Kind) Dir() string { return k.Words[0] }
