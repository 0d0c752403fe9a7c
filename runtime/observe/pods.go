package observe

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
)

// StatusUnknown is the reason in the status of a pod that could not be observed.
const StatusUnknown = "StatusUnknown"

// Lister observes many pods at once.
type Lister struct{ observer *Observer }

// NewLister returns a Lister.
func NewLister(observer *Observer) *Lister { return &Lister{observer} }

// List observes pods and returns each with the status that a kubelet would report. A pod that cannot be observed does
// not affect others. It gets the phase Unknown, the reason StatusUnknown and the error as its message. List also
// returns all such errors. It returns no pods if the user canceled it or the runtime does not answer at all.
func (l *Lister) List(ctx context.Context, pods []*podspec.Desired) ([]*v1.Pod, error) {
	return each(ctx, l, pods, l.status)
}

// Standing observes pods and reports for each whether it matches its manifest. A pod that cannot be observed has the
// error in its own Standing. Standing itself fails only if the runtime answers for no pod.
func (l *Lister) Standing(ctx context.Context, pods []*podspec.Desired) ([]model.Standing, error) {
	look := func(ctx context.Context, d *podspec.Desired, lists *nodeLists) (model.Standing, error) {
		in, s, err := l.statusInput(ctx, d, lists)
		if err != nil {
			return model.Standing{Status: unknownStatus(err), Pending: true, Unknown: err}, err
		}
		p := plan.Make(in)
		return model.Standing{
			Status:   s.Shown(in).Status,
			Pending:  !p.Complete,
			Stopping: len(p.PendingRestarts()) > 0,
		}, nil
	}
	all, err := each(ctx, l, pods, look)
	if all == nil {
		return nil, err
	}
	return all, nil
}

// unknownStatus returns the status of a pod that could not be observed.
func unknownStatus(err error) v1.PodStatus {
	return v1.PodStatus{Phase: v1.PodUnknown, Reason: StatusUnknown, Message: err.Error()}
}

// each observes pods concurrently.
func each[T any](
	ctx context.Context, l *Lister, pods []*podspec.Desired,
	look func(context.Context, *podspec.Desired, *nodeLists) (T, error),
) ([]T, error) {
	lists, err := l.listFor(ctx, len(pods))
	if err != nil {
		return nil, err
	}
	found, errs := make([]T, len(pods)), make([]error, len(pods))
	var group errgroup.Group
	group.SetLimit(cri.MaxCalls)
	for i, d := range pods {
		group.Go(func() error {
			found[i], errs[i] = look(ctx, d, lists)
			return nil // A failure of one pod does not affect others.
		})
	}
	_ = group.Wait()
	if err := l.observer.world.Client.NoneAnswered(ctx, errs); err != nil {
		return nil, err
	}
	return found, errors.Join(errs...)
}

// status observes one pod. With an error it returns the pod with the status Unknown.
func (l *Lister) status(ctx context.Context, d *podspec.Desired, lists *nodeLists) (*v1.Pod, error) {
	in, s, err := l.statusInput(ctx, d, lists)
	if err == nil {
		pod := s.Shown(in)
		if d.Rebuilt {
			splitInits(pod)
		}
		return pod, nil
	}
	pod := d.Pod.DeepCopy()
	d.MarkSource(pod)
	pod.Status = unknownStatus(err)
	j, readErr := l.observer.world.Layout.Pod(pod.UID).Checkpoint().Read()
	if readErr == nil && !j.StartTime.IsZero() {
		pod.Status.StartTime = &metav1.Time{Time: j.StartTime}
		j.Leaving().Mark(pod)
	}
	return pod, err
}

// statusInput returns the input for the status of a pod. If its checkpoint cannot be used, the status shows only what
// the runtime reports.
func (l *Lister) statusInput(
	ctx context.Context, d *podspec.Desired, lists *nodeLists,
) (*plan.Input, *snapshot.Pod, error) {
	ref := model.RefOf(d.Pod)
	j, err := l.observer.world.Layout.Pod(ref.UID).Checkpoint().Read()
	if unusable := (*state.CheckpointError)(nil); errors.As(err, &unusable) {
		j, err = &state.Checkpoint{Unreadable: true}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	s, err := l.observer.observeWith(ctx, ref, d, j, lists)
	if err == nil {
		err = l.observer.checkEndpoint(ctx, ref, s)
	}
	if err != nil {
		return nil, nil, err
	}
	in := s.Input(ref, d, plan.Options{})
	l.observer.addConditions(ctx, in)
	return in, s, nil
}
