// Package controllers keeps the pods of workloads. It is a source of the agent, like a directory of manifests, and
// provides the pods that the stored workloads want. Package declared stores the workloads of directories, files and
// URLs.
//
// Its inputs are the stored workloads, and notifications of changes. It reports the wanted pods whenever they change.
// Package workload decides which pods a workload wants. The agent creates, changes and deletes them like those of other
// sources. While nothing changes, the package makes no calls: it only checks the modification time of a directory once
// a second.
package controllers
