package gc

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/state"
)

// ClaimUsers knows which pods use claims.
type ClaimUsers struct {
	claims state.Claims
	users  map[state.Claim]model.PodRef
}

// ClaimUsers finds the claims of podctl's pods except one. It returns an error, and no claims, if the claims of a pod
// are unknown, because removed data cannot be restored.
func (x *Collector) ClaimUsers(ctx context.Context, except model.PodRef) (*ClaimUsers, error) {
	found := &ClaimUsers{claims: x.layout.Claims(), users: map[state.Claim]model.PodRef{}}
	applied, unreadable, err := state.Applied(x.layout)
	if err != nil {
		return found, err
	}
	if len(unreadable) > 0 {
		return found, errors.New("a pod whose checkpoint cannot be read may use it: " + state.Troubles(unreadable))
	}
	if err = x.checkCheckpoints(ctx); err != nil {
		return found, err
	}
	for _, other := range slices.Backward(applied) {
		pod := other.Desired.Pod
		if other.Desired.FromCluster() {
			continue // Its claims are in the API server.
		}
		for i := range pod.Spec.Volumes {
			if claim := pod.Spec.Volumes[i].PersistentVolumeClaim; claim != nil && pod.UID != except.UID {
				found.users[state.Claim{Namespace: pod.Namespace, Name: claim.ClaimName}] = model.RefOf(pod)
			}
		}
	}
	return found, nil
}

// Of returns the first pod by name that uses a claim.
func (u *ClaimUsers) Of(claim state.Claim) (model.PodRef, bool) {
	pod, used := u.users[claim]
	return pod, used
}

// Dir returns the directory with the data of a claim.
func (u *ClaimUsers) Dir(claim state.Claim) (string, error) { return u.claims.Dir(claim) }

// checkCheckpoints returns an error if the runtime has a pod of podctl without a checkpoint.
func (x *Collector) checkCheckpoints(ctx context.Context) error {
	pods, err := x.leftoversByPod(ctx, nil)
	if err != nil {
		return err
	}
	for _, l := range pods {
		if l.unmanaged() {
			continue
		}
		if err = l.checkDisk(x.layout); err != nil {
			return err
		}
		if !l.checkpoint {
			return fmt.Errorf("pod %s, which has no checkpoint, may use it", l.ref())
		}
	}
	return nil
}

// UnusedClaims returns the claims that no pod of podctl uses.
func (x *Collector) UnusedClaims(ctx context.Context) ([]Garbage, error) {
	claims, err := x.layout.Claims().List()
	if err != nil {
		return nil, err
	}
	users, err := x.ClaimUsers(ctx, model.PodRef{})
	if err != nil && len(claims) > 0 {
		return nil, fmt.Errorf("claims are kept: %w", err)
	}
	var found []Garbage
	for _, claim := range claims {
		if _, used := users.Of(claim); used {
			continue
		}
		dir, err := x.layout.Claims().Dir(claim)
		if err != nil {
			return nil, err
		}
		found = append(found, Garbage{
			Kind: GarbageClaim, Pod: model.PodRef{Namespace: claim.Namespace}, Claim: claim.Name, Path: dir,
			Reason: "no pod uses it", Size: x.layout.Claims().Size(claim),
		})
	}
	return found, nil
}

// removeClaim removes a claim unless a pod uses it by now.
func (x *Collector) removeClaim(ctx context.Context, g *Garbage) error {
	claim := state.Claim{Namespace: g.Pod.Namespace, Name: g.Claim}
	return x.layout.Claims().Remove(ctx, claim, func() error {
		users, err := x.ClaimUsers(ctx, model.PodRef{})
		if _, used := users.Of(claim); used {
			return ErrNeeded
		}
		return err
	})
}
