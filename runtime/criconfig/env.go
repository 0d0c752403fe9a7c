package criconfig

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	apiresource "k8s.io/kubernetes/pkg/api/v1/resource"
	podapi "k8s.io/kubernetes/pkg/apis/core/pods"
	"k8s.io/kubernetes/pkg/fieldpath"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
)

// variables is a container's environment as it grows: by name, and in the order
// of the names' first mention.
type variables struct {
	values map[string]string
	order  []string
}

func (e *variables) set(name, value string) {
	if _, has := e.values[name]; !has {
		e.order = append(e.order, name)
	}
	e.values[name] = value
}

func (e *variables) expand(text string) string {
	return expansion.Expand(text, expansion.MappingFuncFor(e.values))
}

func (e *variables) expandAll(texts []string) []string {
	var out []string
	for _, text := range texts {
		out = append(out, e.expand(text))
	}
	return out
}

func (e *variables) list() []*runtimeapi.KeyValue {
	list := make([]*runtimeapi.KeyValue, 0, len(e.order))
	for _, name := range e.order {
		list = append(list, &runtimeapi.KeyValue{Key: name, Value: []byte(e.values[name])})
	}
	return list
}

// environment computes the container's variables (kubelet:
// makeEnvironmentVariables). There are no Services here, so none are announced.
func environment(in *ContainerInput) (*variables, error) {
	resolved, missing := in.Desired.ResolveEnv(in.Container.Container)
	if len(missing) > 0 {
		return nil, fmt.Errorf("%s: %s", missing[0].Path, missing[0].Detail)
	}
	env := &variables{values: map[string]string{}}
	for _, v := range resolved {
		switch {
		case v.From != nil:
			value, set, err := sourced(in, v.From)
			if err != nil {
				return nil, fmt.Errorf("%s.env[%s]: %w", in.Container.Path, v.Name, err)
			}
			if set {
				env.set(v.Name, value)
			}
		case v.Expand:
			env.set(v.Name, env.expand(v.Value))
		default:
			env.set(v.Name, v.Value)
		}
	}
	return env, nil
}

// sourced is the value of a variable that the pod, the node or a file supplies;
// false when it is optional and absent.
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

// fieldValue reads a field of the pod or the node; old names of fields mean what they mean
// to the API (kubelet: podFieldSelectorRuntimeValue).
func fieldValue(in *ContainerInput, ref *v1.ObjectFieldSelector) (string, error) {
	path, _, err := podapi.ConvertDownwardAPIFieldLabel(ref.APIVersion, ref.FieldPath, "")
	if err != nil {
		return "", fmt.Errorf("valueFrom.fieldRef: %w", err)
	}
	pod := in.Desired.Pod
	ips := orderedIPs(in.PodIPs, in.Node)
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

// resourceValue reads a request or a limit. A limit that is not set is the pod's,
// or what the node has to give; of other containers that holds for the regular
// ones alone (kubelet: defaultPodLimitsForDownwardAPI).
func resourceValue(in *ContainerInput, ref *v1.ResourceFieldSelector) (string, error) {
	pod := in.Desired.Pod.DeepCopy()
	available := maps.Clone(in.Node.Allocatable)
	if available == nil {
		available = v1.ResourceList{}
	}
	if pod.Spec.Resources != nil {
		maps.Copy(available, pod.Spec.Resources.Limits)
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

// orderedIPs puts the address of the node's own family first, and keeps one of
// each family (kubelet: sortPodIPs).
func orderedIPs(ips []string, node Node) []string {
	isV6 := func(ip string) bool { return strings.Contains(ip, ":") }
	primaryV6 := len(node.IPs) > 0 && isV6(node.IPs[0])
	var ordered []string
	for _, wanted := range []bool{primaryV6, !primaryV6} {
		if i := slices.IndexFunc(ips, func(ip string) bool { return isV6(ip) == wanted }); i >= 0 {
			ordered = append(ordered, ips[i])
		}
	}
	return ordered
}
