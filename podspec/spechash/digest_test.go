package spechash

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/podspec/podspectest"
)

func pinned(t *testing.T, pin string, key *digest.Key) *podspec.Desired {
	t.Helper()
	d := podspectest.Desired(t, strings.Replace(podspectest.Pinned, "271828", pin, 1))
	d.UseKey(key)
	return d
}

// digestsOf returns all digests of a pod as text.
func digestsOf(t *testing.T, d *podspec.Desired) []string {
	t.Helper()
	spec, err := json.Marshal(ContainerProjection(d, &d.Pod.Spec.Containers[0]))
	if err != nil {
		t.Fatal(err)
	}
	without, err := json.Marshal(d.WithoutSecrets())
	if err != nil {
		t.Fatal(err)
	}
	return []string{
		Container(d, &d.Pod.Spec.Containers[0]),
		d.Digest(),
		string(spec),
		string(without),
		d.Seal("sha256:open", []byte("271828")),
	}
}

// TestDigestsDependOnTheKey checks that every digest that depends on a secret value also depends on the key, so that
// values cannot be tried without it.
func TestDigestsDependOnTheKey(t *testing.T) {
	here := digestsOf(t, pinned(t, "271828", podspectest.Key()))
	there := digestsOf(t, pinned(t, "271828", podspectest.OtherKey()))
	other := digestsOf(t, pinned(t, "314159", podspectest.Key()))
	for i := range here {
		if here[i] == there[i] {
			t.Errorf("%s is the same with two keys", here[i])
		}
		if i < 4 && here[i] == other[i] {
			t.Errorf("%s is the same for two values", here[i])
		}
	}
	for i, text := range digestsOf(t, pinned(t, "271828", nil)) {
		if unkeyed := digestsOf(t, pinned(t, "314159", nil))[i]; text != unkeyed {
			t.Errorf("without a key a value is revealed: %s, %s", text, unkeyed)
		}
	}
}

// TestACopyWithoutSecretsHasTheSameDigests checks that a snapshot results in the same plan as on the machine.
func TestACopyWithoutSecretsHasTheSameDigests(t *testing.T) {
	d := pinned(t, "271828", podspectest.Key())
	without := d.WithoutSecrets()
	without.UseKey(podspectest.OtherKey()) // The copy is read on another machine.
	c := &d.Pod.Spec.Containers[0]
	if got, want := Container(without, c), Container(d, c); got != want {
		t.Errorf("spec hash %s, want %s", got, want)
	}
	if got, want := without.Digest(), d.Digest(); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

// TestEqualValuesHaveTheirOwnDigests checks that a user who may add a pod or a Secret cannot compare guesses with other
// digests.
func TestEqualValuesHaveTheirOwnDigests(t *testing.T) {
	seen := map[string]string{}
	for name, edit := range map[string][2]string{
		"itself": {"", ""}, "another pod": {"metadata: {name: web}", "metadata: {name: other}"},
		"another namespace": {"metadata: {name: ", "metadata: {namespace: other, name: "},
		"another Secret":    {"login", "badge"}, "another key": {"pin", "pun"},
	} {
		d := podspectest.Desired(t, strings.ReplaceAll(podspectest.Pinned, edit[0], edit[1]))
		if edit[0] == "" {
			d = podspectest.Desired(t, podspectest.Pinned)
		}
		spec, err := json.Marshal(ContainerProjection(d, &d.Pod.Spec.Containers[0]))
		if err != nil {
			t.Fatal(err)
		}
		_, digest, _ := strings.Cut(string(spec), digest.SecretPrefix)
		digest, _, _ = strings.Cut(digest, `"`)
		if other, twice := seen[digest]; twice {
			t.Errorf("%s and %s have the digest %s", name, other, digest)
		}
		seen[digest] = name
	}
}
