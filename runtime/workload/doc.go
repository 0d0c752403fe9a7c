// Package workload makes the pods of workloads: Deployments, ReplicaSets, StatefulSets, DaemonSets and Jobs.
//
// The input is a workload, its existing pods, and the time. The output is the pods it needs now, the pods to delete,
// and when to expand it again. The package is pure: it reads and writes nothing, and does not know the runtime. It only
// chooses the version of each pod. The planner decides what happens to a pod.
//
// On one machine a pod keeps its name when its template changes (NAME-0 and so on), and only the changed parts of the
// pod restart. A rolling update therefore creates no new pods and removes no old ones: it gives one pod after the other
// its new version. The pods of maxSurge exist during the update, with higher ordinals than the others.
package workload
