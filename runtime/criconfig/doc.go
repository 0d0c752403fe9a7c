// Package criconfig converts a pod, with all objects it refers to and the facts of the node, to the messages for a
// container runtime. It is pure: values in, values out.
//
//	kubelet                                       here
//	generatePodSandboxConfig                      sandbox.go
//	generateContainerConfig                       container.go
//	makeEnvironmentVariables                      env.go
//	makeMounts                                    mounts.go
//	generateLinuxContainerResources               resources.go
//	determineEffectiveSecurityContext             security.go
//	namespacesForPod                              namespaces.go
//	GeneratePodHostNameAndDomain                  hostname.go
//	Configurer.GetPodDNS                          dns.go
//	managedHostsFileContent                       hosts.go
//	newContainerLabels, newContainerAnnotations   labels.go
//	ResourceConfigForPod, GetPodContainerName     cgroup.go
//
// If podctl differs on purpose, the comment of the function mentions it and docs/differences.md lists it.
package criconfig
