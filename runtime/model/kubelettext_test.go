package model

import (
	"errors"
	"fmt"
	"testing"
)

// TestKubeletText checks that a wrapped error keeps the kubelet's text and its cause.
func TestKubeletText(t *testing.T) {
	cause := errors.New("no such file")
	alike := KubeletErrorf("cannot load %q: %w", "x", cause)
	for name, c := range map[string]struct {
		err         error
		own, status string
	}{
		"alike":     {fmt.Errorf("spec.x: %w", alike), `spec.x: cannot load "x": no such file`, `cannot load "x": no such file`},
		"otherwise": {fmt.Errorf("spec.y: %w", &KubeletError{Err: cause, Text: "cannot"}), "spec.y: no such file", "cannot"},
		"joined":    {errors.Join(errors.New("one"), alike), "one\ncannot load \"x\": no such file", `cannot load "x": no such file`},
		"unknown":   {cause, "no such file", ""},
	} {
		if got := KubeletText(c.err); got != c.status || c.err.Error() != c.own || (name != "unknown" && !errors.Is(c.err, cause)) {
			t.Errorf("%s: %q of %v", name, got, c.err)
		}
	}
	if got := KubeletText(nil); got != "" {
		t.Errorf("no error says %q", got)
	}
}
