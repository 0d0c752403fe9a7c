package controller

import (
	"context"

	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/runtime/model"
)

// nobody simulates a runtime without pods.
type nobody struct{}

func (nobody) Standing(context.Context, []*podspec.Desired) ([]model.Standing, error) {
	return nil, nil
}
