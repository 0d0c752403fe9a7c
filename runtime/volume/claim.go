package volume

import (
	"context"
	"errors"
	"fmt"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/safefs"
	"github.com/podctl/podctl/runtime/state"
)

// claimDir is the directory behind a claim of the pod.
type claimDir struct {
	Context
	claim state.Claim
}

// prepare creates the directory unless an earlier pod left it. Like a fresh emptyDir, it is writable for any user of
// the containers. prepare gives it to the pod's group if it belongs to another one. A directory that exists keeps the
// mode that its pods set.
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

// ready reports whether the directory exists and belongs to the pod's group.
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

// errKept stops the removal of a claim that another pod may still use.
var errKept = errors.New("the claim is kept")

// RemoveClaims removes the directories behind the pod's claims with their contents. It calls keep once no pod can start
// to use the claim; if keep returns true, the claim stays. RemoveClaims skips claims with invalid names and reports
// them in refused (*state.NameError).
func RemoveClaims(ctx context.Context, c Context, keep func(claim string) bool) (refused, err error) {
	var names, errs []error
	for _, vol := range podspec.Volumes(c.Desired) {
		if vol.PersistentVolumeClaim == nil {
			continue
		}
		name := vol.Claim
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
