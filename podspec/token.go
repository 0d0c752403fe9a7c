package podspec

import (
	"crypto/sha256"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/securitycontext"
	"k8s.io/utils/ptr"
)

const (
	// tokenPrefix is the prefix of the names of tokens. No Secret of an API server can have a colon in its name.
	tokenPrefix = "token:"
	// TokenKey is the key of a token in its Secret.
	TokenKey = "token"
	// tokenExpiration is the life of a token if its source sets none, in seconds.
	tokenExpiration = 3600
)

// TokenName returns the name of the Secret that has the token of a volume's source. The name is unique in a pod: all
// tokens of a pod are from one service account.
func TokenName(s *v1.ServiceAccountTokenProjection) string {
	wanted := fmt.Sprintf("%d %s", ptr.Deref(s.ExpirationSeconds, tokenExpiration), s.Audience)
	return fmt.Sprintf("%s%x", tokenPrefix, sha256.Sum256([]byte(wanted)))[:len(tokenPrefix)+32]
}

// IsToken reports whether an object is a token of a service account, and not a Secret of the API server.
func IsToken(kind, name string) bool {
	return kind == KindSecret && strings.HasPrefix(name, tokenPrefix)
}

// BindToken adds the uid of its pod to the name of a token. The result is unique in the cluster.
func BindToken(uid types.UID, name string) string {
	return tokenPrefix + string(uid) + ":" + strings.TrimPrefix(name, tokenPrefix)
}

// UnbindToken returns the arguments of BindToken. No uid of an API server has a colon.
func UnbindToken(bound string) (uid types.UID, name string) {
	first, rest, _ := strings.Cut(strings.TrimPrefix(bound, tokenPrefix), ":")
	return types.UID(first), tokenPrefix + rest
}

// FindToken returns the source of a pod's volume for the token with a name, or nil if the pod has none.
func FindToken(pod *v1.Pod, name string) *v1.ServiceAccountTokenProjection {
	for i := range pod.Spec.Volumes {
		projected := pod.Spec.Volumes[i].Projected
		if projected == nil {
			continue
		}
		for _, source := range projected.Sources {
			if s := source.ServiceAccountToken; s != nil && TokenName(s) == name {
				return s
			}
		}
	}
	return nil
}

func tokenReference(s *v1.ServiceAccountTokenProjection, path string) Reference {
	return Reference{Kind: KindSecret, Name: TokenName(s), Keys: []string{TokenKey}, Path: path + ".path"}
}

// unreadToken completes a reference to a token that the API server has not issued (kubelet: GetServiceAccountToken).
func (r MissingReference) unreadToken(pod *v1.Pod, why UnreadError) MissingReference {
	r.Detail = fmt.Sprintf("the API server has not issued the token of service account %s/%s%s",
		pod.Namespace, pod.Spec.ServiceAccountName, strings.TrimSuffix(r.of(), ","))
	r.Status = why.Status
	if r.Status == "" {
		r.Status = r.inVolume("failed to fetch token: timed out waiting for the condition")
	}
	if why.Reason != "" {
		r.Detail += ": " + why.Reason
		if why.Status == "" {
			r.Status = r.inVolume("failed to fetch token: " + why.Reason)
		}
	}
	return r
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
