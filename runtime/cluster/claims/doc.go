// Package claims reads the claims of pods of the API server, and the PersistentVolumes that these are bound to
// (kubelet: volumemanager/populator, util/operationexecutor).
//
// The input is a pod, the name of a claim, and the labels of the Node. The output is the path of the host with the
// data, or the reason why the pod cannot use the claim. bind.go decides that from the objects alone. A node may not
// watch claims and volumes, so the package reads both until the claim can be used. A pod then keeps that result.
package claims
