// Package image pulls images through the CRI, with the credentials the kubelet
// would use, and says what is known of an image. Images are loaded from archives
// by runtime/node: the CRI has no call for it.
package images
