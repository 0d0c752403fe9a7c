//go:build !kustomize

package kustomize

import (
	"errors"
	"strings"
	"testing"
)

// TestWithout: a build without the library says what to do instead.
func TestWithout(t *testing.T) {
	_, err := Build("overlays/prod")
	if missing := (*MissingError)(nil); !errors.As(err, &missing) || !strings.Contains(err.Error(), "kustomize build overlays/prod | podctl apply -f -") {
		t.Errorf("%v", err)
	}
}
