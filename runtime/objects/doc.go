// Package objects keeps the ConfigMaps, Secrets and claims that were applied, for
// the pods that name them.
//
// In: objects of manifests, already validated, and pods. Out: what was created or changed, and pods
// with the stored objects that their own manifests do not bring. Objects of one namespace are not
// seen in another.
package objects
