package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/controller"
	"github.com/podctl/podctl/runtime/gc"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

// addStored adds the stored workloads and objects of the kinds. The error lists unreadable ones.
func (o *deleteOptions) addStored(sess *session.Session, targets *selection.Targets) error {
	if o.Selects() {
		return o.AddStored(sess, targets)
	}
	// Only names are read, so that --all also deletes damaged records.
	others := func(key state.ObjectKey) bool {
		return !slices.Contains(targets.Kinds, key.Kind) || !o.Reaches(sess, key.Namespace)
	}
	layout := sess.Flags.Layout()
	stored, storedErr := layout.Objects().List()
	workloads, workloadsErr := layout.Workloads().List()
	targets.Objects = append(targets.Objects, slices.DeleteFunc(stored, others)...)
	targets.Workloads = append(targets.Workloads, slices.DeleteFunc(workloads, others)...)
	return errors.Join(storedErr, workloadsErr)
}

// deleteData deletes the data of all unused claims if the command line has the kind of claims and --volumes.
func (o *deleteOptions) deleteData(ctx context.Context, sess *session.Session, targets *selection.Targets) error {
	if !o.volumes || !slices.Contains(targets.Kinds, podspec.KindClaim) || o.Selects() {
		return nil
	}
	engine, err := sess.Engine()
	if err != nil {
		return err
	}
	unused, err := engine.Garbage.UnusedClaims(ctx)
	errs := []error{err}
	for i := range unused {
		if !o.Reaches(sess, unused[i].Pod.Namespace) {
			continue
		}
		what := "data of claim " + unused[i].Pod.Namespace + "/" + unused[i].Claim
		if o.dryRun {
			sess.IO.Print("%s would be deleted", what)
			continue
		}
		err := engine.Garbage.Remove(ctx, unused[i])
		if err == nil {
			sess.IO.Print("%s deleted", what)
		}
		if !errors.Is(err, gc.ErrNeeded) {
			errs = append(errs, err)
		}
	}
	return exit.Join(ctx, errs...)
}

// deleteObjects deletes stored objects, and prints which pods name them. An object that the command line names must
// exist. An object of a manifest may be missing.
func (o *deleteOptions) deleteObjects(
	ctx context.Context, sess *session.Session, named []state.ObjectKey, found *selection.Found,
) error {
	if len(named)+len(found.Objects) == 0 {
		return nil
	}
	applied, err := selection.Applied(sess)
	if err != nil {
		return err
	}
	going, rules := selection.UIDs(found.Pods), findAgentOwned(ctx, sess)
	applied = slices.DeleteFunc(applied, func(d *podspec.Desired) bool { return going[d.Pod.UID] })
	keys := slices.Clone(named)
	for _, object := range found.Objects {
		keys = append(keys, objects.KeyOf(object))
	}
	var outcomes []error
	for i, key := range keys {
		err := o.deleteObject(ctx, sess, rules, key)
		absent := (*objects.NotFoundError)(nil)
		switch {
		case err == nil:
			noteUsers(sess, key, applied)
		case errors.As(err, &absent) && i >= len(named):
			sess.IO.Print("%s not found", key)
			err = nil
		case errors.As(err, &absent) && o.absent:
			err = nil
		}
		outcomes = append(outcomes, err)
	}
	return exit.Join(ctx, outcomes...)
}

func (o *deleteOptions) deleteObject(
	ctx context.Context, sess *session.Session, rules *agentOwned, key state.ObjectKey,
) error {
	if o.dryRun {
		if _, err := sess.Objects().Get(key); err != nil && !errors.Is(err, state.ErrDamaged) {
			return err
		}
		sess.IO.Print("%s would be deleted", key)
		return nil
	}
	file := rules.object(key)
	if err := sess.Objects().Delete(ctx, key); err != nil {
		return err
	}
	sess.IO.Print("%s deleted", key)
	rules.note(key, file)
	if key.Kind == podspec.KindService {
		return sess.SyncServices(ctx)
	}
	return nil
}

// noteUsers reports the pods that name a deleted object, and the consequence for them.
func noteUsers(sess *session.Session, key state.ObjectKey, applied []*podspec.Desired) {
	then := ", which cannot start without it unless the reference is optional"
	if key.Kind == podspec.KindClaim {
		then = ", so its data is kept"
	}
	if users := objects.Users(key, applied); len(users) > 0 {
		sess.IO.Note("note: %s is used by %s%s", key, userNames(users), then)
	}
}

// deleteWorkloads removes the records of workloads, so that their pods are not recreated, and adds their pods to found.
// The first result is absent, with the named workloads that do not exist.
func (o *deleteOptions) deleteWorkloads(
	ctx context.Context, sess *session.Session, named []state.ObjectKey, found *selection.Found, absent error,
) (error, error) {
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
	given, owned, rules := len(named), 0, findAgentOwned(ctx, sess)
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
			missing := withCluster(sess, key, &objects.NotFoundError{Key: key}, "delete"+o.kubectlGrace())
			absent = errors.Join(absent, missing)
		case there && !o.dryRun:
			rules.note(key, rules.workload(key))
		}
		found.Pods = withPods(found.Pods, pods)
		owned += len(pods)
	}
	if !o.dryRun && owned > 0 {
		sess.NotifyAgent(ctx)
	}
	return absent, nil
}

// withOwned joins the named and the other workloads, and adds the Jobs of CronJobs.
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

// withPods adds the pods of a workload, without duplicates.
func withPods(pods []*podspec.Desired, own []state.AppliedPod) []*podspec.Desired {
	known := selection.UIDs(pods)
	for _, p := range own {
		if !known[p.Desired.Pod.UID] {
			pods = append(pods, p.Desired)
		}
	}
	return pods
}

// forget removes the record of a workload, and reports whether it existed.
func (o *deleteOptions) forget(
	ctx context.Context, sess *session.Session, key state.ObjectKey,
) (there bool, err error) {
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

// noteOwners reports which deleted pods will be recreated, because their workload is not deleted.
func (o *deleteOptions) noteOwners(sess *session.Session, pods []*podspec.Desired) {
	records, err := sess.Workloads().List(func(state.ObjectKey) bool { return true })
	if err != nil {
		sess.IO.NoteOnce("note: %v", err)
	}
	for _, r := range records {
		key := r.Key()
		own := slices.DeleteFunc(slices.Clone(pods), func(d *podspec.Desired) bool {
			return !controller.OwnsPod(key, d)
		})
		if len(own) == 0 || slices.Contains(o.deleted, key) {
			continue
		}
		what := "pod " + model.RefOf(own[0].Pod).String()
		if len(own) > 1 {
			what = fmt.Sprintf("%d pods", len(own))
		}
		sess.IO.Note("note: the next apply or the agent recreates %s of %s: "+
			"`podctl delete %s/%s` deletes the workload and its pods", what, key, key.Word(), key.Name)
	}
}
