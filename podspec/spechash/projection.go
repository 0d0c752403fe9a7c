package spechash

import (
	"encoding/json"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/expand"
	"github.com/podctl/podctl/podspec/fields"
)

// ContainerProjection returns the part of a container's definition whose change requires a new container, as a JSON
// tree. It has the fields of class replace without API defaults, and the environment with values of ConfigMaps. Digests
// replace secret values. The environment of a pod of the API server has the references instead of their values.
func ContainerProjection(d *podspec.Desired, c *v1.Container) map[string]any {
	return containerProjection(d, c, environmentOf(d), func(e expand.Variable) string {
		return d.SecretDigest(e.Secret, []byte(e.Value))
	})
}

// secretText returns what replaces a secret value.
type secretText func(expand.Variable) string

// environment writes the environment of a container into its tree.
type environment func(d *podspec.Desired, tree map[string]any, c *v1.Container, standIn secretText)

// environmentOf returns how the environment of a pod's containers counts.
func environmentOf(d *podspec.Desired) environment {
	if d.FromCluster() {
		return keepReferences
	}
	return projectEnv
}

// keepReferences keeps env and envFrom as the manifest has them, so that neither a value nor a missing object counts.
func keepReferences(*podspec.Desired, map[string]any, *v1.Container, secretText) {}

// containerProjection is ContainerProjection with a custom environment and replacement for secret values.
func containerProjection(
	d *podspec.Desired, c *v1.Container, project environment, standIn secretText,
) map[string]any {
	tree := jsonTree(c)
	fields.NewTable().Keep(tree, "container", fields.Replace)
	delete(tree, "name")
	dropContainerDefaults(tree)
	project(d, tree, c, standIn)
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
	env, missing := expand.Resolve(d, c)
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
		if vol, _ := podspec.FindVolume(d.Pod, c.VolumeMounts[i].Name); vol != nil {
			volumes[vol.Name] = projectVolume(d, vol)
		}
	}
	if len(volumes) > 0 {
		tree["volumes"] = volumes
	}
}

// projectVolume omits the path of a claim of the API server: a pod keeps the path that it got first.
func projectVolume(d *podspec.Desired, vol *v1.Volume) any {
	if claim := podspec.ClaimName(d.Pod, vol); d.FromCluster() && claim != "" {
		return projectClaim(claim, vol.PersistentVolumeClaim != nil && vol.PersistentVolumeClaim.ReadOnly)
	}
	if bound := d.Volume(vol); bound != vol && vol.PersistentVolumeClaim.ReadOnly {
		return "hostPath " + bound.HostPath.Path + ", read-only"
	}
	switch vol = d.Volume(vol); {
	case vol.HostPath != nil:
		return "hostPath " + vol.HostPath.Path
	case vol.EmptyDir != nil:
		return strings.TrimSpace("emptyDir " + string(vol.EmptyDir.Medium))
	case vol.Image != nil:
		return "image " + vol.Image.Reference
	case vol.PersistentVolumeClaim != nil:
		return projectClaim(vol.PersistentVolumeClaim.ClaimName, vol.PersistentVolumeClaim.ReadOnly)
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
func projectClaim(name string, readOnly bool) string { //nolint:revive // it is a field of the manifest
	if readOnly {
		return "claim " + name + ", read-only"
	}
	return "claim " + name
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
