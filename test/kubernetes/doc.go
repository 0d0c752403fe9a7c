// Package kubernetes proves what docs/kubernetes.md promises, with a real kubelet and a real API server: the kubelet
// takes running pods over from podctl, and podctl takes them back, and no container restarts.
//
// In come the programs that `make test-kubernetes` builds: podctl, its images, a containerd, the kubelet and the
// services. The tests run in namespaces of their own (sandbox_test.go), so the paths, ports and cgroups there are those
// of a node, and nothing is left on the machine. The package is a module of its own: nothing of what it needs becomes a
// dependency of podctl. It imports nothing of podctl.
package kubernetes
