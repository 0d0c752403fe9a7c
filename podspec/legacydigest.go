package podspec

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
)

// An older podctl wrote digests of secret values without a key: on containers, in
// journals, snapshots and saved plans. They can be guessed. What runs with them goes on
// running: they are compared with what they were made of where that is known, and what
// podctl writes from now on holds none of them.

// legacySecretPrefix began what stood for a secret value.
const legacySecretPrefix = "secret:sha256:"

// legacyDigestBytes is how much of a value's SHA-256 followed.
const legacyDigestBytes = 6

// otherSecret stands for a secret value that was digested without a key, and of which
// no more is known than that it is not one of those that are.
const otherSecret = legacySecretPrefix + "other"

// legacyDigests finds digests without a key in a projection.
var legacyDigests = sync.OnceValue(func() *regexp.Regexp { //nolint:gochecknoglobals // compiled once, when it is needed
	return regexp.MustCompile(legacySecretPrefix + `[0-9a-f]{12}`)
})

func legacySecretDigest(_ secretRef, value []byte) string {
	sum := sha256.Sum256(value)
	return legacySecretPrefix + hex.EncodeToString(sum[:legacyDigestBytes])
}

// legacySpecHash is the spec hash that an older podctl wrote for a container; empty where
// it cannot be computed, or is what it is today.
func legacySpecHash(d *Desired, c *v1.Container) string {
	if d.Redacted || !hasSecretEnv(d, c) {
		return ""
	}
	return specHashVersion + hashTree(containerProjection(d, c, func(e EnvVar) string { return legacySecretDigest(e.secret, []byte(e.Value)) }))
}

// hasSecretEnv reports whether a value of a Secret is in the container's environment.
func hasSecretEnv(d *Desired, c *v1.Container) bool {
	env, _ := ResolveEnv(d, c)
	for i := range env {
		if env[i].Sensitive {
			return true
		}
	}
	return false
}

// UpgradeSpec turns the spec hash and the projection of a container into what podctl
// would write today, if an older one wrote them and they tell of secret values. Known are
// the manifests that the container may have been made of. A hash that belongs to none of
// them becomes one that matches nothing.
func UpgradeSpec(container, hash, spec string, known ...*Desired) (newHash, newSpec string) {
	if !strings.HasPrefix(hash, specHashVersion) {
		return hash, spec
	}
	tells := strings.Contains(spec, legacySecretPrefix)
	for _, d := range known {
		if d == nil || d.Pod == nil {
			continue
		}
		ref, ok := FindContainer(d.Pod, container)
		if !ok || !hasSecretEnv(d, ref.Container) {
			continue
		}
		tells = true
		if legacySpecHash(d, ref.Container) == hash {
			return ContainerSpecHash(d, ref.Container), upgradedSpec(d, ref.Container, spec)
		}
	}
	if !tells {
		return hash, spec
	}
	return specHashVersion, legacyDigests().ReplaceAllString(spec, otherSecret)
}

// upgradedSpec is the projection as it is written today, if there was one.
func upgradedSpec(d *Desired, c *v1.Container, spec string) string {
	if spec == "" {
		return ""
	}
	text, err := json.Marshal(ContainerProjection(d, c))
	if err != nil {
		return ""
	}
	return string(text)
}

// UpgradeKey turns a spec hash that stands alone, such as that of a restart delay, into
// what podctl would write today for a container of the manifest. One that belongs to no
// container of it may tell of secret values, whatever it was made of, and becomes one that
// matches nothing.
func UpgradeKey(container, hash string, applied *Desired) string {
	if !strings.HasPrefix(hash, specHashVersion) || applied == nil || applied.Pod == nil {
		return hash
	}
	ref, ok := FindContainer(applied.Pod, container)
	if !ok {
		return specHashVersion
	}
	now := ContainerSpecHash(applied, ref.Container)
	if hash == now || legacySpecHash(applied, ref.Container) == hash {
		return now
	}
	return specHashVersion
}

// otherDigest is that of a manifest of which no more is known than that it is another one.
const otherDigest = "sha256:other"

// UpgradeDigest does the same for the digest of a manifest.
func UpgradeDigest(digest string, applied *Desired) string {
	switch {
	case digest == "" || parseSealed(digest).key != "" || applied == nil || applied.Redacted || digest == applied.Digest():
		return digest
	case applied.legacyDigest() == digest:
		return applied.Digest()
	}
	return otherDigest
}

// legacyDigest is the digest that an older podctl made of what was desired.
func (d *Desired) legacyDigest() string {
	sum := sha256.Sum256([]byte(d.text(legacySecretDigest)))
	return "sha256:" + hex.EncodeToString(sum[:])
}
