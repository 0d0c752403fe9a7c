package inspect

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/commands/view"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

func runGetPods(ctx context.Context, sess *session.Session, o *getOptions, args []string) error {
	if o.Snapshot != "" && (o.watch || o.probe) {
		return exit.Usagef("--watch and --probe cannot be used with --snapshot")
	}
	if err := o.printer.prepare(ctx, sess.IO); err != nil {
		return err
	}
	o.For = selection.List
	observed, err := o.Observe(ctx, sess, args)
	if err != nil {
		return err
	}
	look := &podLook{sess: sess, o: o, single: len(args) == 1, named: len(args)+len(o.Files) > 0, observed: observed}
	found, unknown := look.now(ctx)
	if found == nil {
		return unknown
	}
	if len(found.items) == 0 && !o.watch && o.printer.isTable() {
		o.noteNone(sess, "pod")
		return nil
	}
	if err := o.printer.print(found); err != nil || !o.watch {
		return exit.Join(ctx, err, unknown)
	}
	if unknown != nil {
		sess.IO.NoteOnce("note: %s", sess.ErrorText(unknown))
	}
	return o.follow(ctx, sess, look.again)
}

// podLook is one look, or several, at the pods that get shows.
type podLook struct {
	sess *session.Session
	o    *getOptions
	// named reports whether the command line names what to show, single whether it is one thing.
	named, single bool
	observed      *selection.Observed
}

// now observes what there is now. With an error there is what it does not keep from being shown; nil for nothing.
func (l *podLook) now(ctx context.Context) (*listing, error) {
	desired := l.observed.Pods
	if l.observed.Engine != nil && !l.named {
		foreign, err := l.foreign(ctx)
		if err != nil {
			return nil, err
		}
		desired = slices.SortedFunc(slices.Values(slices.Concat(desired, foreign)), func(a, b *podspec.Desired) int {
			return model.RefOf(a.Pod).Compare(model.RefOf(b.Pod))
		})
	}
	var probed error
	if l.o.probe {
		probed = selection.ProbeFirst(ctx, l.observed.Engine, desired...)
	}
	pods, unknown := l.observed.Observer.List(ctx, desired)
	if pods == nil && unknown != nil {
		return nil, unknown
	}
	pods, err := l.o.ByStatus(pods)
	if err == nil {
		err = sortByField(l.o.printer.sortBy, "pod", pods, func(pod *v1.Pod) any { return pod })
	}
	if err != nil {
		return nil, err
	}
	found := &listing{single: l.single, list: view.PodList[any]}
	for _, pod := range pods {
		found.items = append(found.items, listed{"pod/" + pod.Name, pod, string(pod.UID) + pod.Status.String()})
	}
	found.table = func() ([]string, []view.Row, error) {
		v := l.o.lists()
		table := v.Pods
		if l.o.printer.containers {
			table = v.Containers
		}
		header, rows := table(pods)
		return header, rows, nil
	}
	return found, exit.Join(ctx, probed, unknown)
}

// foreign lists the pods of others that the selection lets through. A pod of
// podctl's is never taken for one, whatever the namespace of the selection.
func (l *podLook) foreign(ctx context.Context) ([]*podspec.Desired, error) {
	own, err := selection.Applied(l.sess)
	if err != nil {
		return nil, err
	}
	found, err := l.observed.Engine.Lister.Unmanaged(ctx, selection.UIDs(own))
	if err != nil {
		return nil, err
	}
	return l.o.Filter(found, l.sess.Flags.Namespace)
}

// again is now, with what was applied meanwhile.
func (l *podLook) again(ctx context.Context) (*listing, error) {
	if !l.named {
		found, err := l.o.Applied(ctx, l.sess)
		if err != nil {
			return nil, err
		}
		l.observed.Found = found
	}
	return l.now(ctx)
}
