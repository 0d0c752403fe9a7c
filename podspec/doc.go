// Package podspec is what the user wants: one pod with all defaults, and the ConfigMaps and
// Secrets it refers to. It also answers what follows from a v1.Pod alone: its containers and
// volumes, the ports it publishes, its limits, what it refers to.
//
// In: a pod and its objects, from podspec/load or from a file. Out: the digest of what is
// wanted, copies without values of Secrets, and facts about the pod.
//
// Of the packages below it only podspec/input reads files and the network.
package podspec
