package apierror

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// TestOnce checks that a failure is logged until another one or a success, and not after the end of the context.
func TestOnce(t *testing.T) {
	text := &strings.Builder{}
	log := slog.New(slog.NewTextHandler(text, nil))
	var o Once
	ended, end := context.WithCancel(t.Context())
	end()
	for i, c := range []struct {
		ended bool
		err   error
		want  string
	}{
		{false, nil, ""},
		{false, errors.New("a"), `level=WARN msg=failed node=n error=a`},
		{false, errors.New("a"), ""},
		{true, errors.New("b"), ""},
		{false, errors.New("a"), ""},
		{false, errors.New("b"), `level=WARN msg=failed node=n error=b`},
		{false, nil, ""},
		{false, errors.New("b"), `level=WARN msg=failed node=n error=b`},
	} {
		text.Reset()
		ctx := t.Context()
		if c.ended {
			ctx = ended
		}
		o.Warn(ctx, log, "failed", c.err, "node", "n")
		if got := strings.TrimSpace(text.String()); !strings.HasSuffix(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("try %d: %q, want %q", i, got, c.want)
		}
	}
	if o.Last() != "b" {
		t.Errorf("the last failure is %q", o.Last())
	}
}
