package spechash

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/podspec/expand"
)

// Kubelet is the kubelet's hash of a container (kubelet: HashContainer
// since 1.31): only name and image count. It is written on every container, so
// that a kubelet which takes the pod over finds it unchanged.
func Kubelet(c *v1.Container) string {
	text, err := json.Marshal(struct {
		Image string `json:"image"`
		Name  string `json:"name"`
	}{c.Image, c.Name})
	if err != nil {
		return ""
	}
	h := fnv.New32a()
	// The kubelet hashes how the bytes print, not the bytes.
	fmt.Fprintf(h, "([]uint8)%v", text) //nolint:errcheck // a hash takes every write
	return strconv.FormatUint(uint64(h.Sum32()), 16)
}

// The versions of spec hashes. A change of the projection needs another one. The second
// has the values of Secrets apart, keyed; the hash of a container whose environment has
// none keeps the first.
const (
	specHashVersion   = "v1:"
	sealedHashVersion = "v2:"
)

// secretStandIn is in the place of secret values in what the open part of a hash covers.
const secretStandIn = "(secret)"

// Known reports whether a spec hash is of a version that can be compared. Another
// version says nothing, and what is not known restarts no container.
func Known(hash string) bool {
	return strings.HasPrefix(hash, specHashVersion) || strings.HasPrefix(hash, sealedHashVersion)
}

// Container is podctl's hash of everything in a container's definition that only a new
// container can bring into force. Writing out an API default does not change it. digest.Compare
// compares two of them.
func Container(d *podspec.Desired, c *v1.Container) string {
	return d.Once("container "+c.Name, func() string { return containerHash(d, c) })
}

func containerHash(d *podspec.Desired, c *v1.Container) string {
	var digests []digest.Named
	tree := containerProjection(d, c, func(e expand.Variable) string {
		digests = append(digests, digest.Named{Name: e.Name, Digest: d.SecretDigest(e.Secret, []byte(e.Value))})
		return secretStandIn
	})
	if len(digests) == 0 {
		return specHashVersion + hashTree(tree)
	}
	return digest.SealAll(sealedHashVersion+hashTree(tree), digests)
}

// Sandbox is podctl's hash of everything in a pod's definition that only a new sandbox can
// bring into force.
func Sandbox(d *podspec.Desired) string {
	return d.Once("sandbox", func() string { return specHashVersion + hashTree(SandboxProjection(d)) })
}

func hashTree(tree map[string]any) string {
	text, err := json.Marshal(tree)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
