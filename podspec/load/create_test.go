package load

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
)

// TestStoredAsByTheAPIServersScheme compares Stored with a pod that was defaulted and converted by the API server's
// scheme.
func TestStoredAsByTheAPIServersScheme(t *testing.T) {
	for name, text := range map[string]string{
		"as it is":             minimal,
		"an account":           minimal + "  serviceAccountName: a\n",
		"an account as of old": minimal + "  serviceAccount: a\n",
		"two accounts":         minimal + "  serviceAccount: a\n  serviceAccountName: b\n",
		"a negative period":    minimal + "  terminationGracePeriodSeconds: -5\n",
		"no period":            minimal + "  terminationGracePeriodSeconds: 0\n",
		"of the host": minimal +
			"    ports: [{containerPort: 80}]\n  hostNetwork: true\n  hostPID: true\n  shareProcessNamespace: false\n",
		"a uid, a namespace": strings.Replace(minimal, "  name: web\n",
			"  name: web\n  namespace: ns\n  uid: u\n  annotations: {a: b}\n", 1),
		"resources": minimal +
			"    resources: {limits: {cpu: 100m, memory: 1Gi}}\n  overhead: {cpu: 1m}\n  runtimeClassName: r\n",
	} {
		t.Run(name, func(t *testing.T) {
			want := schemesPod(t, text)
			got, err := Stored(parsed(t, text).Pods[0])
			if err != nil {
				t.Fatal(err)
			}
			if !equality.Semantic.DeepEqual(got, want) {
				t.Errorf("-API server +podctl\n%s", cmp.Diff(want, got))
			}
		})
	}
}

func schemesPod(t *testing.T, text string) *v1.Pod {
	t.Helper()
	object, _, err := legacyscheme.Codecs.UniversalDeserializer().Decode([]byte(text), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	legacyscheme.Scheme.Default(object)
	if object, err = legacyscheme.Scheme.ConvertToVersion(object, core.SchemeGroupVersion); err != nil {
		t.Fatal(err)
	}
	if object, err = legacyscheme.Scheme.ConvertToVersion(object, v1.SchemeGroupVersion); err != nil {
		t.Fatal(err)
	}
	pod := object.(*v1.Pod)
	pod.Namespace = namespaceOr(pod.Namespace)
	return pod
}

// TestStoredAfterPreparation checks the API server's changes besides defaults: AppArmor annotations become fields, and
// labels that selectors name are added to them.
func TestStoredAfterPreparation(t *testing.T) {
	const prefix = "container.apparmor.security.beta.kubernetes.io/"
	text := strings.Replace(minimal, "  name: web\n", "  name: web\n  labels: {app: w}\n  annotations: {"+
		prefix+"app: localhost/p, "+prefix+"own: unconfined, "+prefix+"same: runtime/default, "+prefix+"debug: runtime/default}\n", 1) + `
  - {name: own, image: i, securityContext: {appArmorProfile: {type: Unconfined}}}
  - {name: same, image: i}
  ephemeralContainers: [{name: debug, image: i}]
  securityContext: {appArmorProfile: {type: RuntimeDefault}}
  affinity:
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: k, labelSelector: {matchLabels: {a: b}}, matchLabelKeys: [app, none]}
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 1, podAffinityTerm: {topologyKey: k, labelSelector: {}, mismatchLabelKeys: [app]}}
  topologySpreadConstraints:
  - {maxSkew: 1, topologyKey: k, whenUnsatisfiable: DoNotSchedule, labelSelector: {}, matchLabelKeys: [app]}
  - {maxSkew: 1, topologyKey: l, whenUnsatisfiable: DoNotSchedule}
`
	m := accepted(t, text)
	pod, err := Stored(m.Pods[0])
	if err != nil {
		t.Fatal(err)
	}
	profiles := map[string]*v1.AppArmorProfile{}
	for _, c := range pod.Spec.Containers {
		if c.SecurityContext != nil {
			profiles[c.Name] = c.SecurityContext.AppArmorProfile
		}
	}
	local := "p"
	want := map[string]*v1.AppArmorProfile{
		"app": {Type: v1.AppArmorProfileTypeLocalhost, LocalhostProfile: &local},
		"own": {Type: v1.AppArmorProfileTypeUnconfined},
	}
	if diff := cmp.Diff(want, profiles); diff != "" {
		t.Error(diff)
	}
	anti := pod.Spec.Affinity.PodAntiAffinity
	for at, selector := range map[string]string{
		"a=b,app in (w)": metav1.FormatLabelSelector(anti.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector),
		"app notin (w)":  metav1.FormatLabelSelector(anti.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm.LabelSelector),
		"app in (w)":     metav1.FormatLabelSelector(pod.Spec.TopologySpreadConstraints[0].LabelSelector),
	} {
		if selector != at {
			t.Errorf("selector %q, want %q", selector, at)
		}
	}
	if m.Pods[0].Pod.Spec.Containers[0].SecurityContext != nil {
		t.Error("the applied pod has the converted field, so its hash has changed")
	}
}

// TestValidatedAsAPod checks rules for pods that do not apply to their templates.
func TestValidatedAsAPod(t *testing.T) {
	const debug = minimal + "  ephemeralContainers: [{name: "
	for _, c := range []struct{ text, want string }{
		{
			minimal + "  volumes: [{name: v, image: {}}]\n",
			"-:9:23: spec.volumes[0].image.reference: is required",
		},
		{
			minimal + "  volumes: [{name: v, image: {reference: \"\"}}]\n",
			"spec.volumes[0].image.reference: is required",
		},
		{debug + "app, image: i}]\n", "spec.ephemeralContainers[0].name: \"app\" is given twice"},
		{
			debug + "d, image: i, targetContainerName: x}]\n",
			"spec.ephemeralContainers[0].targetContainerName: \"x\" does not exist",
		},
		{
			debug + "d, image: i, ports: [{containerPort: 1}]}]\n",
			"spec.ephemeralContainers[0].ports: is not allowed here",
		},
		{
			strings.Replace(minimal, "  name: web\n", "  name: web\n"+
				"  annotations: {container.apparmor.security.beta.kubernetes.io/none: unconfined}\n", 1),
			"container not found",
		},
	} {
		if m := parsed(t, c.text); len(m.Problems) != 1 || !strings.Contains(problemsOf(m), c.want) {
			t.Errorf("want %q:\n%s", c.want, problemsOf(m))
		}
	}
	annotated := strings.Replace(minimal, "  name: web\n",
		"  name: web\n  annotations: {container.apparmor.security.beta.kubernetes.io/debug: unconfined}\n", 1)
	accepted(t, annotated+"  ephemeralContainers: [{name: debug, image: i}]\n")
}

// TestFromAPI checks that a pod of the API server keeps everything but its status and managedFields, that it is not
// changed itself, and that apiVersion and kind are the same after a list and a watch.
func TestFromAPI(t *testing.T) {
	sent := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "web", UID: "0f3ce44e-5d2c-5ea7-8f43-6a2ba6fc8ba1", Generation: 3, ResourceVersion: "9",
			Labels: map[string]string{"a": "b"}, DeletionTimestamp: &metav1.Time{}, DeletionGracePeriodSeconds: new(int64(4)),
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web"}}, Finalizers: []string{"f"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		},
		Spec:   v1.PodSpec{NodeName: "here", Containers: []v1.Container{{Name: "app", Image: "i:1"}}},
		Status: v1.PodStatus{Phase: v1.PodRunning},
	}
	before := sent.DeepCopy()
	d, err := FromAPI(sent)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, sent); diff != "" {
		t.Error("the pod was changed:", diff)
	}
	want := before.DeepCopy()
	want.APIVersion, want.Kind, want.ManagedFields, want.Status = "v1", "Pod", nil, v1.PodStatus{}
	if diff := cmp.Diff(want, d.Pod); diff != "" {
		t.Error(diff)
	}
	if !d.FromCluster() || d.Source != "api" || d.WrittenUID != sent.UID {
		t.Errorf("%+v, uid %s", d.Origin, d.WrittenUID)
	}
}

// TestFromAPIRefuses checks the limits of a pod of the API server.
func TestFromAPIRefuses(t *testing.T) {
	for want, change := range map[string]func(*v1.Pod){
		"metadata.uid is missing":         func(p *v1.Pod) { p.UID = "" },
		"spec.containers: it has no cont": func(p *v1.Pod) { p.Spec.Containers = nil },
		`metadata.uid: "../x": a uid has`: func(p *v1.Pod) { p.UID = "../x" },
		`metadata.name: ".."`:             func(p *v1.Pod) { p.Name = ".." },
		`metadata.namespace: ""`:          func(p *v1.Pod) { p.Namespace = "" },
		`spec.containers[0].name: "a/b"`:  func(p *v1.Pod) { p.Spec.Containers[0].Name = "a/b" },
		`spec.volumes[0].name: "../etc"`:  func(p *v1.Pod) { p.Spec.Volumes = []v1.Volume{{Name: "../etc"}} },
		`spec.containers[1].name: "app" is also the name of spec.containers[0]`: func(p *v1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, p.Spec.Containers[0])
		},
		`spec.ephemeralContainers[0].name: "app" is also`: func(p *v1.Pod) {
			p.Spec.EphemeralContainers = make([]v1.EphemeralContainer, 1)
			p.Spec.EphemeralContainers[0].Name = "app"
		},
		`spec.volumes[1].name: "v" is also the name of spec.volumes[0]`: func(p *v1.Pod) {
			p.Spec.Volumes = []v1.Volume{{Name: "v"}, {Name: "v"}}
		},
		"it is larger than 10485760 bytes":             func(p *v1.Pod) { p.Annotations = map[string]string{"a": strings.Repeat("x", 10<<20)} },
		"it has more than 100000 entries in lists and": func(p *v1.Pod) { p.Spec.Containers[0].Env = make([]v1.EnvVar, 100_000) },
		"it has more than 100000 entries in lists":     func(p *v1.Pod) { p.Finalizers = make([]string, 100_001) },
		"it has more than 100000 entries":              func(p *v1.Pod) { p.Spec.NodeSelector = manyLabels() },
		"":                                             func(*v1.Pod) {},
	} {
		pod := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u"},
			Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "app", Image: "i:1"}}},
		}
		change(pod)
		switch d, err := FromAPI(pod); {
		case want == "" && (err != nil || d == nil):
			t.Error(err)
		case want != "" && (d != nil || err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 1000):
			t.Errorf("%s: %v", want, err)
		}
	}
}

func manyLabels() map[string]string {
	labels := map[string]string{}
	for i := range 100_001 {
		labels[strconv.Itoa(i)] = ""
	}
	return labels
}
