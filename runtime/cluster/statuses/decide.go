package statuses

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// How long the answer to a request is trusted while the watch does not report a version that is at least as new. Then
// the pod is read again. The time doubles with each read.
const (
	trustFirst = 10 * time.Second
	trustMax   = 5 * time.Minute
)

// verb is the kind of a request.
type verb int

const (
	nothing verb = iota
	patch
	remove
	read
)

// request is one request for a pod.
type request struct {
	verb verb
	pod  model.PodRef
	// body is the patch. version is the version of the status in it.
	body    []byte
	version int
}

// known is the knowledge about one pod from which the next request follows.
type known struct {
	pod model.PodRef
	observed
	// version counts the changes of the observed state. It is 0 without a status.
	version int

	// answer is the answer to the last request, until the watch has caught up.
	answer   *answer
	merged   *v1.PodStatus
	accepted stamp
	settled  stamp
	// deleted is set once DELETE has succeeded. unsure is set if its result is unknown.
	deleted, unsure bool
}

// observed is the state of a pod on this machine at one time.
type observed struct {
	own        v1.PodStatus
	generation int64
	mayRun     bool
	reclaimed  bool
}

// answer has the fields of an answered pod that a decision needs.
type answer struct {
	resourceVersion string
	deletion        *metav1.Time
	grace           *int64
	status          v1.PodStatus
	at              time.Time
	trust           time.Duration
}

// stamp identifies a version of podctl's status together with a version of the pod in the API.
type stamp struct {
	version         int
	resourceVersion string
}

// decide returns the next request for a pod, given its watched copy. It returns an empty request if the API is up to
// date.
func (k *known) decide(watched *v1.Pod, now time.Time) (request, error) {
	base, stale := k.newest(watched, now)
	at := stamp{k.version, base.ResourceVersion}
	switch {
	case k.version == 0:
		return request{}, nil
	case stale || k.unsure:
		return k.request(read, nil), nil
	case at == k.settled:
		return request{}, nil
	}
	merge := Merge{
		API: base, Own: k.own, Generation: k.generation, MayRun: k.mayRun, Before: k.merged, Now: now,
	}
	status, err := merge.Status()
	if err != nil {
		return request{}, err
	}
	k.merged = &status
	body, err := patchOf(k.pod.UID, &base.Status, &status)
	switch {
	case err != nil:
		return request{}, err
	case body != nil && at != k.accepted:
		return k.request(patch, body), nil
	case k.deletable(base, &merge):
		return k.request(remove, nil), nil
	}
	if base.ResourceVersion != "" {
		k.settled = at
	}
	return request{}, nil
}

func (k *known) request(v verb, body []byte) request {
	return request{verb: v, pod: k.pod, body: body, version: k.version}
}

// deletable reports whether the final DELETE is due: the API has the final status, the pod is marked as deleted there,
// none of its containers runs, and its resources are reclaimed (kubelet: canBeDeleted). A grace period of 0 shows that
// the request was already made, and that the object waits for its finalizers.
func (k *known) deletable(base *v1.Pod, m *Merge) bool {
	grace := base.DeletionGracePeriodSeconds
	return !k.deleted && base.DeletionTimestamp != nil && (grace == nil || *grace > 0) && !podspec.IsMirror(base) &&
		model.IsOver(&base.Status) && k.reclaimed && !m.mayRun()
}

// newest returns the newest known version of the pod in the API: the watched copy or the last answer. stale reports
// that neither can be trusted, for example because the API server was restored from a backup.
func (k *known) newest(watched *v1.Pod, now time.Time) (base *v1.Pod, stale bool) {
	a := k.answer
	if a == nil {
		return watched, false
	}
	order, err := resourceversion.CompareResourceVersion(watched.ResourceVersion, a.resourceVersion)
	if watched.ResourceVersion == a.resourceVersion || (err == nil && order > 0) {
		k.answer = nil
		return watched, false
	}
	pod := *watched
	pod.ResourceVersion, pod.Status = a.resourceVersion, a.status
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = a.deletion, a.grace
	return &pod, now.Sub(a.at) >= a.trust
}

// note records the successful result of a request. pod is the answer; nil for a DELETE.
func (k *known) note(r *request, pod *v1.Pod, now time.Time) {
	switch r.verb {
	case remove:
		k.deleted = true
		return
	case patch:
		k.accepted = stamp{r.version, pod.ResourceVersion}
	case read, nothing:
	}
	trust := trustFirst
	if r.verb == read && !k.unsure && k.answer != nil {
		trust = min(2*k.answer.trust, trustMax)
	}
	k.unsure = false
	k.answer = &answer{
		resourceVersion: pod.ResourceVersion, status: pod.Status, at: now, trust: trust,
		deletion: pod.DeletionTimestamp, grace: pod.DeletionGracePeriodSeconds,
	}
}

// drop forgets the answer of the API after a request for a pod that is not there any more.
func (k *known) drop() { k.answer, k.unsure = nil, false }
