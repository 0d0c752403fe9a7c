package criconfig

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
)

// Sandbox returns the message that creates a pod's sandbox (kubelet: generatePodSandboxConfig).
func Sandbox(d *podspec.Desired, node Node, paths Paths, attempt uint32) (*runtimeapi.PodSandboxConfig, error) {
	pod := d.Pod
	dns, err := DNS(pod, node)
	if err != nil {
		return nil, err
	}
	if err = checkUsers(d, node, paths.UserNS); err != nil {
		return nil, err
	}
	hostname, err := sandboxHostname(pod, node.ClusterDomain)
	if err != nil {
		return nil, err
	}
	return &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{
			Name: pod.Name, Namespace: pod.Namespace, Uid: string(pod.UID), Attempt: attempt,
		},
		Hostname:     hostname,
		LogDirectory: paths.LogDir,
		DnsConfig:    dns,
		PortMappings: portMappings(pod),
		Labels:       sandboxLabels(pod),
		Annotations:  sandboxAnnotations(d),
		Linux:        linuxSandbox(pod, node, paths.UserNS),
	}, nil
}

func linuxSandbox(pod *v1.Pod, node Node, users *IDMapping) *runtimeapi.LinuxPodSandboxConfig {
	return &runtimeapi.LinuxPodSandboxConfig{
		CgroupParent:    CgroupParent(pod, node),
		Sysctls:         sysctls(pod),
		SecurityContext: sandboxSecurity(pod, users),
		Resources:       sandboxResources(pod, node),
		Overhead:        overheadResources(pod, node),
	}
}

// portMappings lists the ports of the regular containers. Ports of init containers and sidecars are not published
// (kubelet: makePortMappings).
func portMappings(pod *v1.Pod) []*runtimeapi.PortMapping {
	var mappings []*runtimeapi.PortMapping
	for _, ref := range podspec.RegularContainers(pod) {
		seen := map[string]bool{}
		for _, p := range ref.Ports {
			key := p.Name
			if key == "" {
				key = fmt.Sprintf("%s-%s-%d-%d", p.Protocol, p.HostIP, p.ContainerPort, p.HostPort)
			}
			if seen[key] {
				continue
			}
			seen[key] = true
			mappings = append(mappings, &runtimeapi.PortMapping{
				Protocol:      runtimeapi.Protocol(runtimeapi.Protocol_value[string(p.Protocol)]),
				ContainerPort: p.ContainerPort, HostPort: p.HostPort, HostIp: p.HostIP,
			})
		}
	}
	return mappings
}

// sysctls returns every sysctl with dots in its name.
func sysctls(pod *v1.Pod) map[string]string {
	if pod.Spec.SecurityContext == nil || len(pod.Spec.SecurityContext.Sysctls) == 0 {
		return nil
	}
	values := map[string]string{}
	for _, s := range pod.Spec.SecurityContext.Sysctls {
		values[podspec.SysctlName(s.Name)] = s.Value
	}
	return values
}

// sandboxSecurity returns the sandbox's security context: namespaces, the pod's user and groups, and the runtime's
// default seccomp profile.
func sandboxSecurity(pod *v1.Pod, users *IDMapping) *runtimeapi.LinuxSandboxSecurityContext {
	s := &runtimeapi.LinuxSandboxSecurityContext{
		Privileged: anyPrivileged(pod),
		Seccomp:    &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault},
	}
	own := pod.Spec.SecurityContext
	if own == nil {
		return s
	}
	s.NamespaceOptions = namespaces(pod, "", users)
	s.SelinuxOptions = selinux(own.SELinuxOptions)
	s.SupplementalGroups = supplementalGroups(pod)
	s.SupplementalGroupsPolicy = groupsPolicy(pod)
	if own.RunAsUser != nil {
		s.RunAsUser = &runtimeapi.Int64Value{Value: *own.RunAsUser}
	}
	if own.RunAsGroup != nil {
		s.RunAsGroup = &runtimeapi.Int64Value{Value: *own.RunAsGroup}
	}
	return s
}

func anyPrivileged(pod *v1.Pod) bool {
	return slices.ContainsFunc(podspec.Containers(pod), func(ref podspec.ContainerRef) bool {
		return ref.SecurityContext != nil && ref.SecurityContext.Privileged != nil && *ref.SecurityContext.Privileged
	})
}
