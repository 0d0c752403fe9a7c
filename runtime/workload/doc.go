// Package workload makes pods of objects that stand for pods: Deployments, ReplicaSets, StatefulSets, DaemonSets and
// Jobs.
//
// In: a workload, the pods of it that are there, and the time. Out: the pods as they shall be now, those that shall go,
// and when to look again. It is pure: it reads and writes nothing, and knows no runtime. What happens to each pod is
// the planner's to decide; here it is only said which of its versions a pod shall have.
//
// On one machine a pod keeps its name when its template changes, NAME-0 and so on, and of the pod only what changed is
// restarted. So a rolling update does not make new pods and remove old ones, it gives one pod after the other its new
// version; the pods of maxSurge are there, above the others, as long as it lasts.
package workload
