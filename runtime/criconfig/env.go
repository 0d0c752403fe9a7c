package criconfig

import (
	"fmt"
	"maps"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	apiresource "k8s.io/kubernetes/pkg/api/v1/resource"
	podapi "k8s.io/kubernetes/pkg/apis/core/pods"
	"k8s.io/kubernetes/pkg/fieldpath"

	"github.com/podctl/podctl/podspec/expand"
	"github.com/podctl/podctl/runtime/model"
)

// environment computes the container's variables (kubelet: makeEnvironmentVariables).
func environment(in *ContainerInput) (*expand.Environment, error) {
	source := func(from *v1.EnvVarSource) (string, bool, error) { return sourced(in, from) }
	return expand.EnvironmentOf(in.Desired, in.Container, in.Services, source)
}

// variables converts an environment for the runtime.
func variables(env *expand.Environment) []*runtimeapi.KeyValue {
	list := []*runtimeapi.KeyValue{}
	for name, value := range env.All() {
		list = append(list, &runtimeapi.KeyValue{Key: name, Value: []byte(value)})
	}
	return list
}

// sourced returns the value of a variable from the pod, the node or a file; false if it is optional and absent.
func sourced(in *ContainerInput, from *v1.EnvVarSource) (string, bool, error) {
	switch {
	case from.FieldRef != nil:
		value, err := fieldValue(in, from.FieldRef)
		return value, true, err
	case from.ResourceFieldRef != nil:
		value, err := resourceValue(in, from.ResourceFieldRef)
		return value, true, err
	case from.FileKeyRef != nil:
		return fileValue(in, from.FileKeyRef)
	}
	return "", false, fmt.Errorf("has no source")
}

// fieldValue returns a field of the pod or the node. It accepts the old field names of the API (kubelet:
// podFieldSelectorRuntimeValue).
func fieldValue(in *ContainerInput, ref *v1.ObjectFieldSelector) (string, error) {
	path, _, err := podapi.ConvertDownwardAPIFieldLabel(ref.APIVersion, ref.FieldPath, "")
	if err != nil {
		return "", fmt.Errorf("valueFrom.fieldRef: %w", err)
	}
	pod := in.Desired.Pod
	ips := model.SortIPs(in.PodIPs, in.Node.IPs)
	if pod.Spec.HostNetwork {
		ips = in.Node.IPs
	}
	switch path {
	case "spec.nodeName":
		return in.Node.Name, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.hostIP":
		return first(in.Node.IPs), nil
	case "status.hostIPs":
		return strings.Join(in.Node.IPs, ","), nil
	case "status.podIP":
		return first(ips), nil
	case "status.podIPs":
		return strings.Join(ips, ","), nil
	}
	return fieldpath.ExtractFieldPathAsString(pod, path)
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// resourceValue returns a request or a limit. A limit that is missing or zero is the pod's, or what the node has for
// pods; for other containers that applies only to regular ones (kubelet: defaultPodLimitsForDownwardAPI).
func resourceValue(in *ContainerInput, ref *v1.ResourceFieldSelector) (string, error) {
	pod := in.Desired.Pod.DeepCopy()
	available := maps.Clone(in.Node.Allocatable)
	if available == nil {
		available = v1.ResourceList{}
	}
	if pod.Spec.Resources != nil {
		for name, limit := range pod.Spec.Resources.Limits {
			if _, known := available[name]; known && !limit.IsZero() {
				available[name] = limit
			}
		}
	}
	if ref.ContainerName == "" {
		own := in.Container.DeepCopy()
		apiresource.MergeContainerResourceLimits(own, available)
		return apiresource.ExtractContainerResourceValue(ref, own)
	}
	for i := range pod.Spec.Containers {
		apiresource.MergeContainerResourceLimits(&pod.Spec.Containers[i], available)
	}
	return apiresource.ExtractResourceValueByContainerName(ref, pod, ref.ContainerName)
}
