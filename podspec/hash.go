package podspec

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"
)

// ContainerHash is the kubelet's hash of a container (kubelet: HashContainer
// since 1.31): only name and image count. It is written on every container, so
// that a kubelet which takes the pod over finds it unchanged.
func ContainerHash(c *v1.Container) string {
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

// specHashVersion begins a spec hash; a change of the projection changes it.
const specHashVersion = "v1:"

// ContainerSpecHash is podctl's hash of everything in a container's definition
// that only a new container can bring into force. Writing out an API default
// does not change it.
func (d *Desired) ContainerSpecHash(c *v1.Container) string {
	return d.memo.get("container "+c.Name, func() string { return hashTree(d.ContainerProjection(c)) })
}

// SandboxSpecHash is podctl's hash of everything in a pod's definition that only
// a new sandbox can bring into force.
func (d *Desired) SandboxSpecHash() string {
	return d.memo.get("sandbox", func() string { return hashTree(d.SandboxProjection()) })
}

// Digest identifies what is wanted: the pod with its defaults, and the ConfigMaps
// and Secrets it uses. Two manifests with the same digest ask for the same pod.
// It is empty when nothing is wanted.
func (d *Desired) Digest() string {
	if d == nil {
		return ""
	}
	return d.memo.get("digest", func() string {
		text, err := json.Marshal(struct {
			Pod     *v1.Pod
			Objects Objects
		}{d.Pod, d.Objects.withoutSecrets()})
		if err != nil {
			return ""
		}
		sum := sha256.Sum256(text)
		return "sha256:" + hex.EncodeToString(sum[:])
	})
}

// memo remembers what was computed of something that does not change any more.
type memo struct {
	lock   sync.Mutex
	values map[string]string
}

func newMemo() *memo { return &memo{values: map[string]string{}} }

// get computes a value once; without a memo, each time.
func (m *memo) get(key string, compute func() string) string {
	if m == nil {
		return compute()
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	if _, ok := m.values[key]; !ok {
		m.values[key] = compute()
	}
	return m.values[key]
}

func hashTree(tree map[string]any) string {
	text, err := json.Marshal(tree)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return specHashVersion + hex.EncodeToString(sum[:16])
}

// QOSClass is the pod's quality of service class (kubelet: qos.GetPodQOS).
func QOSClass(pod *v1.Pod) v1.PodQOSClass { return qos.ComputePodQOS(pod) }
