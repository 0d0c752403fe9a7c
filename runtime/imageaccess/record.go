package imageaccess

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kinds and the version of the kubelet's files.
const (
	pulledKind = "ImagePulledRecord"
	intentKind = "ImagePullIntent"
	group      = "kubelet.config.k8s.io/"
	version    = group + "v1beta1"
)

// Record has the credentials with which an image was pulled, in the format of a kubelet. It holds no credentials, but
// hashes of them.
type Record struct {
	metav1.TypeMeta `json:",inline"`

	LastUpdatedTime metav1.Time `json:"lastUpdatedTime"`
	// ImageRef is the runtime's ID of the image.
	ImageRef string `json:"imageRef"`
	// CredentialMapping has the credentials by the name of the image in manifests, without tag and digest.
	CredentialMapping map[string]Credentials `json:"credentialMapping,omitempty"`
}

// Credentials are the pods that have pulled an image.
type Credentials struct {
	KubernetesSecrets []Secret `json:"kubernetesSecrets,omitempty"`
	// KubernetesServiceAccounts come from a kubelet with credential providers. podctl only keeps them.
	KubernetesServiceAccounts []json.RawMessage `json:"kubernetesServiceAccounts,omitempty"`
	// NodePodsAccessible is set if the image was pulled anonymously, or with credentials of the machine.
	NodePodsAccessible bool `json:"nodePodsAccessible,omitempty"`
}

// Secret identifies a pull secret and its credentials for an image.
type Secret struct {
	UID       string `json:"uid"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// CredentialHash is a hash of the credentials. It is empty if they could not be hashed.
	CredentialHash string `json:"credentialHash"`
}

// Image is an image of the machine as a pod names it.
type Image struct {
	Name string
	// Pulled is set if podctl, or a kubelet before it, pulled the image or was about to.
	Pulled bool
	// Record is nil if there is none, or if it cannot be read.
	Record *Record
}

// Unverified reports whether a pod with these pull secrets must pull an image although it is on the machine (kubelet:
// MustAttemptImagePull).
func (p Policy) Unverified(image Image, own []Secret) bool {
	return p.Verifies(image.Name, image.Pulled) && !image.Record.allows(image.Name, own)
}

func (r *Record) allows(image string, own []Secret) bool {
	name, err := Repository(image)
	if r == nil || err != nil {
		return false
	}
	known := r.CredentialMapping[name]
	return known.NodePodsAccessible || slices.ContainsFunc(own, func(secret Secret) bool {
		return slices.ContainsFunc(known.KubernetesSecrets, secret.matches)
	})
}

// matches reports whether two secrets are the same, possibly with changed credentials, or have the same credentials. A
// secret of a file has no uid, so that its name alone is no proof.
func (s Secret) matches(other Secret) bool {
	sameCredentials := s.CredentialHash != "" && s.CredentialHash == other.CredentialHash
	return sameCredentials || s.UID != "" && s.compare(other) == 0
}

// compare orders secrets by namespace, name and uid.
func (s Secret) compare(other Secret) int {
	return cmp.Or(strings.Compare(s.Namespace, other.Namespace), strings.Compare(s.Name, other.Name),
		strings.Compare(s.UID, other.UID))
}

// Of returns the credentials of a pull; nil is a pull that every pod of the machine can repeat.
func Of(secret *Secret) Credentials {
	if secret == nil {
		return Credentials{NodePodsAccessible: true}
	}
	return Credentials{KubernetesSecrets: []Secret{*secret}}
}

// With returns the record after another pull of the image, and whether it differs. r may be nil, and does not change.
func (r *Record) With(image, id string, c Credentials, now time.Time) (*Record, bool, error) {
	name, err := Repository(image)
	if err != nil {
		return nil, false, fmt.Errorf("reading image name %s: %w", image, err)
	}
	next := Record{ImageRef: id, CredentialMapping: map[string]Credentials{}}
	if r != nil {
		maps.Copy(next.CredentialMapping, r.CredentialMapping)
	}
	old, known := next.CredentialMapping[name]
	merged, changed := old.with(c)
	if r != nil && known && !changed {
		return r, false, nil
	}
	next.TypeMeta = metav1.TypeMeta{Kind: pulledKind, APIVersion: version}
	next.LastUpdatedTime = metav1.NewTime(now.UTC().Truncate(time.Second))
	next.CredentialMapping[name] = merged
	return &next, true, nil
}

// with merges credentials. Once every pod can use an image, its secrets do not matter.
func (c Credentials) with(other Credentials) (merged Credentials, changed bool) {
	switch {
	case c.NodePodsAccessible:
		return c, false
	case other.NodePodsAccessible:
		return other, true
	}
	merged = c
	merged.KubernetesSecrets = slices.Clone(c.KubernetesSecrets)
	for _, secret := range other.KubernetesSecrets {
		if slices.Contains(merged.KubernetesSecrets, secret) {
			continue
		}
		changed = true
		merged.KubernetesSecrets = slices.DeleteFunc(merged.KubernetesSecrets, func(have Secret) bool {
			return have.compare(secret) == 0
		})
		merged.KubernetesSecrets = append(merged.KubernetesSecrets, secret)
	}
	slices.SortFunc(merged.KubernetesSecrets, Secret.compare)
	return merged, changed
}

// Decode reads a record of an image.
func Decode(text []byte, id string) (*Record, error) {
	var r Record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("decoding the record of a pull: %w", err)
	}
	if r.Kind != pulledKind || !strings.HasPrefix(r.APIVersion, group) || r.ImageRef != id {
		return nil, errors.New("decoding the record of a pull: it is not that of the image")
	}
	return &r, nil
}

// intent is the file that marks a pull that has begun (kubelet: ImagePullIntent).
type intent struct {
	metav1.TypeMeta `json:",inline"`

	Image string `json:"image"`
}

// Intent returns the text of the file that marks the pull of an image.
func Intent(image string) []byte {
	text, err := json.Marshal(intent{metav1.TypeMeta{Kind: intentKind, APIVersion: version}, image})
	if err != nil {
		return nil // Texts can be encoded.
	}
	return text
}

// DecodeIntent returns the image whose pull a file marks, or an empty string for a damaged file.
func DecodeIntent(text []byte) (image string) {
	var i intent
	if err := json.Unmarshal(text, &i); err != nil || i.Kind != intentKind {
		return ""
	}
	return i.Image
}
