package podspec

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/securitycontext"
	"k8s.io/utils/ptr"
)

// Prefixes of the names of objects that podctl makes for one pod: a token is a Secret, and a bundle of trust anchors is
// a ConfigMap. A claim is bound for one pod. No object of an API server can have a colon in its name.
const (
	tokenPrefix  = "token:"
	bundlePrefix = "bundle:"
	claimPrefix  = "claim:"
)

// ownName returns a name for what a pod asks for. Two pods have the same name for the same.
func ownName(prefix, wanted string) string {
	return fmt.Sprintf("%s%x", prefix, sha256.Sum256([]byte(wanted)))[:len(prefix)+32]
}

// ClaimKey returns the name under which the bound claim of a pod is stored, for BindName. A pod may name a claim by any
// text.
func ClaimKey(claim string) string { return ownName(claimPrefix, claim) }

// IsOfPod reports whether an object belongs to one pod, and not to the API server. Its name is one for BindName.
func IsOfPod(kind, name string) bool {
	prefix := map[string]string{KindSecret: tokenPrefix, KindConfigMap: bundlePrefix, KindClaim: claimPrefix}[kind]
	return prefix != "" && strings.HasPrefix(name, prefix)
}

// BindName adds the uid of its pod to the name of an object of one pod. The result is unique in the cluster.
func BindName(uid types.UID, name string) string {
	prefix, rest, _ := strings.Cut(name, ":")
	return prefix + ":" + string(uid) + ":" + rest
}

// UnbindName returns the arguments of BindName. No uid of an API server has a colon.
func UnbindName(bound string) (uid types.UID, name string) {
	prefix, rest, _ := strings.Cut(bound, ":")
	first, rest, _ := strings.Cut(rest, ":")
	return types.UID(first), prefix + ":" + rest
}

const (
	// TokenKey is the key of a token in its Secret.
	TokenKey = "token"
	// tokenExpiration is the life of a token if its source sets none, in seconds.
	tokenExpiration = 3600
)

// TokenName returns the name of the Secret that has the token of a volume's source. The name is unique in a pod: all
// tokens of a pod are from one service account.
func TokenName(s *v1.ServiceAccountTokenProjection) string {
	return ownName(tokenPrefix, fmt.Sprintf("%d %s", ptr.Deref(s.ExpirationSeconds, tokenExpiration), s.Audience))
}

// IsToken reports whether an object is a token of a service account, and not a Secret of the API server.
func IsToken(kind, name string) bool {
	return kind == KindSecret && strings.HasPrefix(name, tokenPrefix)
}

// FindToken returns the source of a pod's volume for the token with a name, or nil if the pod has none.
func FindToken(pod *v1.Pod, name string) *v1.ServiceAccountTokenProjection {
	return findSource(pod, func(source *v1.VolumeProjection) (*v1.ServiceAccountTokenProjection, bool) {
		s := source.ServiceAccountToken
		return s, s != nil && TokenName(s) == name
	})
}

func tokenReference(s *v1.ServiceAccountTokenProjection, path string) Reference {
	return Reference{Kind: KindSecret, Name: TokenName(s), Keys: []string{TokenKey}, Path: path + ".path"}
}

// FSUser returns the user of all containers of a pod, or nil if they differ or one sets none (kubelet: FsUserFrom).
func FSUser(pod *v1.Pod) *int64 {
	var user *int64
	for _, ref := range Containers(pod) {
		own, isSet := securitycontext.DetermineEffectiveRunAsUser(pod, ref.Container)
		if !isSet || user != nil && *user != *own {
			return nil
		}
		user = own
	}
	return user
}

// BundleKey is the key of the trust anchors in their ConfigMap.
const BundleKey = "bundle"

// BundleName returns the name of the ConfigMap that has the trust anchors of a volume's source, as PEM. Sources that
// differ only in their path or in optional have the same name.
func BundleName(s *v1.ClusterTrustBundleProjection) string {
	wanted := v1.ClusterTrustBundleProjection{Name: s.Name}
	if s.Name == nil {
		wanted = v1.ClusterTrustBundleProjection{SignerName: s.SignerName, LabelSelector: s.LabelSelector}
	}
	text, err := json.Marshal(wanted)
	if err != nil {
		text = nil // The type has no values that JSON lacks.
	}
	return ownName(bundlePrefix, string(text))
}

// IsBundle reports whether an object has trust anchors for one pod, and is not a ConfigMap of the API server.
func IsBundle(kind, name string) bool {
	return kind == KindConfigMap && strings.HasPrefix(name, bundlePrefix)
}

// FindBundle returns the source of a pod's volume for the trust anchors with a name, or nil if the pod has none.
func FindBundle(pod *v1.Pod, name string) *v1.ClusterTrustBundleProjection {
	return findSource(pod, func(source *v1.VolumeProjection) (*v1.ClusterTrustBundleProjection, bool) {
		s := source.ClusterTrustBundle
		return s, s != nil && BundleName(s) == name
	})
}

// findSource returns the first match among the sources of a pod's projected volumes, or nil.
func findSource[T any](pod *v1.Pod, match func(*v1.VolumeProjection) (*T, bool)) *T {
	for i := range pod.Spec.Volumes {
		projected := pod.Spec.Volumes[i].Projected
		for j := 0; projected != nil && j < len(projected.Sources); j++ {
			if found, matches := match(&projected.Sources[j]); matches {
				return found
			}
		}
	}
	return nil
}

func bundleReference(s *v1.ClusterTrustBundleProjection, path string) Reference {
	r := reference(KindConfigMap, BundleName(s), nil, s.Optional, path)
	r.bundle = s
	return r
}
