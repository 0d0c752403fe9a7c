package session

import (
	"context"
	"fmt"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
	"github.com/podctl/podctl/runtime/snapshot"
)

// WithDebug is the manifest together with the debug containers that were added to the
// running pod, for commands that work on one container of it.
func (x *Sessions) WithDebug(ctx context.Context, desired *podspec.Desired) (*podspec.Desired, error) {
	ref := model.RefOf(desired.Pod)
	list, err := x.observer.ListContainers(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("looking for the containers of pod %s: %w", ref, err)
	}
	notes := make([]map[string]string, 0, len(list))
	for _, c := range list {
		notes = append(notes, c.GetAnnotations())
	}
	return snapshot.WithDebug(desired, notes), nil
}
