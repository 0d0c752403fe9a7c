// Package load makes pods of manifests: it decodes documents strictly, fills in the API
// server's own defaults, validates with the API server's own rules, and says of every field
// whether it is honoured.
//
// In: texts from podspec/input. Out: a Manifest with all pods, all problems and all notes at
// once. Only Load reads sources; the rest of the package reads nothing.
package load
