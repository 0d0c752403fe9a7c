package expand

import (
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
)

// perFile is the size counted for a file in addition to its content.
const perFile = 256

// VolumeSize returns the bytes that podctl writes into a volume.
func VolumeSize(d *podspec.Desired, vol *v1.Volume) int64 {
	size := int64(0)
	for _, r := range podspec.VolumeReferences(vol, "") {
		size += objectSize(&d.Objects, r)
	}
	if vol.DownwardAPI != nil {
		size += downwardSize(d, vol.DownwardAPI.Items)
	}
	if vol.Projected != nil {
		for i := range vol.Projected.Sources {
			if source := vol.Projected.Sources[i].DownwardAPI; source != nil {
				size += downwardSize(d, source.Items)
			}
		}
	}
	return size
}

// objectSize returns the bytes of the keys of an object that a reference selects, or of all keys.
func objectSize(o *podspec.Objects, r podspec.Reference) int64 {
	if !o.Has(r.Kind, r.Name) {
		return 0
	}
	if r.Kind == podspec.KindSecret {
		return chosenSize(o.Secrets[r.Name].Data, r.Keys)
	}
	return chosenSize(o.ConfigMaps[r.Name].Data, r.Keys) + chosenSize(o.ConfigMaps[r.Name].BinaryData, r.Keys)
}

func chosenSize[V string | []byte](values map[string]V, keys []string) int64 {
	size := int64(0)
	for _, key := range keys {
		size += int64(len(values[key])) + perFile
	}
	if len(keys) > 0 {
		return size
	}
	for _, value := range values {
		size += int64(len(value)) + perFile
	}
	return size
}

// downwardSize counts every file with labels or annotations as if it had all of them.
func downwardSize(d *podspec.Desired, items []v1.DownwardAPIVolumeFile) int64 {
	all, size := int64(0), int64(0)
	for _, list := range []map[string]string{d.Pod.Labels, d.Pod.Annotations} {
		for key, value := range list {
			all += int64(len(key) + len(value))
		}
	}
	for i := range items {
		size += perFile
		if ref := items[i].FieldRef; ref != nil && isMetadataMap(ref.FieldPath) {
			size += all
		}
	}
	return size
}

// isMetadataMap reports whether a field can stand for all labels or all annotations of a pod.
func isMetadataMap(path string) bool {
	return strings.HasPrefix(path, "metadata.annotations") || strings.HasPrefix(path, "metadata.labels")
}
