package podspec

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec/fieldpath"
)

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
	// bundle is the source of trust anchors; nil for other references.
	bundle *v1.ClusterTrustBundleProjection
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
