package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/snapshot"
	"github.com/podctl/podctl/runtime/state"
)

// AppliedPod is a pod that podctl applied, as its journal remembers it.
type AppliedPod struct {
	Desired *podspec.Desired
	Journal *state.Journal
}

// Applied lists the pods podctl applied, by namespace and name. A journal that
// cannot be read does not hide the others.
func Applied(layout state.Layout) (pods []AppliedPod, unreadable []error, err error) {
	entries, err := layout.Journals()
	if err != nil {
		return nil, nil, err
	}
	for _, entry := range entries {
		switch {
		case entry.Err != nil:
			unreadable = append(unreadable, entry.Err)
		case entry.Journal.Applied != nil && entry.Journal.Applied.Pod != nil:
			entry.Journal.Applied.Stored = true
			pods = append(pods, AppliedPod{Desired: entry.Journal.Applied, Journal: entry.Journal})
		}
	}
	slices.SortFunc(pods, func(a, b AppliedPod) int {
		return strings.Compare(model.RefOf(a.Desired.Pod).String(), model.RefOf(b.Desired.Pod).String())
	})
	return pods, unreadable, nil
}

// journalTroubles says in one line which journals cannot be read, and why. The advice to
// remove them is left out: here it would be the harm.
func journalTroubles(unreadable []error) string {
	texts := make([]string, 0, len(unreadable))
	for _, err := range unreadable {
		text := err.Error()
		if unusable := (*state.JournalError)(nil); errors.As(err, &unusable) {
			text = fmt.Sprintf("%s: %v", unusable.Path, unusable.Err)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

// NotFoundError says that podctl applied no pod of that name.
type NotFoundError struct{ Name string }

// Error says what to do, also to those who name the kind before the pod, as for kubectl.
func (e *NotFoundError) Error() string {
	_, name, _ := strings.Cut(e.Name, "/")
	if slices.Contains([]string{"po", "pod", "pods"}, name) {
		return fmt.Sprintf("no pod %s: podctl has nothing but pods, which are named without their kind", e.Name)
	}
	return fmt.Sprintf("no pod %s: podctl has applied none of that name here (`podctl get -A` lists them)", e.Name)
}

// shortestUID is the shortest beginning of a uid that counts as one: fewer letters
// are a name that somebody mistyped.
const shortestUID = 8

// MatchesUID tells that a text is a uid or the beginning of one.
func MatchesUID(uid types.UID, text string) bool {
	return len(text) >= shortestUID && strings.HasPrefix(string(uid), text)
}

// FindPod finds a pod by name, namespace/name, pod/name (as `get -o name` says it) or a
// unique prefix of its uid.
func FindPod(pods []*podspec.Desired, namespace, name string) (*podspec.Desired, error) {
	wanted := namespace + "/" + name
	if before, after, found := strings.Cut(name, "/"); found && before == "pod" {
		wanted = namespace + "/" + after
	} else if found {
		wanted = name
	}
	var byUID []*podspec.Desired
	for _, d := range pods {
		if model.RefOf(d.Pod).String() == wanted {
			return d, nil
		}
		if MatchesUID(d.Pod.UID, name) {
			byUID = append(byUID, d)
		}
	}
	switch len(byUID) {
	case 0:
		return nil, &NotFoundError{Name: wanted}
	case 1:
		return byUID[0], nil
	}
	return nil, fmt.Errorf("%q is the beginning of %d uids; give more of it", name, len(byUID))
}

// StatusUnknown is the reason in the status of a pod that could not be observed.
const StatusUnknown = "StatusUnknown"

// Pods observes pods and gives each its status, as a kubelet would report it. A pod that
// cannot be observed keeps no other from it: it has the phase Unknown, the reason
// StatusUnknown and the error as its message, and all such errors are returned beside the
// pods. There are no pods when the context ended or the runtime does not answer at all.
func (e *Engine) Pods(ctx context.Context, pods []*podspec.Desired) ([]*v1.Pod, error) {
	lists, err := e.listFor(ctx, len(pods))
	if err != nil {
		return nil, err
	}
	found, errs := make([]*v1.Pod, len(pods)), make([]error, len(pods))
	var group errgroup.Group
	group.SetLimit(maxConcurrent)
	for i, d := range pods {
		group.Go(func() error {
			found[i], errs[i] = e.status(ctx, d, lists)
			return nil // What becomes of one keeps no other.
		})
	}
	_ = group.Wait()
	if err := noneOf(ctx, errs); err != nil {
		return nil, err
	}
	return found, errors.Join(errs...)
}

// noneOf is the error of a look at several pods that showed none of them: the context ended
// meanwhile, or the runtime does not answer at all.
func noneOf(ctx context.Context, errs []error) error {
	first := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	switch {
	case ctx.Err() != nil && first >= 0:
		return errs[first] // It says in which call the time ended.
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(errs) > 0 && !slices.ContainsFunc(errs, isAnswer):
		return errs[0]
	}
	return nil
}

// isAnswer reports whether an error shows that the runtime answered; so does none.
func isAnswer(err error) bool {
	gone := (*UnavailableError)(nil)
	return !errors.As(err, &gone)
}

// status observes one pod; of one that cannot be observed it returns what is known.
func (e *Engine) status(ctx context.Context, d *podspec.Desired, lists *nodeLists) (*v1.Pod, error) {
	in, s, err := e.statusInput(ctx, d, lists)
	if err == nil {
		return s.Shown(in), nil
	}
	pod := d.Pod.DeepCopy()
	pod.Status = v1.PodStatus{Phase: v1.PodUnknown, Reason: StatusUnknown, Message: err.Error()}
	if j, journalErr := e.layout.Pod(pod.UID).Journal().Read(); journalErr == nil && !j.StartTime.IsZero() {
		pod.Status.StartTime = &metav1.Time{Time: j.StartTime}
		j.Deletion.Mark(pod)
	}
	return pod, err
}

// statusInput is what the status of a pod is made of. A journal that cannot be used
// hides neither the pod nor others: what the runtime says is shown.
func (e *Engine) statusInput(ctx context.Context, d *podspec.Desired, lists *nodeLists) (*plan.Input, *snapshot.Pod, error) {
	ref := model.RefOf(d.Pod)
	j, err := e.layout.Pod(ref.UID).Journal().Read()
	if unusable := (*state.JournalError)(nil); errors.As(err, &unusable) {
		j, err = &state.Journal{Unreadable: true}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	s, err := e.observeWith(ctx, ref, d, j, lists)
	if err == nil {
		err = e.checkEndpoint(ref, s)
	}
	if err != nil {
		return nil, nil, err
	}
	return s.Input(ref, d, plan.Options{}), s, nil
}
