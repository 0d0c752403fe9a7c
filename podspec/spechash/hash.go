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
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/digest"
	"github.com/podctl/podctl/podspec/expand"
	"github.com/podctl/podctl/podspec/fields"
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
	if !d.FromCluster() {
		return Start(d, c)
	}
	return d.Once("container "+c.Name, func() string {
		return specHashVersion + hashTree(containerProjection(d, c, nil))
	})
}

// Start is Container with the values of ConfigMaps and Secrets for every pod: it changes with everything that the next
// start of the container gets. For a pod that is not of the API server, both are the same.
func Start(d *podspec.Desired, c *v1.Container) string {
	return d.Once("start "+c.Name, func() string { return startHash(d, c) })
}

func startHash(d *podspec.Desired, c *v1.Container) string {
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

// ContainerProjection returns the part of a container's definition whose change requires a new container, as a JSON
// tree. It has the fields of class replace without API defaults, and the environment with values of ConfigMaps. Digests
// replace secret values. The environment of a pod of the API server has the references instead of their values.
func ContainerProjection(d *podspec.Desired, c *v1.Container) map[string]any {
	if d.FromCluster() {
		return containerProjection(d, c, nil)
	}
	return containerProjection(d, c, func(e expand.Variable) string {
		return d.SecretDigest(e.Secret, []byte(e.Value))
	})
}

// secretText returns what replaces a secret value.
type secretText func(expand.Variable) string

// containerProjection is ContainerProjection with a replacement for secret values. Without one, env and envFrom stay as
// the manifest has them, so that neither a value nor a missing object counts.
func containerProjection(d *podspec.Desired, c *v1.Container, standIn secretText) map[string]any {
	tree := jsonTree(c)
	fields.NewTable().Keep(tree, "container", fields.Replace)
	delete(tree, "name")
	dropContainerDefaults(tree)
	if standIn != nil {
		projectEnv(d, tree, c, standIn)
	}
	projectResources(tree, c)
	projectVolumes(d, tree, c)
	projectSecurity(d, tree, c)
	return pruned(tree)
}

// SandboxProjection returns the part of a pod's definition whose change requires a new sandbox, as a JSON tree.
func SandboxProjection(d *podspec.Desired) map[string]any {
	tree := map[string]any{"spec": jsonTree(&d.Pod.Spec)}
	fields.NewTable().Keep(tree, "", fields.NewSandbox)
	spec, _ := tree["spec"].(map[string]any)
	if spec == nil {
		spec = map[string]any{}
	}
	if spec["dnsPolicy"] == string(v1.DNSClusterFirst) {
		delete(spec, "dnsPolicy")
	}
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers", "volumes"} {
		delete(spec, list)
	}
	spec["qosClass"] = string(podspec.QOSClass(d.Pod))
	if ports := projectPorts(podspec.PublishedPorts(d.Pod)); len(ports) > 0 {
		spec["hostPorts"] = ports
	}
	return pruned(spec)
}

// projectPorts returns ports in the form that the hash of a sandbox uses.
func projectPorts(ports []podspec.Port) []any {
	var list []any
	for _, p := range ports {
		list = append(list, map[string]any{
			"name":      fmt.Sprintf("%s:%d", p.HostIP, p.Number),
			"container": fmt.Sprintf("%d/%s", p.ContainerPort, p.Protocol),
		})
	}
	return list
}

func jsonTree(value any) map[string]any {
	text, err := json.Marshal(value)
	if err != nil {
		return map[string]any{}
	}
	tree := map[string]any{}
	if err := json.Unmarshal(text, &tree); err != nil {
		return map[string]any{}
	}
	return tree
}

// dropContainerDefaults removes defaults of the API server.
func dropContainerDefaults(tree map[string]any) {
	for key, value := range map[string]any{
		"terminationMessagePath":   v1.TerminationMessagePathDefault,
		"terminationMessagePolicy": string(v1.TerminationMessageReadFile),
	} {
		if tree[key] == value {
			delete(tree, key)
		}
	}
}

// projectEnv replaces env and envFrom with the resolved variables.
func projectEnv(d *podspec.Desired, tree map[string]any, c *v1.Container, standIn secretText) {
	delete(tree, "envFrom")
	delete(tree, "env")
	env, missing := expand.Resolve(d, podspec.ContainerRef{Container: c})
	last := map[string]int{}
	var entries []any
	for _, e := range env {
		entry := projectVar(e, standIn)
		if i, again := last[e.Name]; again {
			entries[i] = entry
			continue
		}
		last[e.Name] = len(entries)
		entries = append(entries, entry)
	}
	for _, r := range missing {
		name := strings.TrimSuffix(r.Kind+"/"+r.Name+"/"+r.Key, "/")
		entries = append(entries, map[string]any{"name": name, "value": "missing"})
	}
	if len(entries) > 0 {
		tree["env"] = entries
	}
}

func projectVar(e expand.Variable, standIn secretText) map[string]any {
	entry := map[string]any{"name": e.Name}
	switch {
	case e.Sensitive:
		entry["value"] = standIn(e)
	case e.From == nil:
		entry["value"] = e.Value
	default:
		from := jsonTree(e.From)
		if field, ok := from["fieldRef"].(map[string]any); ok && field["apiVersion"] == "v1" {
			delete(field, "apiVersion")
		}
		entry["valueFrom"] = from
	}
	return entry
}

// projectResources adds the resources that cannot change in place: all except cpu and memory.
func projectResources(tree map[string]any, c *v1.Container) {
	limits := map[string]any{}
	for name, q := range c.Resources.Limits {
		if name != v1.ResourceCPU && name != v1.ResourceMemory {
			limits[string(name)] = q.String()
		}
	}
	delete(tree, "resources")
	if len(limits) > 0 {
		tree["resources"] = map[string]any{"limits": limits}
	}
}

// projectVolumes adds the parts of mounted volumes whose change requires a new mount. It omits the content of
// ConfigMaps, Secrets and the like, which is updated in place.
func projectVolumes(d *podspec.Desired, tree map[string]any, c *v1.Container) {
	volumes := map[string]any{}
	for i := range c.VolumeMounts {
		if vol, ok := podspec.VolumeNamed(d, c.VolumeMounts[i].Name); ok {
			volumes[vol.Name] = projectVolume(d.Origin, vol)
		}
	}
	if len(volumes) > 0 {
		tree["volumes"] = volumes
	}
}

// projectVolume omits the path of a claim of the API server: a pod keeps the path that it got first.
func projectVolume(from podspec.Origin, vol podspec.Volume) any {
	switch {
	case from.FromCluster() && vol.Claim != "":
		return projectClaim(vol)
	case vol.HostPath != nil && vol.ReadOnly:
		return "hostPath " + vol.HostPath.Path + ", read-only"
	case vol.HostPath != nil:
		return "hostPath " + vol.HostPath.Path
	case vol.EmptyDir != nil:
		return strings.TrimSpace("emptyDir " + string(vol.EmptyDir.Medium))
	case vol.Image != nil:
		return "image " + vol.Image.Reference
	case vol.PersistentVolumeClaim != nil:
		return projectClaim(vol)
	case vol.ConfigMap != nil:
		return "configMap"
	case vol.Secret != nil:
		return "secret"
	case vol.DownwardAPI != nil:
		return "downwardAPI"
	}
	return "projected"
}

// projectClaim adds readOnly only if it is set. Without it the text must stay as in earlier hashes, because a changed
// hash would replace running containers.
func projectClaim(vol podspec.Volume) string {
	if vol.ReadOnly {
		return "claim " + vol.Claim + ", read-only"
	}
	return "claim " + vol.Claim
}

// projectSecurity adds the profiles that a container inherits from its pod.
func projectSecurity(d *podspec.Desired, tree map[string]any, c *v1.Container) {
	pod := d.Pod.Spec.SecurityContext
	if pod == nil {
		return
	}
	own, _ := tree["securityContext"].(map[string]any)
	if own == nil {
		own = map[string]any{}
	}
	inherit := func(name string, value any) {
		if _, has := own[name]; !has {
			own[name] = value
		}
	}
	if pod.SeccompProfile != nil {
		inherit("seccompProfile", jsonTree(pod.SeccompProfile))
	}
	if pod.AppArmorProfile != nil {
		inherit("appArmorProfile", jsonTree(pod.AppArmorProfile))
	}
	if ptr.Deref(pod.RunAsNonRoot, false) {
		inherit("runAsNonRoot", true)
	}
	security := c.SecurityContext
	if security != nil && ptr.Deref(security.ProcMount, "") == v1.DefaultProcMount {
		delete(own, "procMount")
	}
	tree["securityContext"] = own
}

// pruned removes empty values, which have no meaning.
func pruned(tree map[string]any) map[string]any {
	for key, value := range tree {
		switch value := value.(type) {
		case map[string]any:
			if len(pruned(value)) == 0 {
				delete(tree, key)
			}
		case []any:
			if len(value) == 0 {
				delete(tree, key)
			}
		case string:
			if value == "" {
				delete(tree, key)
			}
		case nil:
			delete(tree, key)
		}
	}
	return tree
}
