package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/observe"
	"github.com/podctl/podctl/runtime/state"
)

// withUnread is how a command with a thorough selection ends: with what it did, and with the
// journals that kept pods from it, which no success hides.
func (g *globals) withUnread(ctx context.Context, err error) error {
	if g.unread == nil {
		return err
	}
	all := &codeError{code: worst(exitCode(ctx, err), exitError), err: g.unread}
	if err != nil && err.Error() != "" {
		all.err = errors.Join(err, g.unread)
	}
	return all
}

// maybeLost adds to an error about a pod that was not found that the runtime has one of that
// name which podctl made, as get shows it: only its journal is missing.
func (g *globals) maybeLost(ctx context.Context, err error) error {
	absent := (*state.NotFoundError)(nil)
	if !errors.As(err, &absent) {
		return err
	}
	applied, unreadable, listErr := state.Applied(g.layout())
	if listErr != nil || len(unreadable) > 0 || !g.isLost(ctx, absent.Name, desiredOf(applied)) {
		return err
	}
	return fmt.Errorf("%w; the runtime has one that podctl made, whose journal is gone or elsewhere: give its manifest in the place of its name", err)
}

// hintTimeout is how long a runtime is asked for what only makes an error clearer.
const hintTimeout = 2 * time.Second

// isLost tells that the runtime has a pod of podctl's of that namespace and name which is
// none of the applied ones. When it does not answer nobody knows.
func (g *globals) isLost(ctx context.Context, name string, applied []*podspec.Desired) bool {
	engine, err := g.connect()
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, hintTimeout)
	defer cancel()
	found, err := engine.Lister.Unmanaged(ctx, uidsOf(applied))
	return err == nil && slices.ContainsFunc(found, func(d *podspec.Desired) bool {
		return model.RefOf(d.Pod).String() == name && d.Pod.Annotations[observe.AnnotationOwner] == observe.OwnerLost
	})
}
