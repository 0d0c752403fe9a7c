package podspec_test

import (
	"encoding/json"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

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
