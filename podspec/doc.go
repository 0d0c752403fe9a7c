// Package podspec describes what the user wants: one pod with all defaults, and the ConfigMaps and Secrets it refers
// to. It also derives facts from a v1.Pod: its containers, volumes, published ports, limits and references.
//
// The input is a pod and its objects, from podspec/load or from a file. The results are the digest of the wanted state,
// copies without values of Secrets, and facts about the pod.
//
// Of the packages below this one, only podspec/input reads files and the network.
package podspec
