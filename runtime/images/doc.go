// Package images has the images of a runtime: list, pull, load, save, pin and remove them, with
// the credentials that the kubelet would use.
//
// In: names, and the pull secrets of a pod. Out: what the runtime knows of an image, and who needs
// it. Archives go through containerd's own API, as the CRI has no call for them.
package images
