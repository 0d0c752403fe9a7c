package apievents

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record/util"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// component is the name of the sender of all events, which tools for clusters look for.
const component = "kubelet"

// Limits of an event in the API, in bytes.
const (
	messageMax = 1024
	reasonMax  = 128
)

// own lists the reasons of podctl's events that a kubelet does not have, and whether the API gets such events: those
// that explain a difference from a kubelet, and not those that a user of the API does not need.
func own() map[string]bool {
	return map[string]bool{
		"SandboxCreated":                    false,
		string(model.ProbeStale):            true,
		string(model.UnsupportedPodFeature): true,
		"DuplicateManifest":                 true,
		"TakenOver":                         true,
	}
}

// isSent reports whether the API gets events with a reason. It gets all that a kubelet has.
func isSent(reason string) bool {
	sent, isOwn := own()[reason]
	return sent || !isOwn
}

// podReference refers to a pod or, with a name, to one of its containers (kubelet: GenerateContainerRef).
func podReference(pod *v1.Pod, container string) v1.ObjectReference {
	return v1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		ResourceVersion: pod.ResourceVersion, FieldPath: fieldPath(pod, container),
	}
}

// fieldPath returns the path of a container; empty if the pod has no such container.
func fieldPath(pod *v1.Pod, container string) string {
	ref, found := podspec.FindContainer(pod, container)
	if container == "" || !found {
		return ""
	}
	list := "containers"
	switch ref.Type {
	case podspec.Init, podspec.Sidecar:
		list = "initContainers"
	case podspec.Ephemeral:
		list = "ephemeralContainers"
	case podspec.Regular:
	}
	return fmt.Sprintf("spec.%s{%s}", list, container)
}

// nodeReference refers to a node. Its uid is its name, as in the events of a kubelet.
func nodeReference(name string) v1.ObjectReference {
	return v1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: name, UID: types.UID(name)}
}

// newEvent returns an event about an object. unique makes its name unique.
func newEvent(node string, object v1.ObjectReference, e *state.PodEvent, unique int64) *v1.Event {
	at := metav1.NewTime(e.Last)
	namespace := object.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return &v1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: util.GenerateEventName(object.Name, unique), Annotations: e.Annotations,
		},
		InvolvedObject: object,
		Type:           string(e.Type), Reason: cut(e.Reason, reasonMax), Message: cut(e.Message, messageMax),
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
		Source:              v1.EventSource{Component: component, Host: node},
		ReportingController: component, ReportingInstance: node,
	}
}

// cut returns at most limit bytes of a text, as valid UTF-8.
func cut(text string, limit int) string { return strings.ToValidUTF8(text[:min(len(text), limit)], "") }
