// Package node makes an agent a node of a cluster.
//
// Its input are the settings of the cluster and the agent. It connects the packages of runtime/cluster and the node's
// server (runtime/kubeletapi) with the agent, and runs them until the context ends. It makes no decisions itself.
package node
