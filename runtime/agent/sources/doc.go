// Package sources reads what an agent's sources want: directories and files, and URLs. What a
// source says too early, half or not at all changes nothing.
//
// In: paths, URLs and the time. Out: an Update for each change of what a source wants: pods, workloads, and objects that no pod of
// it names. Texts is pure: readings and the time come in. The package starts, stops and stores nothing; package owner decides which
// source a pod belongs to.
package sources
