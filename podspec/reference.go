package podspec

import (
	"cmp"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec/fieldpath"
)

// MissingReference is a required object or key that does not exist, or a claim that cannot be used.
type MissingReference struct {
	// Kind is ConfigMap, Secret or PersistentVolumeClaim. Key is empty if the whole object is missing.
	Kind, Name, Key string
	// Container is set if the reference is in its environment, Volume if it is in its content.
	Container, Volume string
	Path, Detail      string
	// Status is a kubelet's text for the status and the events of the pod. It is empty for a pod that the API server
	// does not own, because a kubelet has no such pods.
	Status string
}

// KindPod is the kind of pods.
const KindPod = "Pod"

// Kinds of stored objects. A pod can name all of them except Services, which select pods.
const (
	KindConfigMap = "ConfigMap"
	KindSecret    = "Secret"
	KindClaim     = "PersistentVolumeClaim"
	KindVolume    = "PersistentVolume"
	KindService   = "Service"
)

// Reference is one reference of a pod to an object or to keys of it.
type Reference struct {
	Kind, Name string
	Keys       []string
	Optional   bool
	Path       string
}

// EnvReferences returns the ConfigMaps and Secrets that a container takes variables from.
func EnvReferences(ref ContainerRef) []Reference {
	var refs []Reference
	for i, from := range ref.EnvFrom {
		path := ref.Path + "." + fieldpath.Index("envFrom", i)
		if s := from.ConfigMapRef; s != nil {
			refs = append(refs, reference(KindConfigMap, s.Name, nil, s.Optional, path+".configMapRef.name"))
		}
		if s := from.SecretRef; s != nil {
			refs = append(refs, reference(KindSecret, s.Name, nil, s.Optional, path+".secretRef.name"))
		}
	}
	for i, env := range ref.Env {
		if env.ValueFrom == nil {
			continue
		}
		path := ref.Path + "." + fieldpath.Index("env", i) + ".valueFrom"
		if s := env.ValueFrom.ConfigMapKeyRef; s != nil {
			refs = append(refs, reference(KindConfigMap, s.Name, []string{s.Key}, s.Optional, path+".configMapKeyRef"))
		}
		if s := env.ValueFrom.SecretKeyRef; s != nil {
			refs = append(refs, reference(KindSecret, s.Name, []string{s.Key}, s.Optional, path+".secretKeyRef"))
		}
	}
	return refs
}

// VolumeReferences returns the ConfigMaps, Secrets, tokens and trust anchors that a volume takes files from. A token is
// a Secret with the name of TokenName, and trust anchors are a ConfigMap with the name of BundleName. path is the field
// path of the volume.
func VolumeReferences(vol *v1.Volume, path string) []Reference {
	var refs []Reference
	if s := vol.ConfigMap; s != nil {
		refs = append(refs, reference(KindConfigMap, s.Name, itemKeys(s.Items), s.Optional, path+".configMap.name"))
	}
	if s := vol.Secret; s != nil {
		keys := itemKeys(s.Items)
		refs = append(refs, reference(KindSecret, s.SecretName, keys, s.Optional, path+".secret.secretName"))
	}
	if vol.Projected == nil {
		return refs
	}
	for i, source := range vol.Projected.Sources {
		at := path + ".projected." + fieldpath.Index("sources", i)
		if s := source.ConfigMap; s != nil {
			refs = append(refs, reference(KindConfigMap, s.Name, itemKeys(s.Items), s.Optional, at+".configMap.name"))
		}
		if s := source.Secret; s != nil {
			refs = append(refs, reference(KindSecret, s.Name, itemKeys(s.Items), s.Optional, at+".secret.name"))
		}
		if s := source.ServiceAccountToken; s != nil {
			refs = append(refs, tokenReference(s, at+".serviceAccountToken"))
		}
		if s := source.ClusterTrustBundle; s != nil {
			refs = append(refs, bundleReference(s, at+".clusterTrustBundle"))
		}
	}
	return refs
}

// reference returns a reference that is not optional unless the manifest sets that.
func reference(kind, name string, keys []string, optional *bool, path string) Reference {
	return Reference{Kind: kind, Name: name, Keys: keys, Optional: ptr.Deref(optional, false), Path: path}
}

func itemKeys(items []v1.KeyToPath) []string {
	var keys []string
	for _, item := range items {
		keys = append(keys, item.Key)
	}
	return keys
}

// Unresolved returns the missing references of the pod: in the environment of its containers, and in the volumes that
// containers mount.
func (d *Desired) Unresolved() []MissingReference {
	var missing []MissingReference
	for _, ref := range Containers(d.Pod) {
		for _, r := range EnvReferences(ref) {
			missing = append(missing, d.Missing(r, ref.Name, "")...)
		}
	}
	mounted := mountedNames(d.Pod)
	for i := range d.Pod.Spec.Volumes {
		vol := &d.Pod.Spec.Volumes[i]
		if !mounted[vol.Name] {
			continue
		}
		path := fieldpath.Index("spec.volumes", i)
		missing = append(missing, missingClaims(d, vol, path)...)
		for _, r := range VolumeReferences(vol, path) {
			missing = append(missing, d.Missing(r, "", vol.Name)...)
		}
	}
	return missing
}

// Missing returns the missing parts of a reference: the object, or keys of it. The reference belongs either to a
// container or to a volume. An object that was not read yet is missing even if it is optional.
func (d *Desired) Missing(r Reference, container, volume string) []MissingReference {
	out := MissingReference{Kind: r.Kind, Name: r.Name, Container: container, Volume: volume, Path: r.Path}
	if why, is := d.Unread[ObjectName{r.Kind, r.Name}]; is {
		if IsToken(r.Kind, r.Name) {
			return []MissingReference{out.unreadToken(d.Pod, why).inMemory(d)}
		}
		if IsBundle(r.Kind, r.Name) {
			return []MissingReference{out.missingBundle(d.Pod, &why)}
		}
		out.Detail = fmt.Sprintf("%s %s/%s%s is unknown: %s", r.Kind, d.Pod.Namespace, r.Name, out.of(), why.Error())
		out.Status = out.inVolume(cmp.Or(why.Status, notSynced(r.Kind)))
		return []MissingReference{out.inMemory(d)}
	}
	if r.Optional {
		return nil
	}
	if !d.Objects.Has(r.Kind, r.Name) {
		if IsBundle(r.Kind, r.Name) {
			return []MissingReference{out.missingBundle(d.Pod, nil)}
		}
		return []MissingReference{out.absent(d)}
	}
	var missing []MissingReference
	for _, key := range r.Keys {
		out.Key = key
		if d.Objects.hasKey(out) {
			continue
		}
		out.Detail = fmt.Sprintf("%s %s/%s has no key %q", r.Kind, d.Pod.Namespace, r.Name, key)
		if d.Objects.hasBinary(out) {
			out.Detail += " in its data; binaryData is for volumes only"
		}
		if d.FromCluster() {
			out.Status = out.noKey(d.Pod.Namespace)
		}
		missing = append(missing, out)
	}
	return missing
}

// absent completes a reference to an object that does not exist.
func (r MissingReference) absent(d *Desired) MissingReference {
	subject := fmt.Sprintf("%s %s/%s%s", r.Kind, d.Pod.Namespace, r.Name, r.of())
	if !d.FromCluster() {
		r.Detail = subject + " is missing: apply a file that has it, or add it with --configmap FILE"
		return r
	}
	r.Detail = subject + " does not exist in the API server"
	r.Status = r.inVolume(fmt.Sprintf("%s %q not found", strings.ToLower(r.Kind), r.Name))
	return r
}

// noKey returns a kubelet's text for a missing key (kubelet: makeEnvironmentVariables, configmap.MakePayload,
// secret.MakePayload).
func (r MissingReference) noKey(namespace string) string {
	switch {
	case r.Volume == "":
		return fmt.Sprintf("couldn't find key %s in %s %s/%s", r.Key, r.Kind, namespace, r.Name)
	case r.Kind == KindSecret:
		return r.inVolume("references non-existent secret key: " + r.Key)
	}
	return r.inVolume("configmap references non-existent config key: " + r.Key)
}

// inVolume returns a kubelet's text for the volume of a reference. For a container, the text stays as it is.
func (r MissingReference) inVolume(text string) string {
	if r.Volume == "" {
		return text
	}
	return fmt.Sprintf("MountVolume.SetUp failed for volume %q : %s", r.Volume, text)
}

// notSynced returns a kubelet's text for an object that the API server has not sent in time (kubelet: objectCache.Get).
func notSynced(kind string) string {
	return "failed to sync " + strings.ToLower(kind) + " cache: timed out waiting for the condition"
}

// inMemory adds to the texts of an unread Secret why it is not on disk.
func (r MissingReference) inMemory(d *Desired) MissingReference {
	if d.MemorySecrets && r.Kind == KindSecret {
		const why = " (no copy on disk because of --offline-secrets=false)"
		r.Detail, r.Status = r.Detail+why, r.Status+why
	}
	return r
}

// of names the volume of a reference. It is empty for a container, because the message already names that.
func (r MissingReference) of() string {
	if r.Volume == "" {
		return ""
	}
	return ", which volume " + r.Volume + " names,"
}

// Has reports whether a ConfigMap, a Secret or the volume of a claim with this name exists.
func (o *Objects) Has(kind, name string) bool {
	switch kind {
	case KindSecret:
		return o.Secrets[name] != nil
	case KindClaim:
		return o.Volumes[name] != nil
	}
	return o.ConfigMaps[name] != nil
}

// hasKey reports whether the key of a reference exists. Binary data counts for a file, but not for a variable (kubelet:
// makeEnvironmentVariables).
func (o *Objects) hasKey(r MissingReference) bool {
	if r.Kind == KindSecret {
		_, ok := o.Secrets[r.Name].Data[r.Key]
		return ok
	}
	_, text := o.ConfigMaps[r.Name].Data[r.Key]
	return text || (r.Volume != "" && o.hasBinary(r))
}

func (o *Objects) hasBinary(r MissingReference) bool {
	if r.Kind != KindConfigMap {
		return false
	}
	_, ok := o.ConfigMaps[r.Name].BinaryData[r.Key]
	return ok
}
