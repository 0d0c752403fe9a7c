package lifecycle

import (
	"context"
	"errors"
	"slices"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/objects"
	"github.com/podctl/podctl/runtime/state"
)

// targets are what the arguments name. All of a kind are deleted only with --all or a selector.
func (o *deleteOptions) targets(sess *session.Session, args []string) (selection.Targets, error) {
	targets, err := selection.ParseTargets(args, sess.Flags.Namespace)
	switch {
	case err != nil:
		return targets, err
	case len(targets.Objects)+len(targets.Workloads) > 0 && (o.All || o.Selects()):
		return targets, exit.Usagef("--all and selectors cannot be used with names")
	case o.volumes && len(targets.Objects) > 0:
		return targets, exit.Usagef("--volumes is for pods: the data of a claim goes with its last pod, or with podctl prune --volumes")
	}
	return targets, o.checkKinds(&targets)
}

// deleteObjects deletes stored objects. One that a command line names must be there, and one of a
// manifest need not be.
func (o *deleteOptions) deleteObjects(ctx context.Context, sess *session.Session, named []state.ObjectKey, found *selection.Found) error {
	if len(named)+len(found.Apart) == 0 {
		return nil
	}
	applied, err := selection.Applied(sess)
	if err != nil {
		return err
	}
	going := selection.UIDs(found.Pods)
	applied = slices.DeleteFunc(applied, func(d *podspec.Desired) bool { return going[d.Pod.UID] })
	d := &objectDeleter{sess: sess, applied: applied, dryRun: o.dryRun, rules: findRuled(ctx, sess)}
	var outcomes []error
	for _, key := range named {
		err := d.one(ctx, key)
		if absent := (*objects.NotFoundError)(nil); o.absent && errors.As(err, &absent) {
			err = nil
		}
		outcomes = append(outcomes, err)
	}
	for _, object := range found.Apart {
		key := objects.KeyOf(object)
		err := d.one(ctx, key)
		if absent := (*objects.NotFoundError)(nil); errors.As(err, &absent) {
			sess.IO.Print("%s not found", key)
			err = nil
		}
		outcomes = append(outcomes, err)
	}
	return exit.Join(ctx, outcomes...)
}

// objectDeleter deletes stored objects, and says which pods name them.
type objectDeleter struct {
	sess    *session.Session
	applied []*podspec.Desired
	dryRun  bool
	rules   *ruled
}

func (d *objectDeleter) one(ctx context.Context, key state.ObjectKey) error {
	if d.dryRun {
		if _, err := d.sess.Objects().Get(key); err != nil && !errors.Is(err, state.ErrDamaged) {
			return err
		}
		d.sess.IO.Print("%s would be deleted", key)
	} else {
		file := d.rules.object(key)
		if err := d.sess.Objects().Delete(ctx, key); err != nil {
			return err
		}
		d.sess.IO.Print("%s deleted", key)
		d.rules.note(key, file)
		if key.Kind == podspec.KindService {
			return d.sess.SyncServices(ctx)
		}
	}
	noteUsers(d.sess, key, d.applied)
	return nil
}

// noteUsers says which pods name an object that is deleted.
func noteUsers(sess *session.Session, key state.ObjectKey, applied []*podspec.Desired) {
	if users := objects.Users(key, applied); len(users) > 0 {
		sess.IO.Note("note: %s: named by %s%s", key, userNames(users), then(key))
	}
}

// then says what follows for the pods that name an object.
func then(key state.ObjectKey) string {
	if key.Kind == podspec.KindClaim {
		return ", for which its data stays"
	}
	return ", which cannot start without it, unless the reference is optional"
}
