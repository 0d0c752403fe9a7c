// Package expand makes the environment of a container: the variables of its manifest,
// ConfigMaps and Secrets in the kubelet's order, with $(NAME) replaced.
//
// In: a pod with its objects, and answers for what only the node knows. Out: variables, commands
// and paths, none longer than Linux can hand to a process.
package expand
