package podspec

import (
	"encoding/json"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// ContainerProjection is the part of a container's definition whose change asks
// for a new container, as a JSON tree: the fields of class replace with API
// defaults dropped, the environment with the values of ConfigMaps, and digests
// in the place of secret values.
func (d *Desired) ContainerProjection(c *v1.Container) map[string]any {
	return d.containerProjection(c, func(e EnvVar) string { return d.secretDigest(e.secret, []byte(e.Value)) })
}

// containerProjection is the projection with something of the caller's choice in the
// place of secret values.
func (d *Desired) containerProjection(c *v1.Container, standIn func(EnvVar) string) map[string]any {
	tree := jsonTree(c)
	newFieldTable().keep(tree, "container", Replace)
	delete(tree, "name")
	dropContainerDefaults(tree)
	d.projectEnv(tree, c, standIn)
	d.projectResources(tree, c)
	d.projectVolumes(tree, c)
	d.projectSecurity(tree, c)
	return pruned(tree)
}

// SandboxProjection is the part of a pod's definition whose change asks for a new
// sandbox, as a JSON tree.
func (d *Desired) SandboxProjection() map[string]any {
	tree := map[string]any{"spec": jsonTree(&d.Pod.Spec)}
	newFieldTable().keep(tree, "", NewSandbox)
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
	spec["qosClass"] = string(QOSClass(d.Pod))
	var ports []any
	for _, p := range PublishedPorts(d.Pod) {
		ports = append(ports, map[string]any{
			"name":      fmt.Sprintf("%s:%d", p.HostIP, p.Number),
			"container": fmt.Sprintf("%d/%s", p.ContainerPort, p.Protocol),
		})
	}
	if len(ports) > 0 {
		spec["hostPorts"] = ports
	}
	return pruned(spec)
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

// keep removes from a tree every field that is not of the class. A field that the
// table does not go into is judged as a whole.
func (t *fieldTable) keep(tree map[string]any, path string, class ChangeClass) {
	for key, value := range tree {
		at := joinPath(path, key)
		sub, isTree := value.(map[string]any)
		switch f, ok := t.classify(at); {
		case isTree && t.isDivided(at):
			t.keep(sub, at, class)
		case !ok || f.Change != class:
			delete(tree, key)
		}
	}
}

// dropContainerDefaults removes values which the API server would have filled
// in.
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

// projectEnv replaces env and envFrom by the variables they come to.
func (d *Desired) projectEnv(tree map[string]any, c *v1.Container, standIn func(EnvVar) string) {
	delete(tree, "envFrom")
	delete(tree, "env")
	env, missing := d.ResolveEnv(c)
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
		entries = append(entries, map[string]any{"name": strings.TrimSuffix(r.Kind+"/"+r.Name+"/"+r.Key, "/"), "value": "missing"})
	}
	if len(entries) > 0 {
		tree["env"] = entries
	}
}

func projectVar(e EnvVar, standIn func(EnvVar) string) map[string]any {
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

// projectResources adds the resources that cannot change in place: all but cpu
// and memory.
func (d *Desired) projectResources(tree map[string]any, c *v1.Container) {
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

// projectVolumes adds what must be mounted anew when a volume that the container
// mounts changes. The content of ConfigMaps, Secrets and the like does not
// belong to it: it is updated in place.
func (d *Desired) projectVolumes(tree map[string]any, c *v1.Container) {
	volumes := map[string]any{}
	for i := range c.VolumeMounts {
		if vol, _ := FindVolume(d.Pod, c.VolumeMounts[i].Name); vol != nil {
			volumes[vol.Name] = projectVolume(vol)
		}
	}
	if len(volumes) > 0 {
		tree["volumes"] = volumes
	}
}

func projectVolume(vol *v1.Volume) any {
	switch {
	case vol.HostPath != nil:
		return "hostPath " + vol.HostPath.Path
	case vol.EmptyDir != nil:
		return strings.TrimSpace("emptyDir " + string(vol.EmptyDir.Medium))
	case vol.Image != nil:
		return "image " + vol.Image.Reference
	case vol.PersistentVolumeClaim != nil:
		return projectClaim(vol.PersistentVolumeClaim)
	case vol.ConfigMap != nil:
		return "configMap"
	case vol.Secret != nil:
		return "secret"
	case vol.DownwardAPI != nil:
		return "downwardAPI"
	}
	return "projected"
}

// projectClaim is as it was before readOnly belonged to it where that is not set: another
// hash would replace what runs.
func projectClaim(source *v1.PersistentVolumeClaimVolumeSource) string {
	if source.ReadOnly {
		return "claim " + source.ClaimName + ", read-only"
	}
	return "claim " + source.ClaimName
}

// projectSecurity adds the profiles that a container inherits from its pod.
func (d *Desired) projectSecurity(tree map[string]any, c *v1.Container) {
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
	if isTrue(pod.RunAsNonRoot) {
		inherit("runAsNonRoot", true)
	}
	if c.SecurityContext != nil && c.SecurityContext.ProcMount != nil && *c.SecurityContext.ProcMount == v1.DefaultProcMount {
		delete(own, "procMount")
	}
	tree["securityContext"] = own
}

// pruned drops what is empty, which says nothing.
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
