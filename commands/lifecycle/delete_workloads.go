package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

// deleteWorkloads forgets workloads, so that nothing makes their pods again, and adds their pods to those that are to be
// deleted. What is named and not there is added to absent.
func (o *deleteOptions) deleteWorkloads(ctx context.Context, sess *session.Session, named []state.ObjectKey, found *selection.Found, absent error) (error, error) {
	if len(named)+len(found.Workloads) == 0 {
		return absent, nil
	}
	applied, _, err := state.Applied(sess.Flags.Layout())
	if err != nil {
		return absent, err
	}
	records, err := sess.Workloads().List(func(state.ObjectKey) bool { return true })
	if err != nil {
		sess.IO.NoteOnce("note: %v", err)
	}
	given, owned, rules := len(named), 0, findRuled(ctx, sess)
	named = withOwned(named, found.Workloads, records)
	o.deleted = named
	for i, key := range named {
		pods := controller.PodsOf(key, applied)
		there, err := o.forget(ctx, sess, key)
		switch {
		case err != nil:
			return absent, err
		case !there && len(pods) == 0 && i >= given:
			sess.IO.Print("%s not found", key)
		case !there && len(pods) == 0 && !o.absent:
			absent = errors.Join(absent, &objects.NotFoundError{Key: key})
		case there && !o.dryRun:
			rules.note(key, rules.workload(key))
		}
		found.Pods = withPods(found.Pods, pods)
		owned += len(pods)
	}
	if !o.dryRun && owned > 0 {
		sess.AgentLooks(ctx)
	}
	return absent, nil
}

// withOwned are workloads that are named and others, with the Jobs of CronJobs.
func withOwned(named []state.ObjectKey, others []*podspec.Workload, records []*controller.Record) []state.ObjectKey {
	for _, w := range others {
		named = append(named, controller.KeyOf(w))
	}
	for _, key := range named {
		for _, job := range controller.JobsOf(key, records) {
			if !slices.Contains(named, job.Key()) {
				named = append(named, job.Key())
			}
		}
	}
	return named
}

// withPods are pods with those of a workload, each once.
func withPods(pods []*podspec.Desired, own []state.AppliedPod) []*podspec.Desired {
	known := selection.UIDs(pods)
	for _, p := range own {
		if !known[p.Desired.Pod.UID] {
			pods = append(pods, p.Desired)
		}
	}
	return pods
}

// forget removes the record of a workload, and reports whether there was one.
func (o *deleteOptions) forget(ctx context.Context, sess *session.Session, key state.ObjectKey) (there bool, err error) {
	if o.dryRun {
		if _, err = sess.Workloads().Get(key); err == nil {
			sess.IO.Print("%s would be deleted", key)
			return true, nil
		}
		if none := (*objects.NotFoundError)(nil); errors.As(err, &none) {
			err = nil
		}
		return false, err
	}
	if there, err = sess.Workloads().Delete(ctx, key); there && err == nil {
		sess.IO.Print("%s deleted", key)
	}
	return there, err
}

// noteOwners says of pods that are deleted which of them a workload makes again that is not deleted itself.
func (o *deleteOptions) noteOwners(sess *session.Session, pods []*podspec.Desired) {
	records, err := sess.Workloads().List(func(state.ObjectKey) bool { return true })
	if err != nil {
		sess.IO.NoteOnce("note: %v", err)
	}
	for _, r := range records {
		key := r.Key()
		own := slices.DeleteFunc(slices.Clone(pods), func(d *podspec.Desired) bool { return !controller.Owns(key, d.Pod) })
		if len(own) == 0 || slices.Contains(o.deleted, key) {
			continue
		}
		what, verb := "pod "+model.RefOf(own[0].Pod).String(), "comes"
		if len(own) > 1 {
			what, verb = fmt.Sprintf("%d pods of %s", len(own), key), "come"
		}
		sess.IO.Note("note: %s %s back with the next apply of %s, or by the agent: `podctl delete %s/%s` deletes it with its pods", what, verb, key, key.Word(), key.Name)
	}
}
