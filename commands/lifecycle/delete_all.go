package lifecycle

import (
	"context"
	"errors"
	"slices"

	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/commands/selection"
	"github.com/podctl/podctl/commands/session"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/gc"
	"github.com/podctl/podctl/runtime/state"
)

// checkKinds refuses kinds without --all or a selector, and fills in those that --all or a selector alone stand for: all kinds, of
// which claims need --volumes, or pods.
func (o *deleteOptions) checkKinds(targets *selection.Targets) error {
	nothing := len(targets.Pods)+len(targets.Objects)+len(targets.Workloads) == 0 && !o.Manifests()
	switch {
	case len(targets.Kinds) > 0 && o.Manifests():
		return exit.Usagef("kinds cannot be used with manifests")
	case len(targets.Kinds) > 0 && !o.All && !o.Selects():
		return exit.Usagef("delete needs names, --all, or a selector with kinds")
	case len(targets.Kinds) == 0 && nothing && o.Selects():
		targets.Kinds = []string{podspec.KindPod}
	case len(targets.Kinds) == 0 && nothing:
		for _, kind := range podspec.Kinds() {
			if kind.Name != podspec.KindClaim || o.volumes {
				targets.Kinds = append(targets.Kinds, kind.Name)
			}
		}
	}
	if o.Fields != "" && slices.ContainsFunc(targets.Kinds, func(kind string) bool { return kind != podspec.KindPod }) {
		return exit.Usagef("--field-selector is for pods")
	}
	return nil
}

// addStored adds the stored workloads and objects of the kinds. The error says which could not be read.
func (o *deleteOptions) addStored(sess *session.Session, targets *selection.Targets) error {
	if !o.Selects() {
		// Names are enough, so that --all also deletes what is damaged.
		layout := sess.Flags.Layout()
		match := func(key state.ObjectKey) bool {
			return slices.Contains(targets.Kinds, key.Kind) && o.Reaches(sess, key.Namespace)
		}
		stored, storedErr := layout.Objects().List()
		workloads, workloadsErr := layout.Workloads().List()
		targets.Objects = append(targets.Objects, matching(stored, match)...)
		targets.Workloads = append(targets.Workloads, matching(workloads, match)...)
		return errors.Join(storedErr, workloadsErr)
	}
	return o.AddStored(sess, targets)
}

func matching(keys []state.ObjectKey, match func(state.ObjectKey) bool) []state.ObjectKey {
	return slices.DeleteFunc(keys, func(key state.ObjectKey) bool { return !match(key) })
}

// deleteData deletes the data of all claims that no pod uses, if the command line names claims and --volumes.
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
