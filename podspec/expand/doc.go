// Package expand builds the environment of a container: the variables of its manifest, ConfigMaps and Secrets in the
// kubelet's order, with $(NAME) replaced.
//
// The input is a pod with its objects, and a function for values that only the node knows. The results are variables,
// commands and paths within the limits of Linux.
package expand
