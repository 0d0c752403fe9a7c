package observe

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/podctl/podctl/runtime/cri"
	"github.com/podctl/podctl/runtime/model"
)

// NewestFirst puts the records of a pod in the order in which a plan has them: those in
// newer sandboxes first, and in one sandbox those of later attempts. When they were made
// counts only where that says nothing, as a clock may have been set back.
func NewestFirst(sandboxes []*runtimeapi.PodSandbox, containers []*runtimeapi.Container) {
	slices.SortStableFunc(sandboxes, func(a, b *runtimeapi.PodSandbox) int {
		return cmp.Or(cmp.Compare(b.GetMetadata().GetAttempt(), a.GetMetadata().GetAttempt()), cmp.Compare(b.GetCreatedAt(), a.GetCreatedAt()))
	})
	age := map[string]int{}
	for i, s := range sandboxes {
		// Those in sandboxes that are gone come last.
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

// ListNewestFirst lists the containers of a pod, in whatever state, the newest first.
func (o *Observer) ListNewestFirst(ctx context.Context, ref model.PodRef) ([]*runtimeapi.Container, error) {
	var containers []*runtimeapi.Container
	var sandboxes *runtimeapi.ListPodSandboxResponse
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		containers, err = o.ListContainers(ctx, ref)
		return err
	})
	group.Go(func() (err error) {
		sandboxes, err = o.client.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{
			Filter: &runtimeapi.PodSandboxFilter{LabelSelector: UIDSelector(ref)},
		})
		return cri.Wrap("listing its sandboxes", err)
	})
	err := group.Wait()
	if err == nil {
		err = CheckAllLabels(ref, sandboxes.GetItems())
	}
	if err != nil {
		return nil, fmt.Errorf("pod %s: %w", ref, err)
	}
	NewestFirst(sandboxes.GetItems(), containers)
	return containers, nil
}
