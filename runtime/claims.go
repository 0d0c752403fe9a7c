package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/volume"
)

// claimUser is a claim of a pod of podctl's.
type claimUser struct {
	claim state.Claim
	pod   model.PodRef
}

// claimUsers are the claims of podctl's pods; not counted is
// one pod. It is an error when nobody can say which claims a pod has: what is removed
// cannot be had again.
func (e *Engine) claimUsers(ctx context.Context, except model.PodRef) ([]claimUser, error) {
	applied, unreadable, err := Applied(e.layout)
	if err != nil {
		return nil, err
	}
	if len(unreadable) > 0 {
		return nil, errors.New("a pod whose journal cannot be read may use it: " + journalTroubles(unreadable))
	}
	if err = e.checkJournals(ctx); err != nil {
		return nil, err
	}
	var users []claimUser
	for _, other := range applied {
		pod := other.Desired.Pod
		for i := range pod.Spec.Volumes {
			if claim := pod.Spec.Volumes[i].PersistentVolumeClaim; claim != nil && pod.UID != except.UID {
				users = append(users, claimUser{state.Claim{Namespace: pod.Namespace, Name: claim.ClaimName}, model.RefOf(pod)})
			}
		}
	}
	return users, nil
}

// userOf is a pod that uses a claim. An older podctl took a claimName that was a path: such a
// one may lie in another claim.
func (e *Engine) userOf(users []claimUser, claim state.Claim) (model.PodRef, bool) {
	i := slices.IndexFunc(users, func(u claimUser) bool { return e.layout.Claims().Overlap(u.claim, claim) })
	if i < 0 {
		return model.PodRef{}, false
	}
	return users[i].pod, true
}

// refusedClaims says which claims have names under which podctl touches nothing.
func (e *Engine) refusedClaims(users []claimUser) error {
	var errs []error
	for _, u := range users {
		if _, err := e.layout.Claims().Dir(u.claim); err != nil {
			errs = append(errs, fmt.Errorf("a claim of pod %s is left alone: %w", u.pod, err))
		}
	}
	return errors.Join(errs...)
}

// checkJournals finds a pod of podctl's in the runtime of which there is no journal.
func (e *Engine) checkJournals(ctx context.Context) error {
	pods, err := e.litter(ctx, nil)
	if err != nil {
		return err
	}
	for _, l := range pods {
		if l.foreign() {
			continue
		}
		if err = e.lookOnDisk(l); err != nil {
			return err
		}
		if !l.journal {
			return fmt.Errorf("pod %s, of which there is no journal, may use it", l.ref())
		}
	}
	return nil
}

// removeClaims removes the claims of the pod that no other pod has. Those whose names are
// refused are left alone, and the first error names them.
func (x *execution) removeClaims(ctx context.Context) (refused, err error) {
	users, err := x.e.claimUsers(ctx, x.plan.Pod)
	return volume.RemoveClaims(x.e.volumeContext(x.journal.Applied), func(name string) bool {
		claim := state.Claim{Namespace: x.plan.Pod.Namespace, Name: name}
		user, used := x.e.userOf(users, claim)
		switch {
		case err != nil:
			// It has a directory, or it would not be asked about.
			dir, _ := x.e.layout.Claims().Dir(claim)
			x.warn(fmt.Sprintf("the claim %s is kept: %v; remove %s by hand when none does", name, err, dir))
		case used:
			x.warn(fmt.Sprintf("the claim %s is kept: pod %s uses it", name, user))
		}
		return err != nil || used
	})
}

// UnusedClaims lists the claims that no pod of podctl's has. Claims of pods whose names are
// refused are named by the error, and the list is complete all the same.
func (e *Engine) UnusedClaims(ctx context.Context) ([]Garbage, error) {
	claims, err := e.layout.Claims().List()
	if err != nil {
		return nil, err
	}
	users, err := e.claimUsers(ctx, model.PodRef{})
	if err != nil && len(claims) > 0 {
		return nil, fmt.Errorf("claims are kept: %w", err)
	}
	var found []Garbage
	for _, claim := range claims {
		if _, used := e.userOf(users, claim); used {
			continue
		}
		dir, err := e.layout.Claims().Dir(claim)
		if err != nil {
			return nil, err
		}
		found = append(found, Garbage{
			Kind: GarbageClaim, Pod: model.PodRef{Namespace: claim.Namespace}, Claim: claim.Name, Path: dir,
			Reason: "no pod uses it", Size: e.layout.Claims().Size(claim),
		})
	}
	return found, e.refusedClaims(users)
}

// removeClaim removes a claim, if no pod has come to use it.
func (e *Engine) removeClaim(ctx context.Context, g *Garbage) error {
	claim := state.Claim{Namespace: g.Pod.Namespace, Name: g.Claim}
	return e.layout.Claims().Remove(claim, func() error {
		users, err := e.claimUsers(ctx, model.PodRef{})
		if _, used := e.userOf(users, claim); used {
			return ErrNeeded
		}
		return err
	})
}
