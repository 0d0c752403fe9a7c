package load

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
)

// objectName names an object of the pod's namespace.
type objectName struct{ kind, name string }

// referredObjects lists the ConfigMaps, Secrets and claims that a pod names anywhere.
func referredObjects(pod *v1.Pod) []objectName {
	var names []objectName
	for _, ref := range pod.Spec.ImagePullSecrets {
		names = append(names, objectName{podspec.KindSecret, ref.Name})
	}
	for _, ref := range podspec.Containers(pod) {
		for _, r := range podspec.EnvReferences(ref) {
			names = append(names, objectName{r.Kind, r.Name})
		}
	}
	for i := range pod.Spec.Volumes {
		if claim := pod.Spec.Volumes[i].PersistentVolumeClaim; claim != nil {
			names = append(names, objectName{podspec.KindClaim, claim.ClaimName})
		}
		for _, r := range podspec.VolumeReferences(&pod.Spec.Volumes[i], "") {
			names = append(names, objectName{r.Kind, r.Name})
		}
	}
	return names
}

// collect gives a pod the objects it refers to.
func (a *assembly) collect(d *podspec.Desired, used map[*object]bool) {
	wanted := referredObjects(d.Pod)
	for _, o := range a.objects {
		if o.pod != nil || o.meta.Namespace != d.Pod.Namespace || !slices.Contains(wanted, objectName{o.report.Kind, o.meta.Name}) {
			continue
		}
		used[o] = true
		if o.claim != nil {
			a.notes = append(a.notes, o.report.Note(d.Pod.Namespace+"/"+d.Pod.Name, "spec", "A claim is a directory of podctl's own: its size, class and access modes have no effect."))
			continue
		}
		if o.configMap != nil {
			if d.Objects.ConfigMaps == nil {
				d.Objects.ConfigMaps = map[string]*v1.ConfigMap{}
			}
			d.Objects.ConfigMaps[o.configMap.Name] = o.configMap
			continue
		}
		if d.Objects.Secrets == nil {
			d.Objects.Secrets = map[string]*v1.Secret{}
		}
		d.Objects.Secrets[o.secret.Name] = o.secret
	}
}
