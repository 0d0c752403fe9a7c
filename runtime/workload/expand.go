package workload

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// Input is the input of an expansion.
type Input struct {
	Workload *podspec.Workload
	// Pods are the existing pods of the workload, in any order.
	Pods []Pod
	// Job is the recorded status of a Job; nil for a new one.
	Job *batchv1.JobStatus
	// Unfit explains why this machine is no node for a DaemonSet's pod; empty if it is one. A nil function means that
	// it is.
	Unfit func(*v1.Pod) string
	Now   time.Time
}

// Pod is an existing pod.
type Pod struct {
	// Applied is the pod as it was applied last.
	Applied *podspec.Desired
	// Standing is the state of the pod. A pod whose newest version is applied but incomplete does not count as updated.
	model.Standing
	// Deleting is set while the pod is being deleted.
	Deleting bool
}

// Expansion is the result of expanding a workload at a time.
type Expansion struct {
	// Pods are the pods that are needed now, the lowest ordinal first. A pod that waits for its update is listed as it
	// was applied last.
	Pods []*podspec.Desired
	// Gone are the pods to delete.
	Gone []model.PodRef
	// Settled are the pods that are up to date and available.
	Settled []model.PodRef
	// Waits explain why pods are not yet created, updated or deleted.
	Waits []Wait
	// Unfit explains why a DaemonSet has no pod on this machine; empty if it has one.
	Unfit string
	// Status counts the existing pods.
	Status Status
	// Job is the status of a Job.
	Job *batchv1.JobStatus
	// Expired is set if a Job must be deleted (ttlSecondsAfterFinished).
	Expired bool
	// Next is when the result changes by the passing of time alone; zero if it does not.
	Next time.Time
	// Unknown are the pods that could not be observed.
	Unknown []Unknown
	// Seen are all existing pods, with their status.
	Seen []*v1.Pod
}

// Unknown is a pod that could not be observed, with the error.
type Unknown struct {
	Pod model.PodRef
	Err error
}

// UnknownErr joins the errors of the pods that could not be observed; nil if there are none.
func (x *Expansion) UnknownErr() error {
	errs := make([]error, 0, len(x.Unknown))
	for _, u := range x.Unknown {
		errs = append(errs, u.Err)
	}
	return errors.Join(errs...)
}

// Wait explains why a pod has to wait.
type Wait struct {
	// Pod is the name of the pod that waits.
	Pod string `json:"pod"`
	// Reason is one sentence.
	Reason string `json:"reason"`
}

// Status counts pods like the status of a workload.
type Status struct {
	Desired int `json:"desired"`
	Current int `json:"current"`
	Updated int `json:"updated"`
	// Old is how many pods have an older version and keep it until they are deleted, as in a ReplicaSet.
	Old       int `json:"old,omitempty"`
	Ready     int `json:"ready"`
	Available int `json:"available"`
	// Unknown is how many pods could not be observed. They count neither as ready nor as available.
	Unknown int `json:"unknown,omitempty"`
}

// Complete reports whether the workload is up to date: no pod is missing, superfluous or to be updated, and all are
// available.
func (s *Status) Complete() bool {
	return s.Current == s.Desired && s.Updated+s.Old == s.Desired && s.Available == s.Desired
}

// Expand returns the pods that a workload needs now. A CronJob has none of its own, only those of its Jobs.
func Expand(in *Input) *Expansion {
	x := newExpanding(in)
	x.noteSeen()
	x.noteUnknown()
	switch {
	case in.Workload.Job != nil:
		x.runJob(in.Workload.Job)
		return x.out
	case in.Workload.CronJob != nil:
		return x.out
	case in.Workload.StatefulSet != nil:
		x.statefulSet(in.Workload.StatefulSet)
	case in.Workload.DaemonSet != nil:
		x.daemonSet(in.Workload.DaemonSet)
	case in.Workload.Deployment != nil:
		x.deployment(in.Workload.Deployment)
	case in.Workload.ReplicaSet != nil:
		// A ReplicaSet never changes an existing pod.
		x.desired = int(ptr.Deref(in.Workload.ReplicaSet.Spec.Replicas, 1))
		x.scale("")
		for ordinal := range x.there {
			x.stays[ordinal] = true
		}
	}
	return x.done()
}

// noteSeen collects the existing pods.
func (x *expanding) noteSeen() {
	for i := range x.in.Pods {
		p := &x.in.Pods[i]
		pod := *p.Applied.Pod
		pod.Status = p.Status
		if p.Deleting {
			pod.DeletionTimestamp = &metav1.Time{Time: x.in.Now}
		}
		x.out.Seen = append(x.out.Seen, &pod)
	}
}

// unknownPause is the time after which a workload with pods that could not be observed is expanded again.
const unknownPause = 10 * time.Second

// noteUnknown collects the pods that could not be observed.
func (x *expanding) noteUnknown() {
	for i := range x.in.Pods {
		if p := &x.in.Pods[i]; p.Unknown != nil {
			x.out.Unknown = append(x.out.Unknown, Unknown{Pod: refOf(p.Applied), Err: p.Unknown})
			x.out.next(x.in.Now.Add(unknownPause))
		}
	}
}

// expanding is an expansion in progress.
type expanding struct {
	in    *Input
	maker *maker
	out   *Expansion
	// there are the existing pods, by ordinal.
	there map[int]*there
	// wanted are the needed pods, by ordinal.
	wanted map[int]*podspec.Desired
	// desired is how many pods are needed.
	desired int
	// stays are the ordinals of pods that do not change while they exist.
	stays map[int]bool
	// ordered is set for a StatefulSet whose pods are created and deleted one after the other (OrderedReady of the
	// API).
	ordered bool
}

// there is an existing pod with its state.
type there struct {
	Pod
	ordinal int
	// updated is set if the pod matches the workload's current template.
	updated bool
	// newest is set if the newest version is applied, even if a part of it is held or missing.
	newest           bool
	ready, available bool
}

func newExpanding(in *Input) *expanding {
	x := &expanding{
		in:     in,
		maker:  newMaker(in.Workload),
		out:    &Expansion{},
		there:  map[int]*there{},
		wanted: map[int]*podspec.Desired{},
		stays:  map[int]bool{},
	}
	if in.Workload.Job != nil || in.Workload.CronJob != nil {
		return x
	}
	for _, pod := range in.Pods {
		ordinal, ok := x.maker.ordinalOf(pod.Applied.Pod.Name)
		if !ok {
			x.out.gone(pod.Applied)
			continue
		}
		x.there[ordinal] = x.look(pod, ordinal)
	}
	return x
}

// look determines the state of a pod.
func (x *expanding) look(pod Pod, ordinal int) *there {
	t := &there{Pod: pod, ordinal: ordinal, newest: same(pod.Applied, x.maker.pod(ordinal))}
	t.updated = t.newest && !pod.Pending
	since, ready := readySince(&pod.Status)
	if t.ready = ready && !pod.Deleting && pod.Unknown == nil; !t.ready {
		return t
	}
	from := since.Add(time.Duration(x.maker.minReady) * time.Second)
	if t.available = !from.After(x.in.Now); !t.available {
		x.out.next(from)
	}
	return t
}

// readySince returns since when a pod is ready, as far as that is known.
func readySince(status *v1.PodStatus) (since time.Time, ready bool) {
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.Type == v1.PodReady && c.Status == v1.ConditionTrue {
			since, ready = c.LastTransitionTime.Time, true
		}
	}
	if !ready || !since.IsZero() {
		return since, ready
	}
	for i := range status.ContainerStatuses {
		if running := status.ContainerStatuses[i].State.Running; running != nil && running.StartedAt.After(since) {
			since = running.StartedAt.Time
		}
	}
	return since, ready
}

// next makes the workload expand again at a time.
func (x *Expansion) next(at time.Time) {
	if x.Next.IsZero() || at.Before(x.Next) {
		x.Next = at
	}
}

// make gives a pod its newest version, whether it exists or not.
func (x *expanding) make(ordinal int) { x.wanted[ordinal] = x.maker.pod(ordinal) }

// keep leaves a pod as it is, and records why.
func (x *expanding) keep(t *there, why string) {
	x.wanted[t.ordinal] = t.Applied
	x.out.wait(t.Applied.Pod.Name, why)
}

// keepOld keeps a pod of an older version as it is until it is deleted.
func (x *expanding) keepOld(t *there, why string) {
	x.stays[t.ordinal] = true
	x.keep(t, why)
}

// isUnknown reports whether a pod could not be observed.
func (t *there) isUnknown() bool { return t != nil && t.Unknown != nil }

// keepUnknown keeps a pod that could not be observed as it was applied, because it may be available.
func (x *expanding) keepUnknown(t *there) {
	why := ""
	if !t.newest {
		why = "It is updated once podctl can observe it."
	}
	x.keep(t, why)
}

func (x *Expansion) wait(pod, why string) {
	if why != "" {
		x.Waits = append(x.Waits, Wait{Pod: pod, Reason: why})
	}
}

func (x *Expansion) gone(d *podspec.Desired) {
	x.Gone = append(x.Gone, refOf(d))
}

func refOf(d *podspec.Desired) model.PodRef { return model.RefOf(d.Pod) }

// ordinals returns the ordinals of the existing pods, the lowest first.
func (x *expanding) ordinals() []int { return slices.Sorted(maps.Keys(x.there)) }

// done sorts the expansion and counts the pods.
func (x *expanding) done() *Expansion {
	for _, ordinal := range slices.Sorted(maps.Keys(x.wanted)) {
		x.out.Pods = append(x.out.Pods, x.wanted[ordinal])
	}
	slices.SortStableFunc(x.out.Gone, func(a, b model.PodRef) int { return cmp.Compare(a.Name, b.Name) })
	x.out.Status = Status{Desired: x.desired, Current: len(x.in.Pods), Unknown: len(x.out.Unknown)}
	for _, ordinal := range x.ordinals() {
		t := x.there[ordinal]
		if t.available && !t.Pending && x.wanted[ordinal] != nil && same(t.Applied, x.wanted[ordinal]) {
			x.out.Settled = append(x.out.Settled, refOf(t.Applied))
		}
		old := x.stays[ordinal] && !t.newest && x.wanted[ordinal] != nil
		counts := map[*int]bool{
			&x.out.Status.Updated:   t.updated,
			&x.out.Status.Old:       old,
			&x.out.Status.Ready:     t.ready,
			&x.out.Status.Available: t.available,
		}
		for counted, is := range counts {
			if is {
				*counted++
			}
		}
	}
	return x.out
}
