// Package image pulls images through the CRI, with the credentials the kubelet
// would use, and says what is known of an image. Images are loaded from archives
// by runtime/containerd: the CRI has no call for it.
//
// In come names, pull secrets and the CRI's image client; out go references, what the runtime
// knows of an image, and errors with the kubelet's reasons. It may not import the planner.
package image
