// Package machine reads facts about the machine: the inputs for the configuration of pods, the features of the kernel,
// the used ports, and whether a kubelet runs.
//
// The input is the root directory to read below. The results are values for the packages that evaluate them
// (criconfig.Node, doctor.Kernel). The package changes nothing and does not query a runtime.
package machine
