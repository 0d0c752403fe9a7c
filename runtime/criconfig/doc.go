// Package criconfig turns a pod, with everything it refers to and the facts of the node, into the
// messages a container runtime is sent. It is pure: values in, values out.
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
// Where podctl sends something else on purpose, the function says so and
// docs/differences.md lists it.
package criconfig
