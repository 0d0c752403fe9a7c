package podspec

import (
	"encoding/json"
	"strings"
	"testing"
)

// withPIN is a pod with a secret of six digits, as an older podctl hashed it: see oldHash
// and oldSpec, which it wrote.
const withPIN = `apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {pin: "271828"}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: app
    image: i:1
    env: [{name: PIN, valueFrom: {secretKeyRef: {name: login, key: pin}}}]
    volumeMounts: [{name: v, mountPath: /v}]
  volumes: [{name: v, secret: {secretName: login}}]
`

const (
	oldHash   = "v1:3f7d764f59a1f1620d5eccbb7f471232"
	oldSpec   = `{"env":[{"name":"PIN","value":"secret:sha256:ded787fd3ddc"}],"image":"i:1","volumeMounts":[{"mountPath":"/v","name":"v"}],"volumes":{"v":"secret"}}`
	oldDigest = "sha256:1550d36e778cbc4544d3e3817ca6a41e38c24ebdd230ec8c20d66bef77c03e0e"
)

func pinned(t *testing.T, pin string, key *DigestKey) *Desired {
	t.Helper()
	d := desired(t, strings.Replace(withPIN, "271828", pin, 1))
	d.UseKey(key)
	return d
}

// digestsOf are all digests of a pod, in text.
func digestsOf(t *testing.T, d *Desired) []string {
	t.Helper()
	spec, err := json.Marshal(ContainerProjection(d, &d.Pod.Spec.Containers[0]))
	if err != nil {
		t.Fatal(err)
	}
	without, err := json.Marshal(d.WithoutSecrets())
	if err != nil {
		t.Fatal(err)
	}
	return []string{ContainerSpecHash(d, &d.Pod.Spec.Containers[0]), d.Digest(), string(spec), string(without), d.Seal("sha256:open", []byte("271828"))}
}

// TestDigestsTakeTheKey: whoever lacks the key has no digest to try values against. A
// digest that depends on the value depends on the key as well.
func TestDigestsTakeTheKey(t *testing.T) {
	here, there, other := digestsOf(t, pinned(t, "271828", testKey)), digestsOf(t, pinned(t, "271828", otherKey)), digestsOf(t, pinned(t, "314159", testKey))
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
			t.Errorf("without a key a value is told: %s, %s", text, unkeyed)
		}
	}
}

// TestACopyWithoutSecretsHasTheSameDigests: a snapshot's plan is that of the machine.
func TestACopyWithoutSecretsHasTheSameDigests(t *testing.T) {
	d := pinned(t, "271828", testKey)
	without := d.WithoutSecrets()
	without.UseKey(otherKey) // It is read on another machine.
	c := &d.Pod.Spec.Containers[0]
	if got, want := ContainerSpecHash(without, c), ContainerSpecHash(d, c); got != want {
		t.Errorf("spec hash %s, want %s", got, want)
	}
	if got, want := without.Digest(), d.Digest(); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

// TestEqualValuesHaveTheirOwnDigests: who may add a pod or a Secret cannot compare guesses
// with the digests of others.
func TestEqualValuesHaveTheirOwnDigests(t *testing.T) {
	seen := map[string]string{}
	for name, edit := range map[string][2]string{
		"itself": {"", ""}, "another pod": {"metadata: {name: web}", "metadata: {name: other}"},
		"another namespace": {"metadata: {name: ", "metadata: {namespace: other, name: "},
		"another Secret":    {"login", "badge"}, "another key": {"pin", "pun"},
	} {
		d := desired(t, strings.ReplaceAll(withPIN, edit[0], edit[1]))
		if edit[0] == "" {
			d = desired(t, withPIN)
		}
		spec, err := json.Marshal(ContainerProjection(d, &d.Pod.Spec.Containers[0]))
		if err != nil {
			t.Fatal(err)
		}
		_, digest, _ := strings.Cut(string(spec), SecretDigestPrefix)
		digest, _, _ = strings.Cut(digest, `"`)
		if other, twice := seen[digest]; twice {
			t.Errorf("%s and %s have the digest %s", name, other, digest)
		}
		seen[digest] = name
	}
}

// TestOldDigestsAreUpgraded: what an older podctl wrote is recognised by what it was made
// of, and is not told any more.
func TestOldDigestsAreUpgraded(t *testing.T) {
	d := pinned(t, "271828", testKey)
	c := &d.Pod.Spec.Containers[0]
	hash, spec := UpgradeSpec("app", oldHash, oldSpec, nil, d)
	if hash != ContainerSpecHash(d, c) || strings.Contains(spec, "ded787fd3ddc") || !strings.Contains(spec, SecretDigestPrefix) {
		t.Errorf("upgraded to %s %s", hash, spec)
	}
	if got := UpgradeDigest(oldDigest, d); got != d.Digest() {
		t.Errorf("digest upgraded to %s, want %s", got, d.Digest())
	}
	edited := pinned(t, "314159", testKey)
	hash, spec = UpgradeSpec("app", oldHash, oldSpec, edited)
	if Compare(hash, ContainerSpecHash(edited, c)) != Different || strings.Contains(hash+spec, "3f7d764f") || strings.Contains(spec, "ded787fd3ddc") {
		t.Errorf("with another value: %s %s", hash, spec)
	}
	if got := UpgradeDigest(oldDigest, edited); Compare(got, edited.Digest()) != Different || got == oldDigest {
		t.Errorf("a digest of another value is kept: %s", got)
	}
	plain := desired(t, minimal)
	if got := UpgradeDigest(oldDigest, plain); Compare(got, plain.Digest()) != Different || got == oldDigest {
		t.Errorf("a digest of a manifest that had Secrets is kept: %s", got)
	}
	if got := UpgradeDigest(plain.Digest(), plain); got != plain.Digest() {
		t.Errorf("a digest that is right became %s", got)
	}
	for _, c := range []struct {
		container string
		applied   *Desired
		want      Sameness
	}{
		{"app", d, Same}, {"app", edited, Different}, {"app", plain, Different}, {"gone", d, Different},
	} {
		got := UpgradeKey(c.container, oldHash, c.applied)
		if Compare(got, ContainerSpecHash(c.applied, &c.applied.Pod.Spec.Containers[0])) != c.want || got == oldHash {
			t.Errorf("the key of a delay of %s became %s", c.container, got)
		}
	}
	if hash, spec = UpgradeSpec("app", oldHash, oldSpec); Compare(hash, ContainerSpecHash(d, c)) != Different || strings.Contains(spec, "ded787fd3ddc") {
		t.Errorf("of nothing known: %s %s", hash, spec)
	}
	const own = "v1:0123"
	if hash, _ = UpgradeSpec("app", own, "{}", plain); hash != own {
		t.Errorf("the hash of a container without Secrets became %s", hash)
	}
}
