package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/podctl/podctl/runtime/plan"
	"github.com/podctl/podctl/runtime/state"
	"github.com/podctl/podctl/runtime/volume"
)

// claimUsers are the pods of podctl's that have claims, one for each claim; not counted is
// one pod. It is an error when nobody can say which claims a pod has: what is removed
// cannot be had again.
func (e *Engine) claimUsers(ctx context.Context, except plan.PodRef) (map[state.Claim]plan.PodRef, error) {
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
	users := map[state.Claim]plan.PodRef{}
	for _, other := range applied {
		pod := other.Desired.Pod
		for i := range pod.Spec.Volumes {
			if claim := pod.Spec.Volumes[i].PersistentVolumeClaim; claim != nil && pod.UID != except.UID {
				users[state.Claim{Namespace: pod.Namespace, Name: claim.ClaimName}] = plan.RefOf(pod)
			}
		}
	}
	return users, nil
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

// removeClaims removes the claims of the pod that no other pod has.
func (x *execution) removeClaims(ctx context.Context) error {
	users, err := x.e.claimUsers(ctx, x.plan.Pod)
	return volume.RemoveClaims(x.e.volumeContext(x.journal.Applied), func(name string) bool {
		claim := state.Claim{Namespace: x.plan.Pod.Namespace, Name: name}
		user, used := users[claim]
		switch {
		case err != nil:
			x.warn(fmt.Sprintf("the claim %s is kept: %v; remove %s by hand when none does", name, err, x.e.layout.ClaimDir(claim)))
		case used:
			x.warn(fmt.Sprintf("the claim %s is kept: pod %s uses it", name, user))
		}
		return err != nil || used
	})
}

// UnusedClaims lists the claims that no pod of podctl's has.
func (e *Engine) UnusedClaims(ctx context.Context) ([]Garbage, error) {
	claims, err := e.layout.Claims()
	if err != nil || len(claims) == 0 {
		return nil, err
	}
	users, err := e.claimUsers(ctx, plan.PodRef{})
	if err != nil {
		return nil, fmt.Errorf("claims are kept: %w", err)
	}
	var found []Garbage
	for _, claim := range claims {
		if _, used := users[claim]; used {
			continue
		}
		dir := e.layout.ClaimDir(claim)
		found = append(found, Garbage{
			Kind: GarbageClaim, Pod: plan.PodRef{Namespace: claim.Namespace}, Claim: claim.Name, Path: dir,
			Reason: "no pod uses it", Size: state.Size(dir),
		})
	}
	return found, nil
}

// removeClaim removes a claim, if no pod has come to use it.
func (e *Engine) removeClaim(ctx context.Context, g *Garbage) error {
	return volume.RemoveClaim(g.Path, func() error {
		users, err := e.claimUsers(ctx, plan.PodRef{})
		if _, used := users[state.Claim{Namespace: g.Pod.Namespace, Name: g.Claim}]; used {
			return ErrNeeded
		}
		return err
	})
}
