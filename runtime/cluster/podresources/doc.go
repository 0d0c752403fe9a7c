// Package podresources serves the PodResources API of a kubelet (k8s.io/kubelet/pkg/apis/podresources, versions v1 and
// v1alpha1) on a socket of the machine: which devices, processors and memory each container has for itself. Monitoring
// agents of devices read it.
//
// The input is the pods and the devices of the agent. podctl assigns no exclusive resources, so the lists of processors
// and memory are empty.
package podresources
