package spechash

import (
	"encoding/json"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/podspec/expand"
)

// legacySpecHash is the spec hash that an older podctl wrote for a container; empty where
// it cannot be computed, or is what it is today.
func legacySpecHash(d *podspec.Desired, c *v1.Container) string {
	if d.Redacted || !hasSecretEnv(d, c) {
		return ""
	}
	return specHashVersion + hashTree(containerProjection(d, c, func(e expand.Variable) string { return digest.UnkeyedSecret([]byte(e.Value)) }))
}

// hasSecretEnv reports whether a value of a Secret is in the container's environment.
func hasSecretEnv(d *podspec.Desired, c *v1.Container) bool {
	env, _ := expand.Resolve(d, c)
	for i := range env {
		if env[i].Sensitive {
			return true
		}
	}
	return false
}

// Upgrade turns the spec hash and the projection of a container into what podctl would write
// today, if an older one wrote them and they hold digests without a key. Known are the
// manifests that the container may have been made of. A hash that belongs to none of them
// becomes one that matches nothing.
func Upgrade(container, hash, spec string, known ...*podspec.Desired) (newHash, newSpec string) {
	if !strings.HasPrefix(hash, specHashVersion) {
		return hash, spec
	}
	unkeyed := digest.HasUnkeyed(spec)
	for _, d := range known {
		if d == nil || d.Pod == nil {
			continue
		}
		ref, ok := podspec.FindContainer(d.Pod, container)
		if !ok || !hasSecretEnv(d, ref.Container) {
			continue
		}
		unkeyed = true
		if legacySpecHash(d, ref.Container) == hash {
			return Container(d, ref.Container), upgradedSpec(d, ref.Container, spec)
		}
	}
	if !unkeyed {
		return hash, spec
	}
	return specHashVersion, digest.HideUnkeyed(spec)
}

// upgradedSpec is the projection as it is written today, if there was one.
func upgradedSpec(d *podspec.Desired, c *v1.Container, spec string) string {
	if spec == "" {
		return ""
	}
	text, err := json.Marshal(ContainerProjection(d, c))
	if err != nil {
		return ""
	}
	return string(text)
}

// UpgradeKey turns a spec hash that stands alone, such as that of a restart delay, into what
// podctl would write today for a container of the manifest. A hash that belongs to no container
// of it may have been made of secret values without a key, and becomes one that matches nothing.
func UpgradeKey(container, hash string, applied *podspec.Desired) string {
	if !strings.HasPrefix(hash, specHashVersion) || applied == nil || applied.Pod == nil {
		return hash
	}
	ref, ok := podspec.FindContainer(applied.Pod, container)
	if !ok {
		return specHashVersion
	}
	now := Container(applied, ref.Container)
	if hash == now || legacySpecHash(applied, ref.Container) == hash {
		return now
	}
	return specHashVersion
}
