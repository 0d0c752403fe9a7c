package session

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/podctl/podctl/commands/commandstest"
	"github.com/podctl/podctl/commands/exit"
	"github.com/podctl/podctl/podspec"
	"github.com/podctl/podctl/podspec/input"
	"github.com/podctl/podctl/podspec/load"
)

func newSession(t *testing.T) *Session {
	t.Helper()
	s := New(commandstest.Env("", &bytes.Buffer{}, &bytes.Buffer{}, time.Now))
	s.Flags.StateDir = t.TempDir()
	return s
}

// TestAt checks that At returns a separate session, and leaves the first one unchanged.
func TestAt(t *testing.T) {
	s := newSession(t)
	s.Flags.RuntimeEndpoint = "unix:///first.sock"
	other := s.At("/second.sock", "podctl node")
	if _, err := other.Engine(); err == nil || !strings.Contains(err.Error(), "/second.sock (podctl node)") {
		t.Error(err)
	}
	if _, err := s.Engine(); err == nil || !strings.Contains(err.Error(), "/first.sock (--runtime-endpoint)") {
		t.Error(err)
	}
	if err := errors.Join(s.Close(), other.Close()); err != nil {
		t.Error(err)
	}
}

// TestErrorText checks that errors contain no values of Secrets that were read before.
func TestErrorText(t *testing.T) {
	s := newSession(t)
	manifest := "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {key: hunter2-and-more}}\n---\n" +
		"{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: a, image: i, envFrom: [{secretRef: {name: s}}]}]}}"
	m, err := load.Load(t.Context(), input.Reader{Stdin: strings.NewReader(manifest)}, "-")
	if err != nil || m.Err() != nil {
		t.Fatal(err, m.Err())
	}
	failure := errors.New("pod default/web: hunter2-and-more is wrong")
	if text := s.ErrorText(failure); text != failure.Error() {
		t.Errorf("before the Secret is known: %q", text)
	}
	s.Loaded(m.Pods)
	s.RefreshRedactor()
	if text := s.ErrorText(failure); strings.Contains(text, "hunter2") || !strings.Contains(text, "default/web") {
		t.Errorf("%q", text)
	}
}

// TestTimeout checks that the cause of the context describes the end, and that a watch succeeds at its timeout.
func TestTimeout(t *testing.T) {
	ctx, cancel := WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	<-ctx.Done()
	if code := exit.Code(ctx, WatchEnded(ctx)); code != exit.OK {
		t.Errorf("after a timeout: %d", code)
	}
	ctx, cancel = WithTimeout(t.Context(), 0)
	cancel()
	if code := exit.Code(ctx, WatchEnded(ctx)); code != exit.Interrupted {
		t.Errorf("interrupted: %d", code)
	}
}

// TestRedactorIsBuiltOncePerChange checks that the redactor is reused while the Secrets are unchanged.
func TestRedactorIsBuiltOncePerChange(t *testing.T) {
	s := newSession(t)
	secret := func(value string) []*podspec.Desired {
		data := map[string][]byte{"k": []byte(value)}
		return []*podspec.Desired{{Objects: podspec.Objects{Secrets: map[string]*v1.Secret{"s": {Data: data}}}}}
	}
	s.Loaded(secret("hunter2-and-more"))
	first := s.Redactor()
	s.RefreshRedactor()
	if first == nil || s.Redactor() != first {
		t.Error("a new redactor for the same Secrets")
	}
	s.Loaded(secret("swordfish"))
	s.RefreshRedactor()
	if got := s.Redactor().Text("hunter2-and-more, swordfish"); got != "(secret), (secret)" {
		t.Errorf("after a change: %q", got)
	}
}
