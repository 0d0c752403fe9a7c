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

// Kubelet returns the kubelet's hash of a container, which covers only its name and image (kubelet: HashContainer since
// 1.31). Every container gets this hash, so that a kubelet that takes the pod over finds it unchanged.
func Kubelet(c *v1.Container) string {
	text, err := json.Marshal(struct {
		Image string `json:"image"`
		Name  string `json:"name"`
	}{c.Image, c.Name})
	if err != nil {
		return ""
	}
	h := fnv.New32a()
	// The kubelet hashes the printed form of the byte slice, not the bytes.
	fmt.Fprintf(h, "([]uint8)%v", text) //nolint:errcheck // a hash takes every write
	return strconv.FormatUint(uint64(h.Sum32()), 16)
}

// Versions of spec hashes. A change of the projection requires a new version. The second version has a separate keyed
// digest for values of Secrets. Containers without such values in their environment keep the first.
const (
	specHashVersion   = "v1:"
	sealedHashVersion = "v2:"
)

// secretStandIn replaces secret values in the open part of a hash.
const secretStandIn = "(secret)"

// Known reports whether a spec hash has a version that can be compared. Other versions restart no container.
func Known(hash string) bool {
	return strings.HasPrefix(hash, specHashVersion) || strings.HasPrefix(hash, sealedHashVersion)
}

// Container returns podctl's hash of everything in a container's definition that requires a new container. Explicit API
// defaults do not change it. For a pod of the API server, it omits the values of ConfigMaps and Secrets, because a
// kubelet never restarts a container for them. digest.Compare compares two such hashes.
func Container(d *podspec.Desired, c *v1.Container) string {
	return d.Once("container "+c.Name, func() string { return containerHash(d, c, environmentOf(d)) })
}

// Start is Container with the values of ConfigMaps and Secrets for every pod: it changes with everything that the next
// start of the container gets. For a pod that is not of the API server, both are the same.
func Start(d *podspec.Desired, c *v1.Container) string {
	if !d.FromCluster() {
		return Container(d, c)
	}
	return d.Once("start "+c.Name, func() string { return containerHash(d, c, projectEnv) })
}

func containerHash(d *podspec.Desired, c *v1.Container, project environment) string {
	var digests []digest.Named
	tree := containerProjection(d, c, project, func(e expand.Variable) string {
		digests = append(digests, digest.Named{Name: e.Name, Digest: d.SecretDigest(e.Secret, []byte(e.Value))})
		return secretStandIn
	})
	if len(digests) == 0 {
		return specHashVersion + hashTree(tree)
	}
	return digest.SealAll(sealedHashVersion+hashTree(tree), digests)
}

// Sandbox returns podctl's hash of everything in a pod's definition that requires a new sandbox.
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
