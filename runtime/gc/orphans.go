package gc

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/criconfig"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/state/statedir"
)

// Orphans finds the pods that a kubelet has left, and records that their deletion has begun.
type Orphans struct{ *Collector }

// Orphan is a pod that a kubelet has run for the API server, with this state directory as its root directory. podctl
// has no record of it.
type Orphan struct {
	Pod model.PodRef
	// Began is when the oldest of its sandboxes was created.
	Began time.Time
	// grace is the longest grace period of its containers, in seconds.
	grace int64
}

// Find returns the orphans in the runtime, also with an error for some pods. While a kubelet uses the runtime, there
// are none. It does not check whether the API server still has the pods.
func (x Orphans) Find(ctx context.Context) ([]Orphan, error) {
	x.host.ForgetKubelet() // It may have started since the last search.
	if x.host.CheckKubelet() != nil {
		return nil, nil //nolint:nilerr // they are the kubelet's
	}
	pods, err := x.leftoversByPod(ctx, nil)
	if err != nil {
		return nil, err
	}
	var found []Orphan
	var errs []error
	for _, uid := range slices.Sorted(maps.Keys(pods)) {
		o, err := x.orphan(pods[uid])
		if err != nil {
			errs = append(errs, err)
		} else if o != nil {
			found = append(found, *o)
		}
	}
	return found, errors.Join(errs...)
}

// Adopt records an orphan as a pod of the API server whose deletion has begun. The agent then deletes it like any other
// pod, also after an interruption. Adopt returns ErrNeeded if the pod is not an orphan any more.
func (x Orphans) Adopt(ctx context.Context, o Orphan) error {
	pod := x.layout.Pod(o.Pod.UID)
	return locked(ctx, pod, pruneWait, func() error {
		l, err := x.leftoversOf(ctx, o.Pod.UID)
		if err != nil {
			return err
		}
		now, err := x.orphan(l)
		if err != nil || l.shared || now == nil || now.Pod != o.Pod {
			return errors.Join(err, ErrNeeded)
		}
		return pod.Checkpoint().Write(now.record(x.client.Endpoint.Address, x.now()))
	})
}

// orphan returns a pod as an orphan; nil if it is none. The directory of the pod shows that the kubelet had this root
// directory. Another kubelet may use the same runtime.
func (x Orphans) orphan(l *leftovers) (*Orphan, error) {
	o := l.ofKubelet()
	if o == nil {
		return nil, nil //nolint:nilnil // it is none
	}
	if err := l.checkDisk(x.layout); err != nil || l.checkpoint || !l.dir {
		return nil, err
	}
	return o, nil
}

// ofKubelet returns the pod if all its records are those that a kubelet makes for a pod of the API server; nil
// otherwise. If their labels disagree, some may belong to other programs. A static pod may be one of a file that podctl
// does not read.
func (l *leftovers) ofKubelet() *Orphan {
	if len(l.sandboxes) == 0 {
		return nil
	}
	o := &Orphan{Pod: l.ref(), Began: time.Unix(0, l.sandboxes[0].GetCreatedAt())}
	for _, s := range l.sandboxes {
		meta := s.GetMetadata()
		named := model.PodRef{Namespace: meta.GetNamespace(), Name: meta.GetName(), UID: types.UID(meta.GetUid())}
		if named != o.Pod || !isKubelets(o.Pod, s) ||
			s.GetAnnotations()[podspec.AnnotationConfigSource] != podspec.OwnerAPI {
			return nil
		}
		if at := time.Unix(0, s.GetCreatedAt()); at.Before(o.Began) {
			o.Began = at
		}
	}
	for _, c := range l.containers {
		if !isKubelets(o.Pod, c) {
			return nil
		}
		o.grace = max(o.grace, graceOf(c))
	}
	for kind, name := range map[string]string{
		statedir.KindUID: string(o.Pod.UID), statedir.KindNamespace: o.Pod.Namespace, statedir.KindPod: o.Pod.Name,
	} {
		if statedir.CheckName(kind, name) != nil {
			return nil
		}
	}
	return o
}

// isKubelets reports whether a kubelet made a record for a pod.
func isKubelets(pod model.PodRef, item interface {
	GetLabels() map[string]string
	GetAnnotations() map[string]string
},
) bool {
	labels := item.GetLabels()
	return labels[criconfig.LabelPodUID] == string(pod.UID) && labels[criconfig.LabelPodName] == pod.Name &&
		labels[criconfig.LabelPodNamespace] == pod.Namespace && !criconfig.MadeByPodctl(item.GetAnnotations())
}

// graceOf returns the grace period that a container was created with, in seconds; zero if it is unknown.
func graceOf(c *runtimeapi.Container) int64 {
	seconds, err := strconv.ParseInt(c.GetAnnotations()[criconfig.AnnotationPodTerminationGracePeriod], 10, 32)
	if err != nil {
		return 0
	}
	return seconds
}

// record returns the checkpoint of an orphan. Its manifest is unknown. Without containers in it, the annotations of the
// records give their hooks and grace periods.
func (o *Orphan) record(endpoint string, now time.Time) *state.Checkpoint {
	ref := o.Pod
	desired := podspec.NewFromCluster(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID},
		Spec:       v1.PodSpec{RestartPolicy: v1.RestartPolicyNever},
	})
	return &state.Checkpoint{
		Endpoint: endpoint, Source: desired.Source, AppliedAt: now,
		Memory: model.Memory{
			Generation: 1, StartTime: o.Began, Applied: desired,
			Deletion: &model.Deletion{At: now, GracePeriodSeconds: o.grace},
		},
	}
}
