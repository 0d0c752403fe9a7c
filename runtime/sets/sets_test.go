package sets

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/state"
)

func meta(namespace, name, app string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": app}}
}

func ownedBy(kind, name string, m metav1.ObjectMeta) metav1.ObjectMeta {
	m.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, Controller: new(true)}}
	return m
}

func pod(m metav1.ObjectMeta, set, owner string) *podspec.Desired {
	return &podspec.Desired{Pod: &v1.Pod{ObjectMeta: m}, Origin: podspec.Origin{Set: set, Owner: owner}}
}

// stored returns content that can be pruned and content that must not be.
func stored() *Content {
	return &Content{
		Pods: []*podspec.Desired{
			pod(meta("a", "web", "web"), "a/s", ""), pod(meta("a", "kept", "web"), "a/s", ""), pod(meta("b", "web", "web"), "a/s", ""),
			pod(meta("a", "of-source", "web"), "a/s", "files"), pod(ownedBy("Deployment", "stays", meta("a", "owned", "web")), "a/s", ""),
			pod(ownedBy("ReplicaSet", "of-a-cluster", meta("a", "copied", "web")), "a/s", ""), pod(meta("a", "other", "db"), "b/s", ""),
		},
		Workloads: []*podspec.Workload{
			{Deployment: &appsv1.Deployment{ObjectMeta: meta("a", "stays", "web")}, Origin: podspec.Origin{Set: "a/s"}},
			{Deployment: &appsv1.Deployment{ObjectMeta: meta("a", "goes", "web")}, Origin: podspec.Origin{Set: "a/s"}},
			{
				Deployment: &appsv1.Deployment{ObjectMeta: meta("a", "of-source", "web")},
				Origin:     podspec.Origin{Set: "a/s", Owner: "files"},
			},
			{CronJob: &batchv1.CronJob{ObjectMeta: meta("a", "cron", "db")}},
			{Job: &batchv1.Job{ObjectMeta: ownedBy("CronJob", "cron", meta("a", "cron-1", "web"))}, Origin: podspec.Origin{Set: "a/s"}},
		},
		Objects: []*podspec.Object{
			{ConfigMap: &v1.ConfigMap{ObjectMeta: meta("a", "web", "web")}, Origin: podspec.Origin{Set: "a/s"}},
			{Secret: &v1.Secret{ObjectMeta: meta("a", "web", "web")}, Origin: podspec.Origin{Set: "a/s"}},
			{Secret: &v1.Secret{ObjectMeta: meta("a", "of-source", "web")}, Origin: podspec.Origin{Set: "a/s", Owner: "files"}},
			{Claim: &v1.PersistentVolumeClaim{ObjectMeta: meta("a", "web", "web")}, Origin: podspec.Origin{Set: "a/s"}},
		},
	}
}

// TestPrune checks that content of the scope that is not in the manifests is deleted, by kind, namespace and name.
// Content from workloads and sources is not deleted, and claims are only listed.
func TestPrune(t *testing.T) {
	manifests := []state.ObjectKey{
		{Namespace: "a", Kind: KindPod, Name: "kept"},
		{Namespace: "a", Kind: podspec.KindDeployment, Name: "stays"},
		{Namespace: "a", Kind: podspec.KindSecret, Name: "web"},
	}
	byLabel, err := labels.Parse("app=web")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		scope Scope
		want  string
	}{
		"a set": {
			Scope{Set: "a/s"},
			"pod a/web, pod b/web, pod a/copied, deployment a/goes, configmap a/web; persistentvolumeclaim a/web",
		},
		"another": {Scope{Set: "b/s"}, "pod a/other; "},
		"no set":  {Scope{}, "; "},
		"labels": {
			Scope{Labels: byLabel, Namespaces: []string{"a"}},
			"pod a/web, pod a/copied, deployment a/goes, configmap a/web; persistentvolumeclaim a/web",
		},
		"elsewhere": {Scope{Labels: byLabel, Namespaces: []string{"b"}}, "pod b/web; "},
		"no place":  {Scope{Labels: byLabel}, "; "},
		"everything": {Scope{Labels: labels.Everything(), Namespaces: []string{"a"}}, "pod a/web, pod a/copied, " +
			"pod a/other, deployment a/goes, cronjob a/cron, configmap a/web; persistentvolumeclaim a/web"},
	} {
		out := Prune(&c.scope, stored(), manifests)
		claims := Content{Objects: out.Claims}
		if got := words(out.Names()) + "; " + words(claims.Names()); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	all := stored()
	if out := Prune(&Scope{Set: "a/s"}, all, slices.Concat(all.Names(), manifests)); len(out.Names())+len(out.Claims) > 0 {
		t.Errorf("all is in the manifests: %s", words(out.Names()))
	}
}

func words(names []state.ObjectKey) string {
	texts := make([]string, 0, len(names))
	for _, name := range names {
		texts = append(texts, name.String())
	}
	return strings.Join(texts, ", ")
}

// TestPruneRefusesPodsOfTheAPIServer checks that only a pod of the API server without a controller is refused.
func TestPruneRefusesPodsOfTheAPIServer(t *testing.T) {
	pod := func(m metav1.ObjectMeta, owner string) *podspec.Desired {
		return &podspec.Desired{Pod: &v1.Pod{ObjectMeta: m}, Origin: podspec.Origin{Owner: owner}}
	}
	content := &Content{Pods: []*podspec.Desired{
		pod(meta("a", "bare", "web"), podspec.OwnerAPI), pod(meta("b", "elsewhere", "web"), podspec.OwnerAPI),
		pod(ownedBy("ReplicaSet", "r", meta("a", "owned", "web")), podspec.OwnerAPI),
		pod(meta("a", "other", "db"), podspec.OwnerAPI), pod(meta("a", "file", "web"), "files"), pod(meta("a", "hand", "web"), ""),
	}}
	out := Prune(&Scope{Labels: labels.SelectorFromSet(labels.Set{"app": "web"}), Namespaces: []string{"a"}}, content, nil)
	refused := Content{Pods: out.Refused}
	if got := words(out.Names()) + "; " + words(refused.Names()); got != "pod a/hand; pod a/bare" {
		t.Error(got)
	}
}
