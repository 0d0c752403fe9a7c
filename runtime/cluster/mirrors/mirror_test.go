package mirrors

import (
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	podapi "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"

	"github.com/podctl/podctl/podspec/podspectest"
)

// full is a pod with a reference in each place.
const full = `
apiVersion: v1
kind: Pod
metadata:
  namespace: a
  name: web
  labels: {app: web}
  annotations: {note: own, kubernetes.io/config.hash: old, podctl.io/omitted: old}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: r1, controller: true}]
spec:
  serviceAccountName: robot
  runtimeClassName: runc
  imagePullSecrets: [{name: pull}]
  initContainers:
  - {name: i, image: i, envFrom: [{secretRef: {name: s}}]}
  containers:
  - name: c
    image: c
    envFrom: [{configMapRef: {name: m}}]
    env:
    - {name: A, value: a}
    - {name: B, valueFrom: {configMapKeyRef: {name: m, key: k}}}
    - {name: C, valueFrom: {secretKeyRef: {name: s, key: k}}}
    - {name: D, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    volumeMounts:
    - {name: dir, mountPath: /dir}
    - {name: maps, mountPath: /maps}
    - {name: secrets, mountPath: /secrets}
    - {name: mixed, mountPath: /mixed}
    - {name: token, mountPath: /token}
    - {name: claim, mountPath: /claim}
  volumes:
  - {name: dir, emptyDir: {}}
  - {name: maps, configMap: {name: m}}
  - {name: secrets, secret: {secretName: s}}
  - name: mixed
    projected: {sources: [{secret: {name: s}}, {downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}]}
  - {name: token, projected: {sources: [{configMap: {name: m}}]}}
  - {name: claim, persistentVolumeClaim: {claimName: p}}
`

// TestReferences checks that the API server accepts the mirror pod of a pod with references, and which parts it lacks.
func TestReferences(t *testing.T) {
	d := podspectest.Desired(t, full)
	before := d.Pod.DeepCopy()
	p := Pod{Desired: d, Hash: Hash(d.Pod, "n1")}
	m := newMirror(&p, node, time.Unix(1e9, 5e8).UTC())
	want := strings.Join([]string{
		"spec.serviceAccountName", "spec.imagePullSecrets", "spec.runtimeClassName", "spec.volumes[1]", "spec.volumes[2]",
		"spec.volumes[3].projected.sources[0]", "spec.volumes[4].projected.sources[0]", "spec.volumes[5]",
		"spec.initContainers[0].envFrom[0]", "spec.containers[0].envFrom[0]", "spec.containers[0].env[1]",
		"spec.containers[0].env[2]", "spec.containers[0].volumeMounts[1]", "spec.containers[0].volumeMounts[2]",
		"spec.containers[0].volumeMounts[4]", "spec.containers[0].volumeMounts[5]",
	}, ",")
	if got := m.Annotations[annotationOmitted]; got != want {
		t.Errorf("omitted: %s\nwant: %s", got, want)
	}
	internal := &core.Pod{}
	if err := corev1.Convert_v1_Pod_To_core_Pod(m.DeepCopy(), internal, nil); err != nil {
		t.Fatal(err)
	}
	if refers, resource, err := podapi.HasAPIObjectReference(internal); refers || err != nil {
		t.Errorf("the mirror pod refers to %s (%v)", resource, err)
	}
	options := podapi.GetValidationOptionsFromPodSpecAndMeta(&internal.Spec, nil, &internal.ObjectMeta, nil)
	if problems := validation.ValidatePodCreate(internal, options); len(problems) > 0 {
		t.Error(problems.ToAggregate())
	}
	if !slices.Equal(names(m.Spec.Volumes), []string{"dir", "mixed"}) || len(m.Spec.Containers[0].VolumeMounts) != 2 {
		t.Errorf("volumes %v, mounts %v", names(m.Spec.Volumes), m.Spec.Containers[0].VolumeMounts)
	}
	if !equal(before, d.Pod) {
		t.Error("the pod itself has changed")
	}
}

func names(volumes []v1.Volume) (all []string) {
	for i := range volumes {
		all = append(all, volumes[i].Name)
	}
	return all
}

func equal(a, b *v1.Pod) bool {
	return Hash(a, "") == Hash(b, "") && len(a.OwnerReferences) == len(b.OwnerReferences)
}

// TestMetadata checks the name, the annotations and the owner of a mirror pod (kubelet: applyDefaults, CreateMirrorPod).
func TestMetadata(t *testing.T) {
	d := podspectest.Desired(t, full)
	p := Pod{Desired: d, Hash: Hash(d.Pod, "n1")}
	m := newMirror(&p, node, time.Unix(1e9, 5e8).UTC())
	if m.Name != "web-n1" || m.Namespace != "a" || m.UID != "" || m.Spec.NodeName != "n1" || m.Labels["app"] != "web" {
		t.Errorf("%+v", m.ObjectMeta)
	}
	written := *d.Pod
	written.UID = "written"
	known := Pod{Desired: d.WithPod(&written), Hash: p.Hash}
	if notes := newMirror(&known, node, time.Time{}).Annotations; notes[v1.MirrorPodAnnotationKey] != "written" ||
		notes[annotationHash] != "written" || notes[annotationVersion] != p.Hash {
		t.Errorf("with a uid in the manifest: %v", notes)
	}
	for key, want := range map[string]string{
		"kubernetes.io/config.hash": p.Hash, "kubernetes.io/config.mirror": p.Hash, "kubernetes.io/config.source": "file",
		"kubernetes.io/config.seen": "2001-09-09T01:46:40.5Z", "note": "own",
	} {
		if got := m.Annotations[key]; got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	if len(m.OwnerReferences) != 1 {
		t.Fatal(m.OwnerReferences)
	}
	owner := m.OwnerReferences[0]
	if owner.APIVersion != "v1" || owner.Kind != "Node" || owner.Name != "n1" || owner.UID != "node-uid" ||
		owner.Controller == nil || !*owner.Controller || owner.BlockOwnerDeletion != nil {
		t.Errorf("%+v", owner)
	}
	last := m.Spec.Tolerations[len(m.Spec.Tolerations)-1]
	if last != (v1.Toleration{Operator: "Exists", Effect: "NoExecute"}) {
		t.Errorf("%+v", last)
	}
	d.Source = "https://example.com/pods.yaml"
	if m = newMirror(&p, node, time.Now()); m.Annotations["kubernetes.io/config.source"] != "http" {
		t.Error(m.Annotations)
	}
}

// TestListed checks that the list of omitted fields has a limit.
func TestListed(t *testing.T) {
	text := listed(slices.Repeat([]string{strings.Repeat("p", 100)}, 1000))
	if len(text) > omittedMax+200 || !strings.HasSuffix(text, ",…") {
		t.Error(len(text), text[len(text)-20:])
	}
}
