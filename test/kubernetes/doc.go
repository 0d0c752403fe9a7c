// Package kubernetes verifies docs/kubernetes.md with a real kubelet and a real API server. The kubelet takes running
// pods over from podctl, and podctl takes them back, and no container restarts. TestKubectl verifies the section about
// kubectl of docs/cluster.md, and TestNodeTakeOver docs/takeover.md. docs/conformance.md describes TestConformance,
// which runs Kubernetes' node tests against podctl agent, and TestCluster.
//
// The input is the programs that `make test-kubernetes`, `make test-conformance`, `make test-kubectl` and
// `make test-cluster` build: podctl, its images, a containerd, and programs of Kubernetes. The tests run in their own
// namespaces (sandbox_test.go), so their paths, ports and cgroups are those of a node, and nothing is left on the
// machine. The package is a separate module, so its requirements are no dependencies of podctl. It imports no package
// of podctl.
package kubernetes
