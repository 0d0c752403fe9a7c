package references

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestReasons checks which errors a message may repeat. The error of a decoder may have a part of a Secret.
func TestReasons(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "one", errors.New("no\nline"))
	for want, err := range map[string]error{
		"the answer cannot be decoded": errors.New(`invalid character: {"password": "abc"}`),
		`secrets "one" is forbidden: `: fmt.Errorf("failed to list: %w", forbidden),
		"connection refused":           &url.Error{Op: "Get", URL: "https://a", Err: errors.New("connection refused")},
	} {
		got := reasonOf(err)
		if !strings.Contains(got, want) || strings.Contains(got, "\n") || strings.Contains(got, "abc") {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
	long := apierrors.NewInternalError(errors.New(strings.Repeat("x", 10000)))
	if got := reasonOf(long); len(got) > 1000 {
		t.Errorf("%d bytes", len(got))
	}
}
