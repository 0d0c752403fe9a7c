package podspec

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// Obstacle is something of a pod that a kubelet which takes it over as a static pod
// would refuse, or would restart it for.
type Obstacle struct {
	Path   string
	Detail string
	// Refused tells that the kubelet does not accept the manifest at all.
	Refused bool
}

// String writes an obstacle as a problem is written.
func (o Obstacle) String() string { return o.Path + ": " + o.Detail }

// Obstacles lists what keeps a kubelet from taking the pod over without a restart
// (kubelet: PreventStaticPodAPIReferences, computePodResizeAction).
func Obstacles(pod *v1.Pod) []Obstacle {
	o := &obstacles{}
	o.pod(pod)
	for _, ref := range Containers(pod) {
		o.container(ref)
	}
	for i := range pod.Spec.Volumes {
		o.volume(indexed("spec.volumes", i), &pod.Spec.Volumes[i])
	}
	return o.list
}

type obstacles struct{ list []Obstacle }

func (o *obstacles) refuse(path, kind string) {
	o.list = append(o.list, Obstacle{path, fmt.Sprintf("a static pod may not refer to a %s", kind), true})
}

func (o *obstacles) restart(path, why string) {
	o.list = append(o.list, Obstacle{path, why, false})
}

func (o *obstacles) pod(pod *v1.Pod) {
	if pod.Spec.ServiceAccountName != "" {
		o.refuse("spec.serviceAccountName", "ServiceAccount")
	}
	for i := range pod.Spec.ImagePullSecrets {
		o.refuse(indexed("spec.imagePullSecrets", i), kindSecret)
	}
	for i := range pod.Spec.ResourceClaims {
		o.refuse(indexed("spec.resourceClaims", i), "ResourceClaim")
	}
	for i := range pod.Spec.EphemeralContainers {
		o.list = append(o.list, Obstacle{indexed("spec.ephemeralContainers", i), "a static pod may not have ephemeral containers", true})
	}
	if RuntimeHandler(pod) != "" {
		o.restart("spec.runtimeClassName", "a kubelet without an API server knows no RuntimeClass")
	}
	if pod.Spec.ActiveDeadlineSeconds != nil {
		o.restart("spec.activeDeadlineSeconds", "its time begins anew: a kubelet does not know when the pod started")
	}
}

func (o *obstacles) container(ref ContainerRef) {
	for _, r := range envReferences(ref) {
		o.refuse(r.path, r.kind)
	}
	for i, p := range ref.ResizePolicy {
		if p.RestartPolicy == v1.RestartContainer && (len(ref.Resources.Limits) > 0 || len(ref.Resources.Requests) > 0) {
			o.restart(ref.Path+"."+indexed("resizePolicy", i),
				"a kubelet has no record of the resources that were applied, takes them for changed, and restarts the container")
		}
	}
}

func (o *obstacles) volume(path string, vol *v1.Volume) {
	for _, r := range volumeReferences(vol, path) {
		o.refuse(r.path, r.kind)
	}
	if vol.PersistentVolumeClaim != nil {
		o.refuse(path+".persistentVolumeClaim", kindClaim)
	}
	if vol.Projected != nil {
		for i, source := range vol.Projected.Sources {
			if source.ServiceAccountToken != nil {
				o.refuse(path+".projected."+indexed("sources", i)+".serviceAccountToken", "ServiceAccount")
			}
		}
	}
}
