package podspec_test

import (
	"encoding/json"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/podspec/podspectest"
	"github.com/podctl/podctl/podspec/spechash"
)

// TestCheck checks that missing fields of a stored pod are reported.
func TestCheck(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "it has no pod",
		`{"pod": {}, "objects": {"configMaps": {"a": null}}}`: `the ConfigMap "a" in it is null`,
		`{"pod": {}, "objects": {"secrets": {"b": null}}}`:    `the Secret "b" in it is null`,
		`{"pod": {}}`: "",
	} {
		var d podspec.Desired
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := d.Check(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestAlsoRunning checks that AlsoRunning changes neither the pod nor its digest.
func TestAlsoRunning(t *testing.T) {
	d := podspectest.Desired(t, podspectest.Minimal)
	before := d.Digest()
	with := d.AlsoRunning([]v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug"}}})
	if len(with.Pod.Spec.EphemeralContainers) != 1 || len(d.Pod.Spec.EphemeralContainers) != 0 {
		t.Errorf("%d and %d ephemeral containers", len(with.Pod.Spec.EphemeralContainers), len(d.Pod.Spec.EphemeralContainers))
	}
	if with.Digest() == before || d.Digest() != before {
		t.Errorf("digests %s and %s, before %s", with.Digest(), d.Digest(), before)
	}
}

// TestSecretsOfADesired checks that values and digests are distinguished, and that pods with either are equal.
func TestSecretsOfADesired(t *testing.T) {
	d := podspectest.Desired(t, podspectest.WithEnv)
	if values := d.Objects.SecretValues(); len(values) != 1 || string(values[0]) != "hunter2" {
		t.Errorf("values %q", values)
	}
	without := d.WithoutSecrets()
	if values := without.Objects.SecretValues(); len(values) > 0 {
		t.Errorf("values of a copy without secrets: %q", values)
	}
	if !digest.IsSecret(string(without.Objects.Secrets["login"].Data["password"])) {
		t.Errorf("no digest replaces the value: %q", without.Objects.Secrets["login"].Data)
	}
	if !d.SameAs(podspectest.Desired(t, podspectest.WithEnv)) ||
		d.SameAs(podspectest.Desired(t, strings.Replace(podspectest.WithEnv, "hunter2", "hunter3", 1))) {
		t.Error("SameAs does not compare the values of Secrets")
	}
	for kind, want := range map[string]bool{
		"secret: {secretName: s}":                     true,
		"projected: {sources: [{secret: {name: s}}]}": true,
		"configMap: {name: s}":                        false,
		"emptyDir: {}":                                false,
	} {
		pod := podspectest.Desired(t, podspectest.Minimal+"  volumes:\n  - name: v\n    "+kind+"\n").Pod
		if got := podspec.UsesSecret(&pod.Spec.Volumes[0]); got != want {
			t.Errorf("%s uses a Secret: %t", kind, got)
		}
	}
}

// TestOwnerIsNotHashed checks that Owner is stored, but changes neither the wanted state nor its digest.
func TestOwnerIsNotHashed(t *testing.T) {
	d, kept := podspectest.Desired(t, podspectest.WithEnv), podspectest.Desired(t, podspectest.WithEnv)
	kept.Owner = "/etc/podctl/pods"
	if !d.SameAs(kept) || !d.SameManifest(kept) || d.Digest() != kept.Digest() {
		t.Error("the owner changes the wanted state or its digest")
	}
	if c := &d.Pod.Spec.Containers[0]; spechash.Container(d, c) != spechash.Container(kept, c) ||
		spechash.Sandbox(d) != spechash.Sandbox(kept) {
		t.Error("the owner changes the hashes of container and sandbox")
	}
	text, err := json.Marshal(kept)
	if err != nil {
		t.Fatal(err)
	}
	var read podspec.Desired
	if err := json.Unmarshal(text, &read); err != nil || read.Owner != kept.Owner {
		t.Errorf("%v: the owner is read as %q", err, read.Owner)
	}
	if text, _ = json.Marshal(d); strings.Contains(string(text), `"owner"`) {
		t.Error("a pod that was applied by hand is written with an owner")
	}
}

// TestFromCluster checks that the owner of a pod survives the checkpoint, and that generation and resourceVersion count
// as no difference between two versions of a pod of the API server.
func TestFromCluster(t *testing.T) {
	of, other := podspectest.FromAPI(t, podspectest.WithEnv), podspectest.Desired(t, podspectest.WithEnv)
	text, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	var stored podspec.Desired
	if err := json.Unmarshal(text, &stored); err != nil || !stored.FromCluster() || stored.Owner != "api" || other.FromCluster() {
		t.Errorf("stored: %+v (%v), another pod: %t", stored.Origin, err, other.FromCluster())
	}
	for _, d := range []*podspec.Desired{of, other} {
		next := *d
		next.Pod = d.Pod.DeepCopy()
		next.Pod.Generation, next.Pod.ResourceVersion = 7, "12"
		again := (&podspec.Desired{Pod: next.Pod, Objects: d.Objects, Origin: d.Origin})
		again.UseKey(podspectest.Key())
		is := d.FromCluster()
		if got := next.SameAs(d); got != is {
			t.Errorf("%s: same %t", d.Owner, got)
		}
		if got := next.SameManifest(d); got != is {
			t.Errorf("%s: same manifest %t", d.Owner, got)
		}
		if got := again.Digest() == d.Digest(); got != is {
			t.Errorf("%s: same digest %t", d.Owner, got)
		}
		if next.Pod.Generation != 7 || next.Pod.ResourceVersion != "12" {
			t.Errorf("%s: not kept", d.Owner)
		}
		next.Pod.Labels = map[string]string{"a": "b"}
		if next.SameManifest(d) {
			t.Errorf("%s: a label is no difference", d.Owner)
		}
	}
}

// TestSharesInCluster checks that a pod of the API server uses no stored objects.
func TestSharesInCluster(t *testing.T) {
	name := podspec.ObjectName{Kind: podspec.KindConfigMap, Name: "settings"}
	for _, d := range []*podspec.Desired{podspectest.FromAPI(t, podspectest.WithEnv), podspectest.Desired(t, podspectest.WithEnv)} {
		d.Objects = podspec.Objects{}
		if d.Shares("default", name) == d.FromCluster() {
			t.Errorf("%q shares", d.Owner)
		}
	}
}

// TestRestartedAtInCluster checks that an annotation requests no restart of a pod of the API server.
func TestRestartedAtInCluster(t *testing.T) {
	for _, d := range []*podspec.Desired{podspectest.FromAPI(t, podspectest.Minimal), podspectest.Desired(t, podspectest.Minimal)} {
		d.Pod.Annotations = map[string]string{podspec.AnnotationRestartedAt: "2026-05-04T11:30:00Z"}
		d.Pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: new(true)}}
		if d.RestartedAt().IsZero() != d.FromCluster() {
			t.Errorf("%q: %s", d.Owner, d.RestartedAt())
		}
	}
}
