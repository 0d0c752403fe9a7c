package controller

import (
	"context"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// emptyLister simulates a runtime without pods.
type emptyLister struct{}

func (emptyLister) Standing(context.Context, []*podspec.Desired) ([]model.Standing, error) {
	return nil, nil
}
