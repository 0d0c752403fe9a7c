// Package images manages the images of a runtime: it lists, pulls, loads, saves, pins and removes them, with the
// credentials that the kubelet would use.
//
// The input is names, and the pull secrets of a pod. The results are the runtime's data about an image, and its users.
// Archives use containerd's own API, because the CRI has no call for them.
package images
