package model

import (
	"cmp"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PodRef names one pod.
type PodRef struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
}

// String returns the pod as users write it: namespace/name.
func (r PodRef) String() string { return r.Namespace + "/" + r.Name }

// Full returns the pod as in a kubelet's messages: name_namespace(uid) (kubelet: format.Pod).
func (r PodRef) Full() string { return fmt.Sprintf("%s_%s(%s)", r.Name, r.Namespace, r.UID) }

// Compare orders pods by namespace and name.
func (r PodRef) Compare(other PodRef) int {
	return cmp.Or(
		strings.Compare(r.Namespace, other.Namespace),
		strings.Compare(r.Name, other.Name),
		strings.Compare(string(r.UID), string(other.UID)))
}

// SameName reports whether two pods have the same name, whatever their UIDs are.
func (r PodRef) SameName(other PodRef) bool {
	return r.Namespace == other.Namespace && r.Name == other.Name
}

// RefOf returns the reference to the pod of a manifest.
func RefOf(pod *v1.Pod) PodRef {
	return PodRef{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
}

// Unmanaged is a container in the pod's sandbox without the labels of a pod.
type Unmanaged struct {
	ID        string
	Name      string
	SandboxID string
}

// ShortID returns the first twelve digits of an ID, as nerdctl shows them.
func ShortID(id string) string {
	return id[:min(len(id), 12)]
}
