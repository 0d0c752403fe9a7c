package selection

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
	"github.com/podctl/podctl/runtime/state"
)

// addLocationHint adds to a not-found error where the pod may be: in a directory of manifests that has this name, or
// behind an unreadable checkpoint, because the checkpoint contains the name.
func addLocationHint(sess *session.Session, name string, err error) error {
	if absent := (*state.NotFoundError)(nil); !errors.As(err, &absent) {
		return err
	}
	if _, statErr := os.Stat(name); statErr == nil {
		return fmt.Errorf("%w; for the manifest or directory %[2]s, write ./%[2]s", err, name)
	}
	if _, unreadable, listErr := state.Applied(sess.Flags.Layout()); listErr != nil || len(unreadable) == 0 {
		return err
	}
	return &hiddenError{fmt.Errorf("%w; its checkpoint may be one of those that cannot be read (see above): "+
		"use the manifest instead of the name", err)}
}

// hiddenError is a not-found error for a pod that exists, or may exist.
type hiddenError struct{ error }

// Unwrap returns the not-found error.
func (e *hiddenError) Unwrap() error { return e.error }

// WithoutAbsent removes the errors about pods that certainly do not exist.
func WithoutAbsent(err error) error {
	all := []error{err}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		all = slices.Clone(several.Unwrap())
	}
	return errors.Join(slices.DeleteFunc(all, func(one error) bool {
		absent, hidden := (*state.NotFoundError)(nil), (*hiddenError)(nil)
		return errors.As(one, &absent) && !errors.As(one, &hidden)
	})...)
}

// addLostHint adds to a not-found error that the runtime has a pod of this name that podctl created. Its checkpoint is
// missing, as get shows.
func addLostHint(ctx context.Context, sess *session.Session, err error) error {
	absent := (*state.NotFoundError)(nil)
	if !errors.As(err, &absent) {
		return err
	}
	applied, unreadable, listErr := podsApplied(sess)
	if listErr != nil || len(unreadable) > 0 || !isLost(ctx, sess, absent.Name, applied) {
		return err
	}
	return &hiddenError{fmt.Errorf("%w; the runtime has a pod of this name that podctl created, "+
		"but its checkpoint is missing or in another state directory: use the manifest instead of the name", err)}
}

// hintTimeout bounds requests that only improve an error.
const hintTimeout = 2 * time.Second

// isLost reports whether the runtime has a pod of podctl with this namespace and name that is not among the applied
// ones. It returns false if the runtime does not answer.
func isLost(ctx context.Context, sess *session.Session, name string, applied []*podspec.Desired) bool {
	engine, err := sess.Engine()
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, hintTimeout)
	defer cancel()
	found, err := engine.Lister.Unmanaged(ctx, UIDs(applied))
	return err == nil && slices.ContainsFunc(found, func(d *podspec.Desired) bool {
		manager := d.Pod.Annotations[observe.AnnotationManager]
		return model.RefOf(d.Pod).String() == name && manager == observe.ManagerLost
	})
}
