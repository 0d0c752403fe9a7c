// Package objects stores the applied ConfigMaps, Secrets, claims and Services, for the pods that refer to them.
//
// The input is validated objects from manifests, and pods. The output is the created or changed objects, and pods with
// the stored objects that their own manifests do not contain. Objects of one namespace are not visible in another.
package objects
