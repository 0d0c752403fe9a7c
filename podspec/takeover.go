package podspec

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec/fieldpath"
)

// TakeoverProblem is a field that would make a kubelet refuse the pod as a static pod, or would restart a container.
type TakeoverProblem struct {
	Path   string
	Detail string
	// Refused is set if the kubelet does not accept the manifest at all.
	Refused bool
	// Panics is set if the kubelet panics, which leaves all its pods without a kubelet.
	Panics bool
}

// String returns the problem in the form of other problems of a manifest, without the file position.
func (p TakeoverProblem) String() string { return p.Path + ": " + p.Detail }

// TakeoverProblems returns the reasons why a kubelet cannot take the pod over without a restart (kubelet:
// PreventStaticPodAPIReferences, computePodResizeAction).
func TakeoverProblems(pod *v1.Pod) []TakeoverProblem {
	t := &takeover{}
	t.pod(pod)
	for _, ref := range Containers(pod) {
		t.container(ref)
	}
	for i := range pod.Spec.Volumes {
		t.volume(fieldpath.Index("spec.volumes", i), &pod.Spec.Volumes[i])
	}
	return t.list
}

type takeover struct{ list []TakeoverProblem }

func (t *takeover) refuse(path, kind string) {
	detail := fmt.Sprintf("a static pod may not refer to a %s", kind)
	t.list = append(t.list, TakeoverProblem{Path: path, Detail: detail, Refused: true})
}

func (t *takeover) restart(path, why string) {
	t.list = append(t.list, TakeoverProblem{Path: path, Detail: why})
}

func (t *takeover) pod(pod *v1.Pod) {
	if pod.Spec.ServiceAccountName != "" {
		t.refuse("spec.serviceAccountName", "ServiceAccount")
	}
	for i := range pod.Spec.ImagePullSecrets {
		t.refuse(fieldpath.Index("spec.imagePullSecrets", i), KindSecret)
	}
	for i := range pod.Spec.ResourceClaims {
		t.refuse(fieldpath.Index("spec.resourceClaims", i), "ResourceClaim")
	}
	for i := range pod.Spec.SchedulingGates {
		t.list = append(t.list, TakeoverProblem{
			Path:    fieldpath.Index("spec.schedulingGates", i),
			Detail:  "a static pod has a node, and so may not have scheduling gates",
			Refused: true,
		})
	}
	for i := range pod.Spec.EphemeralContainers {
		t.list = append(t.list, TakeoverProblem{
			Path:    fieldpath.Index("spec.ephemeralContainers", i),
			Detail:  "a static pod may not have ephemeral containers",
			Refused: true,
		})
	}
	if ptr.Deref(pod.Spec.RuntimeClassName, "") != "" {
		// Its runtimeClassManager is nil without an API server (kubelet: NamespacesForPod).
		t.list = append(t.list, TakeoverProblem{
			Path: "spec.runtimeClassName",
			Detail: "a kubelet 1.36 without an API server panics on a RuntimeClass, " +
				"and starts no pod until the manifest is removed",
			Panics: true,
		})
	}
	if pod.Spec.ActiveDeadlineSeconds != nil {
		t.restart("spec.activeDeadlineSeconds", "its time starts again: a kubelet does not know when the pod started")
	}
}

func (t *takeover) container(ref ContainerRef) {
	for _, r := range EnvReferences(ref) {
		if !IsToken(r.Kind, r.Name) {
			t.refuse(r.Path, r.Kind)
		}
	}
	hasResources := len(ref.Resources.Limits) > 0 || len(ref.Resources.Requests) > 0
	for i, p := range ref.ResizePolicy {
		if p.RestartPolicy == v1.RestartContainer && hasResources {
			t.restart(ref.Path+"."+fieldpath.Index("resizePolicy", i),
				"a kubelet has no record of the applied resources, treats them as changed, and restarts the container")
		}
	}
}

func (t *takeover) volume(path string, vol *v1.Volume) {
	for _, r := range VolumeReferences(vol, path) {
		t.refuse(r.Path, r.Kind)
	}
	if vol.PersistentVolumeClaim != nil {
		t.refuse(path+".persistentVolumeClaim", KindClaim)
	}
	if vol.Projected != nil {
		t.projected(path+".projected", vol.Projected)
	}
}

// projected reports a volume that only a kubelet with an API server can mount, independent of its sources (kubelet:
// projectedVolumeMounter.collectData).
func (t *takeover) projected(path string, vol *v1.ProjectedVolumeSource) {
	t.restart(path,
		"a kubelet without an API server cannot mount a projected volume: a container that exits is not restarted")
	for i, source := range vol.Sources {
		if source.ServiceAccountToken != nil {
			t.refuse(path+"."+fieldpath.Index("sources", i)+".serviceAccountToken", "ServiceAccount")
		}
	}
}
