// Package sources reads the wanted objects from an agent's sources: directories, files and URLs. A source that is half
// written, unreadable or missing for a moment changes nothing.
//
// Its inputs are paths, URLs and the time. It reports an Update for each change of the wanted pods, workloads, and
// objects that no pod of the source names. Texts is pure: it gets readings and the time as arguments. The package
// starts, stops and stores nothing. Package owner decides which source a pod belongs to.
package sources
