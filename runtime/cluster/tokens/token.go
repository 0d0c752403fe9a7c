package tokens

import (
	"errors"
	"strconv"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/state"
)

// Keys of the Secret with a token, in addition to podspec.TokenKey: when the token expires, in RFC 3339, and its life
// in seconds.
const (
	expiresKey = "expires"
	lifeKey    = "seconds"
)

const (
	// oldest is the age at which a token is renewed, even if it is valid for longer (kubelet: maxTTL).
	oldest = 24 * time.Hour
	// earlier is how much earlier a token is renewed at most, so that not all tokens are at once (kubelet: maxJitter).
	earlier = 10 * time.Second
	// longestLife limits the life of a token, so that times can be computed. API servers issue shorter ones.
	longestLife = 100 * 365 * 24 * time.Hour
	// longestToken limits the bytes of a token.
	longestToken = 64 << 10
)

// errInvalid reports an answer without a usable token. It does not repeat the answer.
var errInvalid = errors.New("the answer has no usable token")

// request returns the request for a token that is bound to a pod.
func request(pod *v1.Pod, s *v1.ServiceAccountTokenProjection) *authenticationv1.TokenRequest {
	r := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: s.ExpirationSeconds,
		BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: podspec.KindPod, Name: pod.Name, UID: pod.UID,
		},
	}}
	if s.Audience != "" {
		r.Spec.Audiences = []string{s.Audience}
	}
	return r
}

// secretOf returns the token of an answer.
func secretOf(key state.ObjectKey, r *authenticationv1.TokenRequest) (*podspec.Object, error) {
	life := ptr.Deref(r.Spec.ExpirationSeconds, 0)
	expires, token := r.Status.ExpirationTimestamp.Time, r.Status.Token
	if token == "" || len(token) > longestToken || !isLife(life) || expires.IsZero() {
		return nil, errInvalid
	}
	return &podspec.Object{Secret: &v1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Data: map[string][]byte{
			podspec.TokenKey: []byte(token),
			expiresKey:       []byte(expires.UTC().Format(time.RFC3339)),
			lifeKey:          []byte(strconv.FormatInt(life, 10)),
		},
	}}, nil
}

// isLife reports whether a number of seconds can be the life of a token.
func isLife(seconds int64) bool { return seconds > 0 && seconds <= int64(longestLife/time.Second) }

// due returns when a token must be renewed. It is the zero time if there is no token, or if its times are unknown.
// random is from 0 to 1 (kubelet: requiresRefresh).
func due(o *podspec.Object, random float64) time.Time {
	if o == nil || o.Secret == nil {
		return time.Time{}
	}
	expires, err := time.Parse(time.RFC3339, string(o.Secret.Data[expiresKey]))
	seconds, lifeErr := strconv.ParseInt(string(o.Secret.Data[lifeKey]), 10, 64)
	if errors.Join(err, lifeErr) != nil || !isLife(seconds) {
		return time.Time{}
	}
	life := time.Duration(seconds) * time.Second
	at := expires.Add(-life + min(oldest, life-life/5))
	return at.Add(-time.Duration(random * float64(earlier)))
}
