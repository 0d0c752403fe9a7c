package podspec

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Reference is something a pod refers to that no document supplies and that is
// not optional.
type Reference struct {
	// Kind is ConfigMap or Secret; Key is empty when the whole object is missing.
	Kind, Name, Key string
	// Container needs it for its environment, or Volume for its content.
	Container, Volume string
	Path, Detail      string
}

// The kinds of object a pod refers to.
const (
	kindConfigMap = "ConfigMap"
	kindSecret    = "Secret"
	kindClaim     = "PersistentVolumeClaim"
)

// reference is one mention of an object, or of keys in it.
type reference struct {
	kind, name string
	keys       []string
	optional   bool
	path       string
}

func envReferences(ref ContainerRef) []reference {
	var refs []reference
	for i, from := range ref.EnvFrom {
		path := ref.Path + "." + indexed("envFrom", i)
		if s := from.ConfigMapRef; s != nil {
			refs = append(refs, reference{kindConfigMap, s.Name, nil, ptr.Deref(s.Optional, false), path + ".configMapRef.name"})
		}
		if s := from.SecretRef; s != nil {
			refs = append(refs, reference{kindSecret, s.Name, nil, ptr.Deref(s.Optional, false), path + ".secretRef.name"})
		}
	}
	for i, env := range ref.Env {
		if env.ValueFrom == nil {
			continue
		}
		path := ref.Path + "." + indexed("env", i) + ".valueFrom"
		if s := env.ValueFrom.ConfigMapKeyRef; s != nil {
			refs = append(refs, reference{kindConfigMap, s.Name, []string{s.Key}, ptr.Deref(s.Optional, false), path + ".configMapKeyRef"})
		}
		if s := env.ValueFrom.SecretKeyRef; s != nil {
			refs = append(refs, reference{kindSecret, s.Name, []string{s.Key}, ptr.Deref(s.Optional, false), path + ".secretKeyRef"})
		}
	}
	return refs
}

func volumeReferences(vol *v1.Volume, path string) []reference {
	var refs []reference
	if s := vol.ConfigMap; s != nil {
		refs = append(refs, reference{kindConfigMap, s.Name, itemKeys(s.Items), ptr.Deref(s.Optional, false), path + ".configMap.name"})
	}
	if s := vol.Secret; s != nil {
		refs = append(refs, reference{kindSecret, s.SecretName, itemKeys(s.Items), ptr.Deref(s.Optional, false), path + ".secret.secretName"})
	}
	if vol.Projected == nil {
		return refs
	}
	for i, source := range vol.Projected.Sources {
		at := path + ".projected." + indexed("sources", i)
		if s := source.ConfigMap; s != nil {
			refs = append(refs, reference{kindConfigMap, s.Name, itemKeys(s.Items), ptr.Deref(s.Optional, false), at + ".configMap.name"})
		}
		if s := source.Secret; s != nil {
			refs = append(refs, reference{kindSecret, s.Name, itemKeys(s.Items), ptr.Deref(s.Optional, false), at + ".secret.name"})
		}
	}
	return refs
}

func itemKeys(items []v1.KeyToPath) []string {
	var keys []string
	for _, item := range items {
		keys = append(keys, item.Key)
	}
	return keys
}

// Unresolved lists what the pod refers to and nobody supplies: by its containers'
// environment, and by the volumes that some container mounts.
func (d *Desired) Unresolved() []Reference {
	var missing []Reference
	for _, ref := range Containers(d.Pod) {
		for _, r := range envReferences(ref) {
			missing = append(missing, d.missing(r, ref.Name, "")...)
		}
	}
	mounted := mountedNames(d.Pod)
	for i := range d.Pod.Spec.Volumes {
		vol := &d.Pod.Spec.Volumes[i]
		if !mounted[vol.Name] {
			continue
		}
		for _, r := range volumeReferences(vol, indexed("spec.volumes", i)) {
			missing = append(missing, d.missing(r, "", vol.Name)...)
		}
	}
	return missing
}

func (d *Desired) missing(r reference, container, volume string) []Reference {
	if r.optional {
		return nil
	}
	out := Reference{Kind: r.kind, Name: r.name, Container: container, Volume: volume, Path: r.path}
	if !d.Objects.has(r.kind, r.name) {
		out.Detail = fmt.Sprintf("%s %s/%s is not in the manifest; add it as a document", r.kind, d.Pod.Namespace, r.name)
		return []Reference{out}
	}
	var missing []Reference
	for _, key := range r.keys {
		out.Key = key
		if d.Objects.hasKey(out) {
			continue
		}
		out.Detail = fmt.Sprintf("%s %s/%s has no key %q", r.kind, d.Pod.Namespace, r.name, key)
		if d.Objects.hasBinary(out) {
			out.Detail += " in its data; binaryData is for volumes only"
		}
		missing = append(missing, out)
	}
	return missing
}

func (o *Objects) has(kind, name string) bool {
	if kind == kindSecret {
		return o.Secrets[name] != nil
	}
	return o.ConfigMaps[name] != nil
}

// hasKey tells whether a key is there for whoever refers to it: binary data is no
// environment (kubelet: makeEnvironmentVariables).
func (o *Objects) hasKey(r Reference) bool {
	if r.Kind == kindSecret {
		_, ok := o.Secrets[r.Name].Data[r.Key]
		return ok
	}
	_, text := o.ConfigMaps[r.Name].Data[r.Key]
	return text || (r.Volume != "" && o.hasBinary(r))
}

func (o *Objects) hasBinary(r Reference) bool {
	if r.Kind != kindConfigMap {
		return false
	}
	_, ok := o.ConfigMaps[r.Name].BinaryData[r.Key]
	return ok
}
