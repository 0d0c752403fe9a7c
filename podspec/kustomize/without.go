//go:build !kustomize

package kustomize

import "github.com/podctl/podctl/podspec/input"

// Build returns a *MissingError: the library is not in this build.
func Build(dir string) ([]input.Source, error) { return nil, &MissingError{Dir: dir} }
