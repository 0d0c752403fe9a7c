// Package imageaccess decides whether a pod may use an image that is already on the machine (kubelet: pullmanager,
// KubeletEnsureSecretPulledImages). Its inputs are a policy, the record of the pulls of the image, and the hashes of
// the pod's pull secrets. Its output is the decision, or the next record. It does no I/O, and sees no credentials.
package imageaccess
