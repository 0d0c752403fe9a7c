package criconfig

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/spechash"
)

// The kubelet's labels and annotations (pkg/kubelet/kuberuntime/labels.go).
const (
	LabelPodName       = "io.kubernetes.pod.name"
	LabelPodNamespace  = "io.kubernetes.pod.namespace"
	LabelPodUID        = "io.kubernetes.pod.uid"
	LabelContainerName = "io.kubernetes.container.name"

	AnnotationContainerHash             = "io.kubernetes.container.hash"
	AnnotationRestartCount              = "io.kubernetes.container.restartCount"
	AnnotationTerminationMessagePath    = "io.kubernetes.container.terminationMessagePath"
	AnnotationTerminationMessagePolicy  = "io.kubernetes.container.terminationMessagePolicy"
	AnnotationPodDeletionGracePeriod    = "io.kubernetes.pod.deletionGracePeriod"
	AnnotationPodTerminationGracePeriod = "io.kubernetes.pod.terminationGracePeriod"
	AnnotationPreStopHandler            = "io.kubernetes.container.preStopHandler"
	AnnotationContainerPorts            = "io.kubernetes.container.ports"
)

// podctl's own annotations. Another tool created a container without them.
const (
	// AnnotationPrefix is the prefix of all of them.
	AnnotationPrefix = "io.podctl."

	AnnotationContainerSpecHash = "io.podctl.container.spec-hash"
	AnnotationContainerSpec     = "io.podctl.container.spec"
	// AnnotationDebug marks a container that podctl debug added. It contains its definition as JSON, because no
	// manifest has it.
	AnnotationDebug           = "io.podctl.container.debug"
	AnnotationSandboxSpecHash = "io.podctl.sandbox.spec-hash"
	AnnotationSandboxSpec     = "io.podctl.sandbox.spec"
)

// MadeByPodctl reports whether podctl created the container or the sandbox with these annotations. Garbage collection
// removes no others.
func MadeByPodctl(annotations map[string]string) bool {
	for key := range annotations {
		if strings.HasPrefix(key, AnnotationPrefix) {
			return true
		}
	}
	return false
}

// specMax is the largest projection that is stored in an annotation, in bytes.
const specMax = 16 << 10

func sandboxLabels(pod *v1.Pod) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, pod.Labels)
	labels[LabelPodName] = pod.Name
	labels[LabelPodNamespace] = pod.Namespace
	labels[LabelPodUID] = string(pod.UID)
	return labels
}

func sandboxAnnotations(d *podspec.Desired) map[string]string {
	annotations := map[string]string{}
	maps.Copy(annotations, d.Pod.Annotations)
	annotations[AnnotationSandboxSpecHash] = spechash.Sandbox(d)
	addSpec(annotations, AnnotationSandboxSpec, spechash.SandboxProjection(d))
	return annotations
}

func containerLabels(pod *v1.Pod, c *v1.Container) map[string]string {
	return map[string]string{
		LabelPodName:       pod.Name,
		LabelPodNamespace:  pod.Namespace,
		LabelPodUID:        string(pod.UID),
		LabelContainerName: c.Name,
	}
}

func containerAnnotations(d *podspec.Desired, c *v1.Container, attempt uint32) map[string]string {
	pod := d.Pod
	a := map[string]string{
		AnnotationContainerHash:            spechash.Kubelet(c),
		AnnotationRestartCount:             strconv.FormatUint(uint64(attempt), 10),
		AnnotationTerminationMessagePath:   c.TerminationMessagePath,
		AnnotationTerminationMessagePolicy: string(c.TerminationMessagePolicy),
		AnnotationContainerSpecHash:        spechash.Container(d, c),
	}
	addSpec(a, AnnotationContainerSpec, spechash.ContainerProjection(d, c))
	if s := pod.DeletionGracePeriodSeconds; s != nil {
		a[AnnotationPodDeletionGracePeriod] = strconv.FormatInt(*s, 10)
	}
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		a[AnnotationPodTerminationGracePeriod] = strconv.FormatInt(*s, 10)
	}
	if c.Lifecycle != nil && c.Lifecycle.PreStop != nil {
		addJSON(a, AnnotationPreStopHandler, c.Lifecycle.PreStop)
	}
	if len(c.Ports) > 0 {
		addJSON(a, AnnotationContainerPorts, c.Ports)
	}
	return a
}

func addJSON(annotations map[string]string, key string, value any) {
	if text, err := json.Marshal(value); err == nil {
		annotations[key] = string(text)
	}
}

// addSpec stores a projection, to explain a later change field by field, unless it is too large for an annotation.
func addSpec(annotations map[string]string, key string, tree map[string]any) {
	if text, err := json.Marshal(tree); err == nil && len(text) <= specMax {
		annotations[key] = string(text)
	}
}

// PreStopFrom returns the preStop handler from the annotations of a container; nil if it has none.
func PreStopFrom(annotations map[string]string) *v1.LifecycleHandler {
	var handler *v1.LifecycleHandler
	if err := json.Unmarshal([]byte(annotations[AnnotationPreStopHandler]), &handler); err != nil {
		return nil
	}
	return handler
}

// PortsFrom returns the ports from the annotations of a container.
func PortsFrom(annotations map[string]string) []v1.ContainerPort {
	var ports []v1.ContainerPort
	if err := json.Unmarshal([]byte(annotations[AnnotationContainerPorts]), &ports); err != nil {
		return nil
	}
	return ports
}
