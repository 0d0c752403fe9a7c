package podspec

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec/fieldpath"
)

// Obstacle is something of a pod that a kubelet which takes it over as a static pod
// would refuse, or would restart it for.
type TakeoverProblem struct {
	Path   string
	Detail string
	// Refused tells that the kubelet does not accept the manifest at all.
	Refused bool
}

// String writes an obstacle as a problem is written.
func (o TakeoverProblem) String() string { return o.Path + ": " + o.Detail }

// Obstacles lists what keeps a kubelet from taking the pod over without a restart
// (kubelet: PreventStaticPodAPIReferences, computePodResizeAction).
func TakeoverProblems(pod *v1.Pod) []TakeoverProblem {
	o := &takeover{}
	o.pod(pod)
	for _, ref := range Containers(pod) {
		o.container(ref)
	}
	for i := range pod.Spec.Volumes {
		o.volume(fieldpath.Index("spec.volumes", i), &pod.Spec.Volumes[i])
	}
	return o.list
}

type takeover struct{ list []TakeoverProblem }

func (o *takeover) refuse(path, kind string) {
	o.list = append(o.list, TakeoverProblem{path, fmt.Sprintf("a static pod may not refer to a %s", kind), true})
}

func (o *takeover) restart(path, why string) {
	o.list = append(o.list, TakeoverProblem{path, why, false})
}

func (o *takeover) pod(pod *v1.Pod) {
	if pod.Spec.ServiceAccountName != "" {
		o.refuse("spec.serviceAccountName", "ServiceAccount")
	}
	for i := range pod.Spec.ImagePullSecrets {
		o.refuse(fieldpath.Index("spec.imagePullSecrets", i), KindSecret)
	}
	for i := range pod.Spec.ResourceClaims {
		o.refuse(fieldpath.Index("spec.resourceClaims", i), "ResourceClaim")
	}
	for i := range pod.Spec.EphemeralContainers {
		o.list = append(o.list, TakeoverProblem{fieldpath.Index("spec.ephemeralContainers", i), "a static pod may not have ephemeral containers", true})
	}
	if RuntimeHandler(pod) != "" {
		o.restart("spec.runtimeClassName", "a kubelet without an API server knows no RuntimeClass")
	}
	if pod.Spec.ActiveDeadlineSeconds != nil {
		o.restart("spec.activeDeadlineSeconds", "its time begins anew: a kubelet does not know when the pod started")
	}
}

func (o *takeover) container(ref ContainerRef) {
	for _, r := range EnvReferences(ref) {
		o.refuse(r.Path, r.Kind)
	}
	for i, p := range ref.ResizePolicy {
		if p.RestartPolicy == v1.RestartContainer && (len(ref.Resources.Limits) > 0 || len(ref.Resources.Requests) > 0) {
			o.restart(ref.Path+"."+fieldpath.Index("resizePolicy", i),
				"a kubelet has no record of the resources that were applied, takes them for changed, and restarts the container")
		}
	}
}

func (o *takeover) volume(path string, vol *v1.Volume) {
	for _, r := range VolumeReferences(vol, path) {
		o.refuse(r.Path, r.Kind)
	}
	if vol.PersistentVolumeClaim != nil {
		o.refuse(path+".persistentVolumeClaim", KindClaim)
	}
	if vol.Projected != nil {
		for i, source := range vol.Projected.Sources {
			if source.ServiceAccountToken != nil {
				o.refuse(path+".projected."+fieldpath.Index("sources", i)+".serviceAccountToken", "ServiceAccount")
			}
		}
	}
}
