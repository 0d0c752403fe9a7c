package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/model"
)

// NewestFirst sorts the records of a pod as a plan does: by sandbox, then by attempt, the newest first. The creation
// time counts only if these are equal, because a clock may have been set back.
func NewestFirst(sandboxes []*runtimeapi.PodSandbox, containers []*runtimeapi.Container) {
	slices.SortStableFunc(sandboxes, func(a, b *runtimeapi.PodSandbox) int {
		return cmp.Or(
			cmp.Compare(b.GetMetadata().GetAttempt(), a.GetMetadata().GetAttempt()),
			cmp.Compare(b.GetCreatedAt(), a.GetCreatedAt()))
	})
	age := map[string]int{}
	for i, s := range sandboxes {
		// Containers in removed sandboxes come last.
		age[s.GetId()] = i - len(sandboxes)
	}
	slices.SortStableFunc(containers, func(a, b *runtimeapi.Container) int {
		return cmp.Or(
			cmp.Compare(age[a.GetPodSandboxId()], age[b.GetPodSandboxId()]),
			cmp.Compare(b.GetMetadata().GetAttempt(), a.GetMetadata().GetAttempt()),
			cmp.Compare(b.GetCreatedAt(), a.GetCreatedAt()),
		)
	})
}

// ListNewestFirst lists the containers of a pod in any state, the newest first.
func (o *Observer) ListNewestFirst(ctx context.Context, ref model.PodRef) ([]*runtimeapi.Container, error) {
	sandboxes, containers, err := list(ctx, o.world.Client, "its", UIDSelector(ref))
	if err == nil {
		err = errors.Join(CheckAllLabels(ref, sandboxes), CheckAllLabels(ref, containers))
	}
	if err != nil {
		return nil, fmt.Errorf("pod %s: %w", ref, err)
	}
	NewestFirst(sandboxes, containers)
	return containers, nil
}
