package mirrors

import (
	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec/fieldpath"
)

// withoutReferences returns the spec of a pod without the references to objects of the API that a node may not create
// in a pod (API server: NodeRestriction, HasAPIObjectReference), and without the fields that no new pod on a node may
// have. omitted are their paths.
func withoutReferences(pod *v1.Pod) (spec v1.PodSpec, omitted []string) {
	o := &omission{PodSpec: *pod.Spec.DeepCopy()}
	o.pod()
	o.volumes()
	for _, list := range []struct {
		path       string
		containers []v1.Container
	}{{"spec.initContainers", o.InitContainers}, {"spec.containers", o.Containers}} {
		for i := range list.containers {
			o.container(fieldpath.Index(list.path, i), &list.containers[i])
		}
	}
	return o.PodSpec, o.paths
}

// omission removes references from a spec, and collects the paths of what it has removed.
type omission struct {
	v1.PodSpec

	paths []string
	// without are the names of removed volumes.
	without map[string]bool
}

func (o *omission) add(path string) { o.paths = append(o.paths, path) }

// pod removes fields of the whole pod. In a file, runtimeClassName is the name of a handler.
func (o *omission) pod() {
	for _, field := range []struct {
		path  string
		isSet bool
	}{
		{"spec.serviceAccountName", o.ServiceAccountName != "" || o.DeprecatedServiceAccount != ""},
		{"spec.imagePullSecrets", len(o.ImagePullSecrets) > 0},
		{"spec.resourceClaims", len(o.ResourceClaims) > 0},
		{"spec.schedulingGates", len(o.SchedulingGates) > 0},
		{"spec.ephemeralContainers", len(o.EphemeralContainers) > 0},
		{"spec.runtimeClassName", o.RuntimeClassName != nil},
	} {
		if field.isSet {
			o.add(field.path)
		}
	}
	o.ServiceAccountName, o.DeprecatedServiceAccount = "", ""
	o.ImagePullSecrets, o.ResourceClaims, o.SchedulingGates = nil, nil, nil
	o.EphemeralContainers, o.RuntimeClassName, o.Overhead = nil, nil, nil
}

// volumes removes volumes that name an object.
func (o *omission) volumes() {
	o.without = map[string]bool{}
	var kept []v1.Volume
	for i := range o.Volumes {
		vol, path := &o.Volumes[i], fieldpath.Index("spec.volumes", i)
		if vol.Projected != nil {
			o.projected(path+".projected", vol.Projected)
		} else if !isLocal(vol) {
			o.add(path)
		}
		if isLocal(vol) {
			kept = append(kept, *vol)
		} else {
			o.without[vol.Name] = true
		}
	}
	o.Volumes = kept
}

// isLocal reports whether a volume needs no object of the API.
func isLocal(vol *v1.Volume) bool {
	return vol.EmptyDir != nil || vol.HostPath != nil || vol.DownwardAPI != nil || vol.Image != nil || vol.NFS != nil ||
		vol.Projected != nil && len(vol.Projected.Sources) > 0
}

// projected removes the sources of a projected volume that name an object.
func (o *omission) projected(path string, vol *v1.ProjectedVolumeSource) {
	var kept []v1.VolumeProjection
	for i := range vol.Sources {
		if vol.Sources[i].DownwardAPI != nil {
			kept = append(kept, vol.Sources[i])
		} else {
			o.add(path + "." + fieldpath.Index("sources", i))
		}
	}
	vol.Sources = kept
}

// container removes variables that name an object, mounts of removed volumes, and ResourceClaims.
func (o *omission) container(path string, c *v1.Container) {
	c.EnvFrom = kept(c.EnvFrom, path+".envFrom", o.add, func(e *v1.EnvFromSource) bool {
		return e.ConfigMapRef == nil && e.SecretRef == nil
	})
	c.Env = kept(c.Env, path+".env", o.add, func(e *v1.EnvVar) bool {
		return e.ValueFrom == nil || e.ValueFrom.ConfigMapKeyRef == nil && e.ValueFrom.SecretKeyRef == nil &&
			(e.ValueFrom.FileKeyRef == nil || !o.without[e.ValueFrom.FileKeyRef.VolumeName])
	})
	c.VolumeMounts = kept(c.VolumeMounts, path+".volumeMounts", o.add, func(m *v1.VolumeMount) bool {
		return !o.without[m.Name]
	})
	c.VolumeDevices = kept(c.VolumeDevices, path+".volumeDevices", o.add, func(d *v1.VolumeDevice) bool {
		return !o.without[d.Name]
	})
	if len(c.Resources.Claims) > 0 {
		c.Resources.Claims = nil
		o.add(path + ".resources.claims")
	}
}

// kept returns the entries of a list that may stay, and reports the paths of the others.
func kept[T any](list []T, path string, omit func(string), stays func(*T) bool) []T {
	var rest []T
	for i := range list {
		if stays(&list[i]) {
			rest = append(rest, list[i])
		} else {
			omit(fieldpath.Index(path, i))
		}
	}
	return rest
}
