// Package machine reads facts about the machine: inputs for the configuration of pods, features of the kernel, used
// ports, and whether a kubelet runs.
//
// The input is the root directory to read below. The results are values for the packages that evaluate them
// (criconfig.Node, doctor.Kernel). The package changes nothing and does not query a runtime.
package machine
