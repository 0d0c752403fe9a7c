package volume

import (
	"context"
	"errors"
	"fmt"

	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state"
)

// claimDir is the directory behind a claim of the pod.
type claimDir struct {
	Context
	claim state.Claim
}

// prepare makes the directory, if it is not there from an earlier pod: one into which whoever
// the containers run as may write, as into a fresh emptyDir. It is given to the pod's group
// whenever that is another one. One that is there has the mode that its pods gave it.
func (c claimDir) prepare(ctx context.Context) error {
	ready, err := c.ready()
	if err != nil || ready {
		return err
	}
	dir, err := c.Pod.Claims().Make(ctx, c.claim, volumeMode)
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // A handle on a directory.
	return c.giveToPod(dir)
}

// ready reports whether the directory is there and belongs to the pod's group.
func (c claimDir) ready() (bool, error) {
	dir, err := c.Pod.Claims().Open(c.claim)
	if err != nil {
		return false, safefs.IgnoreMissing(err)
	}
	info, err := dir.Stat()
	if err = errors.Join(err, dir.Close()); err != nil {
		return false, err
	}
	group := c.fsGroup()
	return group == nil || groupOf(info) == *group, nil
}

// errKept ends a removal of a claim that stays.
var errKept = errors.New("the claim is kept")

// RemoveClaims removes the directories behind the pod's claims, with all that is in them. Keep is asked when no pod can come to use
// the claim any more, and says whether it stays. A claim with a name under which podctl touches nothing is left alone, and refused
// says so (*state.NameError); the others are removed.
func RemoveClaims(ctx context.Context, c Context, keep func(claim string) bool) (refused, err error) {
	var names, errs []error
	for i := range c.Desired.Pod.Spec.Volumes {
		vol := &c.Desired.Pod.Spec.Volumes[i]
		if c.Desired.Volume(vol).PersistentVolumeClaim == nil {
			continue
		}
		name := vol.PersistentVolumeClaim.ClaimName
		if _, err := c.Path(vol); err != nil {
			names = append(names, fmt.Errorf("removing the claim %q: %w", name, err))
			continue
		}
		err := c.Pod.Claims().Remove(ctx, c.claim(vol), func() error {
			if keep(name) {
				return errKept
			}
			return nil
		})
		if err != nil && !errors.Is(err, errKept) {
			errs = append(errs, fmt.Errorf("removing the claim %s: %w", name, err))
		}
	}
	return errors.Join(names...), errors.Join(errs...)
}
