// Package kustomize builds kustomizations with kustomize's own library, in builds that have it (tag kustomize).
//
// In: a directory with a kustomization. Out: one text for each object that it comes to, or all that is wrong with it. A
// kustomization may be hostile: what it names is checked before the library sees it, and files are read by this package
// alone. Nothing is fetched, no program is run and nothing is written. Of podctl's packages only podspec/input and
// podspec/document are imported.
package kustomize
