package podspec

import (
	"slices"
	"strings"
)

// Kind is a kind of objects that podctl runs or keeps.
type Kind struct {
	// Name and APIVersion are as manifests have them.
	Name, APIVersion string
	// Words stand for the kind in arguments, as in kubectl. The first is the plural.
	Words []string
	// Workload is set for kinds that stand for pods.
	Workload bool
	// Apart is set for kinds that `all` does not stand for, as in kubectl.
	Apart bool
}

// Kinds are all kinds that podctl runs or keeps, in the order in which kubectl lists them.
func Kinds() []Kind {
	const core, apps, batch = "v1", "apps/v1", "batch/v1"
	return []Kind{
		{Name: KindPod, APIVersion: core, Words: []string{"pods", "pod", "po"}},
		{Name: KindService, APIVersion: core, Words: []string{"services", "service", "svc"}},
		{Name: KindDaemonSet, APIVersion: apps, Workload: true, Words: []string{"daemonsets", "daemonset", "ds"}},
		{Name: KindDeployment, APIVersion: apps, Workload: true, Words: []string{"deployments", "deployment", "deploy"}},
		{Name: KindReplicaSet, APIVersion: apps, Workload: true, Words: []string{
			"replicasets", "replicaset", "rs", "replicationcontrollers", "replicationcontroller", "rc",
		}},
		{Name: KindStatefulSet, APIVersion: apps, Workload: true, Words: []string{"statefulsets", "statefulset", "sts"}},
		{Name: KindCronJob, APIVersion: batch, Workload: true, Words: []string{"cronjobs", "cronjob", "cj"}},
		{Name: KindJob, APIVersion: batch, Workload: true, Words: []string{"jobs", "job"}},
		{Name: KindConfigMap, APIVersion: core, Apart: true, Words: []string{"configmaps", "configmap", "cm"}},
		{Name: KindSecret, APIVersion: core, Apart: true, Words: []string{"secrets", "secret"}},
		{Name: KindClaim, APIVersion: core, Apart: true, Words: []string{"persistentvolumeclaims", "persistentvolumeclaim", "pvc"}},
	}
}

// KindNamed is the kind with a name; the zero value if podctl does not know it.
func KindNamed(name string) Kind {
	return kindWith(func(k Kind) bool { return k.Name == name })
}

// KindOfWord is the kind that a word stands for, which may have its group behind it: deployments.apps. It is the zero value if the
// word stands for none.
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

// HasPods reports whether objects of the kind are pods or stand for pods.
func (k Kind) HasPods() bool { return k.Name == KindPod || k.Workload }

// Dir is the name of the directory in which podctl stores objects of the kind.
func (k Kind) Dir() string { return k.Words[0] }
