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

// maybeElsewhere adds to an error about a pod that was not found where it may be: in a
// directory of manifests that was taken for a name, or behind a checkpoint that cannot be
// read, in which the pod's name stands.
func maybeElsewhere(sess *session.Session, name string, err error) error {
	if absent := (*state.NotFoundError)(nil); !errors.As(err, &absent) {
		return err
	}
	if _, statErr := os.Stat(name); statErr == nil {
		return fmt.Errorf("%w; if %[2]s is where its manifest lies, write ./%[2]s", err, name)
	}
	if _, unreadable, listErr := state.Applied(sess.Flags.Layout()); listErr != nil || len(unreadable) == 0 {
		return err
	}
	return &hiddenError{fmt.Errorf("%w; it may be one whose checkpoint cannot be read (see above): use its manifest instead of its name", err)}
}

// hiddenError is about a pod that was not found although there is one, or may be.
type hiddenError struct{ error }

// Unwrap returns the error about the pod that was not found.
func (e *hiddenError) Unwrap() error { return e.error }

// WithoutAbsent leaves out the errors about pods that are certainly not there.
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

// maybeLost adds to an error about a pod that was not found that the runtime has one of that
// name which podctl made, as get shows it: only its checkpoint is missing.
func maybeLost(ctx context.Context, sess *session.Session, err error) error {
	absent := (*state.NotFoundError)(nil)
	if !errors.As(err, &absent) {
		return err
	}
	applied, unreadable, listErr := podsApplied(sess)
	if listErr != nil || len(unreadable) > 0 || !isLost(ctx, sess, absent.Name, applied) {
		return err
	}
	return &hiddenError{fmt.Errorf("%w; the runtime has one that podctl made, whose checkpoint is gone or elsewhere: use its manifest instead of its name", err)}
}

// hintTimeout bounds requests that only make an error clearer.
const hintTimeout = 2 * time.Second

// isLost reports whether the runtime has a pod of podctl's of that namespace and name which is
// none of the applied ones. When the runtime does not answer it is not known.
func isLost(ctx context.Context, sess *session.Session, name string, applied []*podspec.Desired) bool {
	engine, err := sess.Engine()
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, hintTimeout)
	defer cancel()
	found, err := engine.Lister.Unmanaged(ctx, UIDs(applied))
	return err == nil && slices.ContainsFunc(found, func(d *podspec.Desired) bool {
		return model.RefOf(d.Pod).String() == name && d.Pod.Annotations[observe.AnnotationOwner] == observe.OwnerLost
	})
}
