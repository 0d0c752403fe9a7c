package workload

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/spechash"
)

// maker creates the pods of a workload.
type maker struct {
	w *podspec.Workload
	// hash identifies the version of the template.
	hash string
	// minReady is how many seconds a pod must be ready to count as available.
	minReady int32
}

func newMaker(w *podspec.Workload) *maker {
	m := &maker{w: w}
	switch {
	case w.Deployment != nil:
		m.minReady = w.Deployment.Spec.MinReadySeconds
	case w.ReplicaSet != nil:
		m.minReady = w.ReplicaSet.Spec.MinReadySeconds
	case w.StatefulSet != nil:
		m.minReady = w.StatefulSet.Spec.MinReadySeconds
	case w.DaemonSet != nil:
		m.minReady = w.DaemonSet.Spec.MinReadySeconds
	}
	template, _ := w.PodTemplate()
	m.hash = hashOf(template)
	return m
}

// hashOf returns a short hash of a template version, as controller.ComputeHash does.
func hashOf(template *v1.PodTemplateSpec) string {
	hash := fnv.New32a()
	text, err := json.Marshal(template)
	if err != nil {
		panic(err) // Every type of the API has a JSON form.
	}
	_, _ = hash.Write(text) // It never fails.
	return rand.SafeEncodeString(strconv.FormatUint(uint64(hash.Sum32()), 10))
}

// name returns the name of the pod with an ordinal.
func (m *maker) name(ordinal int) string { return fmt.Sprintf("%s-%d", m.w.Meta().Name, ordinal) }

// ordinalOf returns the ordinal in the name of a pod.
func (m *maker) ordinalOf(name string) (ordinal int, ok bool) {
	text, ok := strings.CutPrefix(name, m.w.Meta().Name+"-")
	ordinal, err := strconv.Atoi(text)
	return ordinal, ok && err == nil && m.name(ordinal) == name
}

// pod returns the pod with an ordinal according to the current template.
func (m *maker) pod(ordinal int) *podspec.Desired {
	pod := m.w.Template.Pod.DeepCopy()
	pod.Name = m.name(ordinal)
	pod.UID = podspec.UID(pod.Namespace, pod.Name)
	meta := m.w.Meta()
	version := "apps/v1"
	if m.w.Job != nil || m.w.CronJob != nil {
		version = "batch/v1"
	}
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion:         version,
		Kind:               m.w.Kind(),
		Name:               meta.Name,
		UID:                meta.UID,
		Controller:         new(true),
		BlockOwnerDeletion: new(true),
	}}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	m.label(pod, ordinal)
	return m.w.Template.WithPod(pod)
}

// label adds the labels and fields that the controllers of a cluster add to each pod.
func (m *maker) label(pod *v1.Pod, ordinal int) {
	switch {
	case m.w.StatefulSet != nil:
		pod.Labels[appsv1.StatefulSetPodNameLabel] = pod.Name
		pod.Labels[appsv1.PodIndexLabel] = strconv.Itoa(ordinal)
		pod.Labels[appsv1.ControllerRevisionHashLabelKey] = m.hash
		m.identify(pod)
	case m.w.DaemonSet != nil:
		pod.Labels[appsv1.ControllerRevisionHashLabelKey] = m.hash
	case m.w.Job != nil:
		pod.Labels[batchv1.JobNameLabel] = m.w.Job.Name
	default:
		pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = m.hash
	}
}

// identify gives the pod of a StatefulSet its host name and its claims (initIdentity, updateStorage of the controller).
func (m *maker) identify(pod *v1.Pod) {
	pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, m.w.StatefulSet.Spec.ServiceName
	m.w.MountClaims(pod)
}

// same reports whether two versions of a pod are equal.
func same(a, b *podspec.Desired) bool {
	if !equality.Semantic.DeepEqual(a.Pod.Spec, b.Pod.Spec) ||
		!equality.Semantic.DeepEqual(a.Pod.Labels, b.Pod.Labels) ||
		!equality.Semantic.DeepEqual(a.Pod.Annotations, b.Pod.Annotations) {
		return false
	}
	containersOfB := podspec.Containers(b.Pod)
	for i, ref := range podspec.Containers(a.Pod) {
		if spechash.Container(a, ref.Container) != spechash.Container(b, containersOfB[i].Container) {
			return false
		}
	}
	return true
}
