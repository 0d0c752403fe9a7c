package interact

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestParseKeys(t *testing.T) {
	for text, want := range map[string]string{
		"": "", defaultDetachKeys: "\x10\x11", "a,ctrl-@,CTRL-A": "a\x00\x01", `ctrl-\`: "\x1c",
	} {
		if keys, err := parseKeys(text); err != nil || string(keys) != want {
			t.Errorf("%s: %q %v", text, keys, err)
		}
	}
	for _, text := range []string{"ctrl-", "ctrl-1", "ab", ",", "\x01"} {
		if keys, err := parseKeys(text); err == nil {
			t.Errorf("%q is %q", text, keys)
		}
	}
}

// TestDetach: all input is passed on except the keys and the input after them, independent of how it is split.
func TestDetach(t *testing.T) {
	for input, want := range map[string]string{
		"text":             "text",
		"a\x10b":           "a\x10b",
		"\x10\x10\x11rest": "\x10",
		"a\x10\x11b":       "a",
		"end\x10":          "end\x10",
		"\x11\x10":         "\x11\x10",
	} {
		for name, in := range map[string]io.Reader{
			"at once": strings.NewReader(input), "byte by byte": iotest.OneByteReader(strings.NewReader(input)),
		} {
			got := make(chan byte, 100)
			err := withDetach(t.Context(), in, []byte("\x10\x11"), func(ctx context.Context, in io.Reader) error {
				done := make(chan error, 1)
				go func() {
					keys := make([]byte, 16)
					for {
						n, err := in.Read(keys)
						for _, key := range keys[:n] {
							got <- key
						}
						if err != nil {
							done <- nil
							return
						}
					}
				}()
				select {
				case <-ctx.Done():
					return ctx.Err()
				case err := <-done:
					return err
				case <-time.After(time.Minute):
					return context.DeadlineExceeded
				}
			})
			var text strings.Builder
			for len(got) > 0 {
				text.WriteByte(<-got)
			}
			detached := err == errDetached //nolint:errorlint // withDetach returns exactly this error
			if text.String() != want || detached != strings.Contains(input, "\x10\x11") {
				t.Errorf("%q %s: %q, %v", input, name, text.String(), err)
			}
		}
	}
}
